#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the kernel patch series, boots the packaged kernel of Debian 12 in QEMU with
# each variant, sends traffic through them and compares. The last line is the result:
# "N passed, N failed, N skipped"; exit status 1 if anything failed.
#
# usage: run.sh [--short] [--plan NAME]... [--daemon FILE] [--keep] [--check-only]
#   --short       build every variant, boot once, load, pass traffic (below 4 minutes)
#   --plan        vhost, lost, crypto, gone, user, side: these only (default: all)
#   --daemon      the daemon for the plans user and side
#                 (default: build/app/dpdk-vhost-rxpoll)
#   --check-only  the patches only: each applies, compiles, passes checkpatch
#   --keep        leave logs and modules behind, and say where
set -u

# shellcheck source=rig.sh
. "$(dirname "$0")/rig.sh"
plans=()
short=
keep=
check_only=
daemon=$ROOT/build/app/dpdk-vhost-rxpoll
while [ $# -gt 0 ]; do
	case $1 in
	--short) short=1 ;;
	--keep) keep=1 ;;
	--check-only) check_only=1 ;;
	--plan) plans+=("$2"); shift ;;
	--daemon) daemon=$2; shift ;;
	*) sed -n 's/^# \{0,1\}//; 4,17p' "$0"; exit 2 ;;
	esac
	shift
