# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Parts of the kernel rig: what it needs, kernel, modules, initramfs, boot. Sourced
# by run.sh. Everything that is downloaded is kept in $CACHE.

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
CACHE=${XDG_CACHE_HOME:-/var/cache}/dpdk-vhost-rxpoll
KCACHE=$CACHE/kernel
LINUX=$ROOT/drivers/linux

die()
{
	echo "kernel rig: $*" >&2
	exit 1
}

# need COMMAND PACKAGE...: installs the packages if the command is missing.
need()
{
	local cmd=$1
	shift
	command -v "$cmd" >/dev/null || missing+=("$@")
}

install_needs()
{
	missing=()
	need qemu-system-x86_64 qemu-system-x86
	need gcc gcc libc6-dev
	need make make
	need cpio cpio
	need patch patch
	need depmod kmod
	need perl perl
	need python3 python3
	need xz xz-utils
	[ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 || missing+=(busybox-static)
	[ -r /usr/src/linux-source-6.1.tar.xz ] || missing+=(linux-source-6.1)
	compgen -G '/usr/src/linux-headers-6.1.0-*-amd64' >/dev/null || missing+=(linux-headers-amd64)
	[ "${#missing[@]}" -eq 0 ] && return
	[ "$(id -u)" = 0 ] || die "needs ${missing[*]}: install them, or run as root"
	apt-get -qq update
	DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
		"${missing[@]}" >/dev/null || die "apt-get install ${missing[*]} failed"
}

# The packaged kernel that belongs to the headers: unpacked, not installed.
fetch_kernel()
{
	local hdr
	hdr=$(compgen -G '/usr/src/linux-headers-6.1.0-*-amd64' | grep -v rt-amd64 | sort -V | tail -1)
	KREL=${hdr#/usr/src/linux-headers-}
	KERNELDIR=$hdr
	KROOT=$KCACHE/image-$KREL
	[ -e "$KROOT/complete" ] && return
	mkdir -p "$KCACHE"
	(
		set -e
		tmp=$(mktemp -d "$KCACHE/image.XXXXXX")
		cd "$tmp"
		apt-get -qq -o APT::Sandbox::User=root download "linux-image-$KREL"
		dpkg-deb -x ./*.deb .
		rm -f ./*.deb
		touch complete
		rm -rf "$KROOT"
		mv -T "$tmp" "$KROOT"
	) || die "cannot fetch linux-image-$KREL"
}

# build_variant DRIVER SERIES [UPTO]: module in $WORK/mod/DRIVER-SERIES[-UPTO].ko
build_variant()
{
	local driver=$1 series=$2 upto=${3:-} name=$1-$2${3:+-$3} dir
	dir=$WORK/build/$name
	"$LINUX/$driver/prepare.sh" ${upto:+--upto "$upto"} "$series" "$dir" || return 1
	make -s -C "$dir" KERNELDIR="$KERNELDIR" EXTRA_CFLAGS=-Werror modules \
		>"$dir/log" 2>&1 || {
		cat "$dir/log" >&2
		return 1
	}
	grep -q 'warning:' "$dir/log" && cat "$dir/log" >&2 && return 1
	mkdir -p "$WORK/mod"
	strip --strip-debug -o "$WORK/mod/$name.ko" "$dir/$driver.ko"
}

# A module and what it depends on, into the image, in the packaged kernel's layout.
add_modules()
{
	local from=$KROOT/lib/modules/$KREL m
	for m in "$@"; do
		modprobe -d "$KROOT" -S "$KREL" --show-depends "$m" 2>/dev/null
	done | awk '$1 == "insmod" { print $2 }' | sort -u | while read -r f; do
		f=${f#"$KROOT"}
		mkdir -p "$IMG$(dirname "$f")"
		cp "$KROOT$f" "$IMG$f"
	done
	cp "$from"/modules.{order,builtin,builtin.modinfo} "$IMG/lib/modules/$KREL/"
}

# build_image: initramfs from the guest scripts, the variants and the tools.
build_image()
{
	IMG=$WORK/img
	mkdir -p "$IMG"/{bin,dev,proc,sys,tmp,usr/lib/modules,usr/lib64,variants,t,etc}
	ln -sfn usr/lib "$IMG/lib"
	ln -sfn usr/lib64 "$IMG/lib64"
	[ -e "$KROOT/lib/modules/$KREL/modules.dep" ] || depmod -b "$KROOT" "$KREL"
	cp /bin/busybox "$IMG/bin/"
	ln -sf busybox "$IMG/bin/sh"
	add_modules vhost_net tun veth virtio_pci virtio_crypto algif_skcipher cbc \
		aesni_intel hwmon dummy virtio_net af_packet 2>/dev/null
	depmod -b "$IMG" "$KREL"
	cp "$WORK"/mod/*.ko "$IMG/variants/"
	cp "$HERE"/guest/*.sh "$IMG/t/"
	install -m 755 "$HERE/guest/init" "$IMG/init"
	cp "$WORK"/bin/* "$IMG/bin/"
}

# A library and all names under which it is found: DPDK's drivers are linked and loaded
# by different names, and must not be there twice.
copy_lib()
{
	local lib=$1 real
	real=$(readlink -f "$lib")
	mkdir -p "$IMG$(dirname "$lib")" "$IMG$(dirname "$real")"
	[ -e "$IMG$real" ] || cp "$real" "$IMG$real"
	[ -e "$IMG$lib" ] || ln -s "$real" "$IMG$lib"
}

# copy_with_libs FILE [DESTINATION]: a program or library and all that it is linked to.
copy_with_libs()
{
	local lib
	if [ $# = 2 ]; then cp -L "$1" "$IMG$2"; else copy_lib "$1"; fi
	for lib in $(ldd "$1" | grep -o '/[^ ]*'); do
		copy_lib "$lib"
	done
}

# add_dpdk DAEMON: the daemon, testpmd, and the drivers that DPDK loads at run time.
add_dpdk()
{
	local dir=/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0 pmd
	copy_with_libs "$1" /bin/dpdk-vhost-rxpoll
	copy_with_libs "$(command -v dpdk-testpmd)" /bin/dpdk-testpmd
	for pmd in net_vhost net_tap net_virtio bus_vdev bus_pci mempool_ring; do
		copy_with_libs "$dir/librte_$pmd.so.23.0"
	done
	copy_with_libs /usr/lib/x86_64-linux-gnu/libgcc_s.so.1
	# testpmd is linked to drivers, which DPDK now finds in $dir and loads by their
	# file names; what these are linked to is asked for by the shorter one.
	for pmd in "$IMG$dir"/*.so.23.0; do
		pmd=$(basename "$pmd" .0)
		ln -sf "dpdk/pmds-23.0/$pmd.0" "$IMG/usr/lib/x86_64-linux-gnu/$pmd"
	done
}

pack_image()
{
	(cd "$IMG" && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) >"$WORK/initrd.gz"
}

# boot PLAN LIMIT_S [QEMU ARGUMENT...]: runs /t/PLAN.sh in the guest. The console is
# in $WORK/PLAN.log.
boot()
{
	local plan=$1 limit=$2
	shift 2
	timeout -k 1 -s KILL "$limit" ${RIG_NICE:-} qemu-system-x86_64 -M q35 -accel tcg,thread=multi -cpu max \
		-smp 2 -m "${RIG_MEM_MB:-1024}" -nodefaults -display none -no-reboot \
		-kernel "$KROOT/boot/vmlinuz-$KREL" -initrd "$WORK/initrd.gz" \
		-append "console=ttyS0 quiet panic=-1 oops=panic softlockup_panic=1 mitigations=off ipv6.disable=1 \
plan=$plan ${RIG_APPEND:-}" \
		-serial stdio "$@" </dev/null >"$WORK/$plan.log" 2>&1
	tr -d '\r' <"$WORK/$plan.log" >"$WORK/$plan.txt"
	grep -q '^rig: end$' "$WORK/$plan.txt" || {
		tail -n 30 "$WORK/$plan.txt" >&2
		echo "kernel rig: plan $plan did not come to its end" >&2
		return 1
	}
}
