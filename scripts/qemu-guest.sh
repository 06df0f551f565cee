#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds, caches and boots the small QEMU guest that scripts/quickstart.sh
# and tests/system use: Debian's own kernel, unpacked and not installed, and
# a busybox initramfs. Commands run in it over a second serial port.

set -euo pipefail

prog=${0##*/}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-/var/cache}/dpdk-vhost-rxpoll

usage()
{
	cat <<-END
	usage: $prog [--cache DIR] COMMAND

	  build [--refresh]      make kernel and initramfs, or take them from the
	                         cache; --refresh looks for a newer Debian kernel
	  accel                  print "kvm" or "tcg": what really works here
	  run --dir DIR [...]    boot; DIR takes console.log, serial.sock, qmp.sock
	                         (this process becomes QEMU, which ends when the
	                         guest powers off)
	      --net SOCKET[,KEY=VALUE...]
	                         a vhost-user network device; repeat for more.
	                         server=on: QEMU makes the socket and the daemon
	                         connects (client=1 there); addr=A/L[+A/L]: addresses
	                         in the guest; queues=N: queue pairs; any other key
	                         goes to virtio-net-pci (mrg_rxbuf=off, packed=on)
	      --crypto SOCKET[,KEY=VALUE...]
	                         a vhost-user crypto device; server=on, reconnect=S,
	                         queues=N as above
	      --mem MEBIBYTES    default 384
	      --smp N            default 1
	      --accel kvm|tcg    default: what "accel" finds
	      --append TEXT      more kernel arguments
	      --incoming URI     wait for a guest that migrates here
      --no-reboot        a reboot ends QEMU instead
	  wait --dir DIR [--limit SECONDS]
	                         until the guest answers
	  exec --dir DIR [--limit SECONDS] COMMAND
	                         run a shell command in the guest; its output and
	                         status are those of this one

	Cache: $cache
	END
}

die()
{
	echo "$prog: $*" >&2
	exit 1
}

say()
{
	echo "$prog: $*" >&2
}

# --- kernel ---------------------------------------------------------------

# The packages' version that is in the cache, newest last; empty if none.
cached_kernel()
{
	find "$cache" -maxdepth 1 -name 'linux-image-*.deb' -printf '%f\n' |
		sort -V | tail -n 1
}

kernel_package()
{
	apt-cache depends linux-image-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -n 1
}

# Leaves the name of a kernel package file in $kernel_deb.
fetch_kernel()
{
	local refresh=$1 package tmp

	kernel_deb=$(cached_kernel)
	if [ -n "$kernel_deb" ] && [ -z "$refresh" ]; then
		return
	fi
	package=$(kernel_package)
	if [ -z "$package" ] || [ -n "$refresh" ]; then
		say "refreshing the package lists"
		apt-get -qq update
		package=$(kernel_package)
	fi
	[ -n "$package" ] || die "apt knows no linux-image-amd64"

	say "downloading $package (70 MB, once)"
	tmp=$(mktemp -d "$cache/download.XXXXXX")
	# As root without apt's sandbox user, who may not enter this directory.
	if ! (cd "$tmp" && apt-get -qq -o APT::Sandbox::User=root download "$package"); then
		say "refreshing the package lists"
		apt-get -qq update
		(cd "$tmp" && apt-get -qq -o APT::Sandbox::User=root \
			download "$package") || {
			rm -rf "$tmp"
			die "cannot download $package"
		}
	fi
	mv "$tmp"/linux-image-*.deb "$cache/"
	rmdir "$tmp"
	kernel_deb=$(cached_kernel)
}

# --- initramfs ------------------------------------------------------------

# virtio_pci needs virtio and virtio_ring, virtio_net needs failover:
# modprobe works the order out.
modules=(virtio_pci virtio_net)
# For guests with a crypto device; the kernel tests its ciphers against its own.
crypto_modules=(virtio_crypto algif_skcipher cbc)

# Copies the modules and their order of insertion into the root at $2 from
# the unpacked kernel package at $1.
pack_modules()
{
	local unpacked=$1 root=$2 version

	version=$(basename "$(echo "$unpacked"/lib/modules/*)")
	depmod -b "$unpacked" "$version"
	mkdir -p "$root/modules"
	pack_order "$unpacked" "$version" "$root/modules" "${modules[@]}" >"$root/modules/order"
	pack_order "$unpacked" "$version" "$root/modules" "${modules[@]}" "${crypto_modules[@]}" |
		grep -vxFf "$root/modules/order" >"$root/modules/order.crypto"
}

# Copies modules and what they depend on; prints them in the order of insertion.
pack_order()
{
	local unpacked=$1 version=$2 to=$3 module path

	for module in "${@:4}"; do
		modprobe -d "$unpacked" -S "$version" --show-depends "$module" |
			awk '$1 == "insmod" { print $2 }'
	done | awk '!seen[$0]++' | while read -r path; do
		cp "$path" "$to/"
		basename "$path"
	done
}

# Copies a program and the libraries it loads into the root at $1.
pack_program()
{
	local root=$1 program lib

	program=$(command -v "$2") || die "$2 is missing: scripts/install-deps.sh run"
	install -D -m 755 "$program" "$root/usr/bin/$2"
	ldd "$program" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | while read -r lib; do
		[ -e "$root/lib/${lib##*/}" ] || install -D "$lib" "$root/lib/${lib##*/}"
	done
}

# Fills the directory $2 with the guest's root; $1: unpacked kernel package.
make_root()
{
	local unpacked=$1 root=$2 busybox applet

	busybox=$(command -v busybox) || die "busybox is missing: scripts/install-deps.sh run"
	mkdir -p "$root"/{bin,dev,etc,lib,lib64,proc,sys,tmp,usr/bin}
	install -m 755 "$busybox" "$root/bin/busybox"
	for applet in $("$busybox" --list); do
		ln -s busybox "$root/bin/$applet" 2>/dev/null || true
	done
	pack_program "$root" iperf3
	pack_program "$root" ethtool
	install -D /lib64/ld-linux-x86-64.so.2 "$root/lib64/ld-linux-x86-64.so.2"
	echo "root:x:0:0:root:/:/bin/sh" >"$root/etc/passwd"
	pack_modules "$unpacked" "$root"
	install -m 755 "$here/lib/guest-init.sh" "$root/init"
}

# What the initramfs is made of; another sum means another initramfs.
recipe_sum()
{
	{
		echo "$kernel_deb"
		cat "$here/qemu-guest.sh" "$here"/lib/{guest-init.sh,unpack_kernel.py}
		dpkg-query -W -f='${Package} ${Version}\n' busybox-static iperf3 ethtool libc6
	} | sha256sum | cut -c 1-16
}

# Unpacks the kernel and packs the initramfs unless the cache has both.
# Leaves their paths in $vmlinux and $initramfs.
build()
{
	local refresh=${1:-} sum work

	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9
	# Whoever holds the lock is alone: these are rests of a killed run.
	rm -rf "$cache"/build.?????? "$cache"/download.??????
	fetch_kernel "$refresh"
	sum=$(recipe_sum)
	vmlinux=$cache/vmlinux-$sum
	initramfs=$cache/initramfs-$sum.gz
	if [ ! -s "$vmlinux" ] || [ ! -s "$initramfs" ]; then
		say "building the guest in $cache"
		work=$(mktemp -d "$cache/build.XXXXXX")
		# shellcheck disable=SC2064
		trap "rm -rf '$work'" EXIT
		dpkg-deb -x "$cache/$kernel_deb" "$work/kernel"
		make_root "$work/kernel" "$work/root"
		(cd "$work/root" && find . | cpio --quiet -o -H newc -R 0:0) |
			gzip -1 >"$work/initramfs"
		/usr/bin/python3 "$here/lib/unpack_kernel.py" \
			"$work"/kernel/boot/vmlinuz-* "$work/vmlinux" ||
			cp "$work"/kernel/boot/vmlinuz-* "$work/vmlinux"
		# Not those of today: another checkout may be about to boot one.
		find "$cache" -maxdepth 1 -mtime +0 \
			\( -name 'vmlinux-*' -o -name 'initramfs-*' \) -delete
		mv "$work/vmlinux" "$vmlinux"
		mv "$work/initramfs" "$initramfs"
		rm -rf "$work"
		trap - EXIT
	fi
	exec 9>&-
}

# --- KVM or not -----------------------------------------------------------

# Boots the guest to its first line with KVM. /dev/kvm may be there and not
# run an ordinary kernel, so only this tells.
probe_kvm()
{
	local log=$1 pid

	timeout -k 1 -s KILL 20 qemu-system-x86_64 -accel kvm -cpu host \
		-m 256 -nodefaults -no-user-config -display none -no-reboot \
		-kernel "$vmlinux" -initrd "$initramfs" \
		-append "console=ttyS0 panic=-1 quiet vhp.probe" \
		-serial "file:$log" >/dev/null 2>&1 </dev/null &
	pid=$!
	# In the background, so that QEMU does not outlive an interrupted script.
	# shellcheck disable=SC2064
	trap "kill -TERM $pid; exit 143" INT TERM HUP
	wait "$pid" 2>/dev/null || true
	trap - INT TERM HUP
	grep -q VHP-PROBE-OK "$log"
}

# Leaves "kvm" or "tcg" in $accel. Asked once per boot of this host, since
# the answer can only change with it or with QEMU.
find_accel()
{
	local key verdict log

	key="$(cat /proc/sys/kernel/random/boot_id) $(dpkg-query -W -f='${Version}' qemu-system-x86)"
	exec 9>"$cache/lock"
	flock 9
	verdict=$(cat "$cache/accel" 2>/dev/null || true)
	if [ "${verdict% *}" = "$key" ]; then
		accel=${verdict##* }
	else
		accel=tcg
		if [ -w /dev/kvm ]; then
			say "trying KVM (20 s at most)"
			log=$(mktemp)
			! probe_kvm "$log" || accel=kvm
			rm -f "$log"
		fi
		say "the guest runs on $accel"
		echo "$key $accel" >"$cache/accel"
	fi
	exec 9>&-
}

# --- run ------------------------------------------------------------------

# Adds the arguments for network device number $1 described by $2, as --net
# has it, to qemu=() and its addresses to append.
add_net()
{
	local n=$1 socket=${2%%,*} item key value chardev device queues=1 items=()

	chardev="socket,id=chr$n,path=$socket"
	device="virtio-net-pci,netdev=net$n,id=nic$n,romfile=,addr=0x$((10 + n))"
	device+=",mac=52:54:00:76:68:$(printf %02x "$((16 + n))")"
	[ "$accel" = kvm ] || device+=",vectors=0"

	[ "$socket" = "$2" ] || IFS=, read -r -a items <<<"${2#*,}"
	for item in "${items[@]}"; do
		key=${item%%=*}
		value=${item#*=}
		case $key in
		server) [ "$value" != on ] || chardev+=",server=on,wait=off" ;;
		reconnect) chardev+=",reconnect=$value" ;;
		queues) queues=$value ;;
		addr) append+=" vhp.addr$n=${value//+/,}" ;;
		*) device+=",$item" ;;
		esac
	done
	[ "$queues" -eq 1 ] || device+=",mq=on"
	qemu+=(-chardev "$chardev"
		-netdev "vhost-user,id=net$n,chardev=chr$n,queues=$queues"
		-device "$device")
}