done
[ ${#plans[@]} -gt 0 ] || plans=(vhost lost crypto gone user side)

WORK=$(mktemp -d)
passed=0 failed=0 skipped=0
cleanup()
{
	if [ -n "$keep" ]; then echo "kept: $WORK"; else rm -rf "$WORK"; fi
}
trap cleanup EXIT

pass() { echo "pass $*"; passed=$((passed + 1)); }
fail() { echo "FAIL $*"; failed=$((failed + 1)); }
skip() { echo "skip $*"; skipped=$((skipped + 1)); }

# Every variant that a plan may load.
build_modules()
{
	local v
	for v in "vhost_net baseline" "vhost_net mainline" "vhost_net rxpoll" \
		"virtio_crypto baseline" "virtio_crypto mainline" "virtio_crypto wait"; do
		# shellcheck disable=SC2086
		if build_variant $v; then pass "build $v"; else fail "build $v"; fi
	done
	[ -n "$short" ] && return
	# The series as far as its mends, and without its later patches.
	build_variant vhost_net rxpoll 2 && build_variant vhost_net rxpoll 4 ||
		fail "build of a part of vhost_net rxpoll"
	mkdir -p "$WORK/build/testdev"
	cp "$HERE"/testdev/* "$WORK/build/testdev/"
	make -s -C "$KERNELDIR" M="$WORK/build/testdev" modules >"$WORK/build/testdev/log" 2>&1 &&
		strip --strip-debug -o "$WORK/mod/vcrypto_testdev.ko" \
			"$WORK/build/testdev/vcrypto_testdev.ko" ||
		fail "build of the test device: $(cat "$WORK/build/testdev/log")"
}

# Both ways into a series end in the same source.
check_same_source()
{
	local driver=$1 series=$2
	"$LINUX/$driver/prepare.sh" "$series" "$WORK/a" &&
		"$LINUX/$driver/prepare.sh" "$series-on-baseline" "$WORK/b" || {
		fail "$driver $series-on-baseline"
		return
	}
	rm -f "$WORK"/[ab]/SERIES
	if diff -r "$WORK/a" "$WORK/b" >/dev/null; then
		pass "$driver: $series and $series-on-baseline are the same source"
	else
		fail "$driver: $series and $series-on-baseline differ"
	fi
	rm -rf "$WORK/a" "$WORK/b"
}

check_patches()
{
	local driver=$1 series=$2 p n tree
	tree=$(compgen -G "$KCACHE/source-*/complete" | head -1)
	tree=${tree%/complete}
	# MAINTAINERS has drivers/vhost/ as a whole: a new file there needs no entry.
	for p in "$LINUX/$driver/patches"/*/*.patch; do
		if perl "$tree/scripts/checkpatch.pl" --no-tree --strict --quiet \
			--ignore FILE_PATH_CHANGES "$p" >"$WORK/checkpatch" 2>&1; then
			pass "checkpatch $driver $(basename "$p")"
		else
			fail "checkpatch $driver $(basename "$p")"
			cat "$WORK/checkpatch"
		fi
	done
	for s in "$series" "$series-on-baseline"; do
		n=$(grep -c . "$LINUX/$driver/patches/$series/series${s#"$series"}" 2>/dev/null ||
			grep -c . "$LINUX/$driver/patches/$series/series.on-baseline")
		for i in $(seq "$n"); do
			if build_variant "$driver" "$s" "$i"; then
				pass "compiles: $driver $s up to patch $i"
			else
				fail "compiles: $driver $s up to patch $i"
			fi
			rm -f "$WORK/mod/$driver-$s-$i.ko"
			rm -rf "$WORK/build/$driver-$s-$i"
		done
	done
}

crypto_dev=(-object "cryptodev-backend-builtin,id=c0" -device "virtio-crypto-pci,cryptodev=c0")

# The daemon as the back end of QEMU's crypto device, on this machine.
plan_user()
{
	local sock=$WORK/crypto.sock pid ok=1
	if ! [ -x "$daemon" ]; then
		skip "user: $daemon is not built"
		return 1
	fi
	if ! "$daemon" --help 2>&1 | grep -q 'vhost_crypto'; then
		skip "user: this daemon serves no crypto device"
		return 1
	fi
	"$daemon" --no-huge -m 256 --no-pci --no-telemetry --file-prefix "rig$$" \
		--vdev crypto_openssl0 --vdev "vhost_crypto0,iface=$sock,cryptodev=crypto_openssl0" \
		>"$WORK/daemon.log" 2>&1 </dev/null &
	pid=$!
	for _ in $(seq 100); do [ -S "$sock" ] && break; sleep 0.1; done
	boot user 300 -chardev "socket,id=s,path=$sock" \
		-object "cryptodev-vhost-user,id=c0,chardev=s" \
		-device "virtio-crypto-pci,cryptodev=c0,vectors=0" \
		-object "memory-backend-memfd,id=mem,size=1024M,share=on" -numa "node,memdev=mem" || {
		tail -n 20 "$WORK/daemon.log"
		ok=
	}
	kill "$pid" && wait "$pid"
	[ -n "$ok" ]
}

# plan NAME: boots it; true if there is a log to read.
plan()
{
	case $1 in
	vhost | lost) boot "$1" 600 ;;
	crypto) boot crypto 300 "${crypto_dev[@]}" ;;
	short) boot short 180 "${crypto_dev[@]}" ;;
	gone) RIG_APPEND=cryptomgr.notests=1 boot gone 200 ;;
	user) plan_user && return ;;
	side)
		if ! [ -x "$daemon" ] || ! command -v dpdk-testpmd >/dev/null; then
			skip "side: needs $daemon and dpdk-testpmd (package dpdk)"
			return 1
		fi
		add_dpdk "$daemon"
		pack_image
		RIG_MEM_MB=1536 boot side 600
		;;
	*) die "$1: no such plan" ;;
	esac
	local rc=$?
	[ $rc = 0 ] || [ "$1" = user ] || fail "plan $1 did not come to its end"
	return $rc
}

install_needs
fetch_kernel
echo "kernel $KREL"
mkdir -p "$WORK/bin"
if [ -n "$check_only" ] || { [ -z "$short" ] && [ ${#plans[@]} = 6 ]; }; then
	check_patches vhost_net rxpoll
	check_patches virtio_crypto wait
fi
build_modules
check_same_source vhost_net rxpoll
check_same_source virtio_crypto wait
if [ -z "$check_only" ]; then
	gcc -O2 -Wall -Wextra -D_GNU_SOURCE -static -o "$WORK/bin/fe" "$HERE"/fe_*.c &&
		gcc -O2 -Wall -Wextra -D_GNU_SOURCE -static -o "$WORK/bin/alg" "$HERE/alg.c" ||
		die "the test programs do not compile"
	build_image
	pack_image
	[ -n "$short" ] && plans=(short)
	logs=()
	for p in "${plans[@]}"; do
		plan "$p" && logs+=("$p=$WORK/$p.txt")
	done
	if [ ${#logs[@]} -gt 0 ]; then
		python3 "$HERE/report.py" "${logs[@]}" | tee "$WORK/report"
		passed=$((passed + $(grep -c '^pass ' "$WORK/report")))
		failed=$((failed + $(grep -c '^FAIL ' "$WORK/report")))
		skipped=$((skipped + $(grep -c '^skip ' "$WORK/report")))
	fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