# Adds the arguments of the crypto device, as --crypto has it, to qemu=().
add_crypto()
{
	local chardev="socket,id=cchr,path=${1%%,*}" queues=1 item items=()
	local device="virtio-crypto-pci,cryptodev=cry0"

	[ "$accel" = kvm ] || device+=",vectors=0"
	[ "${1%%,*}" = "$1" ] || IFS=, read -r -a items <<<"${1#*,}"
	for item in "${items[@]}"; do
		case $item in
		server=on) chardev+=",server=on,wait=off" ;;
		reconnect=*) chardev+=",$item" ;;
		queues=*) queues=${item#*=} ;;
		*) die "run: --crypto: $item: unknown key" ;;
		esac
	done
	append+=" vhp.crypto"
	qemu+=(-chardev "$chardev"
		-object "cryptodev-vhost-user,id=cry0,chardev=cchr,queues=$queues"
		-device "$device")
}

run()
{
	local dir="" mem=384 smp=1 append="" nets=() extra=() net n=0 crypto=""
	local qemu=()

	accel=""
	while [ $# -gt 0 ]; do
		case $1 in
		--dir) dir=$2; shift ;;
		--net) nets+=("$2"); shift ;;
		--crypto) crypto=$2; shift ;;
		--mem) mem=$2; shift ;;
		--smp) smp=$2; shift ;;
		--accel) accel=$2; shift ;;
		--append) append+=" $2"; shift ;;
		--incoming) extra+=(-incoming "$2"); shift ;;
		--no-reboot) extra+=(-no-reboot) ;;
		*) die "run: $1: unknown option" ;;
		esac
		shift
	done
	[ -d "$dir" ] || die "run: --dir \"$dir\": not a directory"

	build
	[ -n "$accel" ] || find_accel
	if [ "$accel" = kvm ]; then
		qemu+=(-accel kvm -cpu host)
	else
		# MSI-X with a vhost-user device crashes QEMU 7.2's TCG: add_net
		# leaves it out there.
		qemu+=(-accel "tcg,thread=multi" -cpu max)
	fi
	for net in "${nets[@]}"; do
		add_net "$n" "$net"
		n=$((n + 1))
	done
	[ -z "$crypto" ] || add_crypto "$crypto"

	exec qemu-system-x86_64 -name vhp-guest -M q35 -nodefaults -no-user-config \
		-display none -smp "$smp" -m "$mem" \
		-object "memory-backend-memfd,id=mem,size=${mem}M,share=on" \
		-numa node,memdev=mem \
		-kernel "$vmlinux" -initrd "$initramfs" \
		-append "console=ttyS0 quiet panic=-1 mitigations=off$append" \
		-serial "file:$dir/console.log" \
		-chardev "socket,id=ctl,path=$dir/serial.sock,server=on,wait=off" \
		-serial chardev:ctl \
		-qmp "unix:$dir/qmp.sock,server=on,wait=off" \
		"${qemu[@]}" "${extra[@]}"
}

# wait and exec: $1 is the action of guest_serial.py.
talk()
{
	local action=$1 dir="" limit=60

	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--dir) dir=$2; shift 2 ;;
		--limit) limit=$2; shift 2 ;;
		*) break ;;
		esac
	done
	[ "$action" = wait ] || [ -S "$dir/serial.sock" ] ||
		die "--dir \"$dir\": no guest runs there"
	exec /usr/bin/python3 "$here/lib/guest_serial.py" "$dir/serial.sock" \
		--limit "$limit" "$action" "$@"
}

main()
{
	if [ "${1:-}" = --cache ]; then
		cache=${2:?--cache needs a directory}
		shift 2
	fi
	case ${1:-} in
	build)
		build "${2:-}"
		echo "$vmlinux"
		echo "$initramfs"
		;;
	accel)
		build
		find_accel
		echo "$accel"
		;;
	run) run "${@:2}" ;;
	wait) talk wait "${@:2}" ;;
	exec) talk run "${@:2}" ;;
	-h | --help) usage ;;
	*) usage >&2; exit 2 ;;
	esac
}

main "$@"
