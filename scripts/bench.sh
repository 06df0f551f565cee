#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The daemon beside other back ends on the same cores, with the same front end, in
# network namespaces of its own. Back ends take turns, round after round; medians, spread
# and ratios of one run are what counts on a machine that does other things, too.

set -euo pipefail

prog=${0##*/}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(dirname "$here")
build=${VHP_BUILD:-$top/build-bench}
tag=vhp-bench-$$
dir=""
child=""

usage()
{
	cat <<-END
	usage: $prog [--quick] [--only GROUP] [--rounds N] [--ms N] [--backend NAME]
	             [--json FILE] [--plot DIR]

	  --quick         one short round of each, under 60 s
	  --only GROUP    frames, null, headline, tcp, rr, idle or qemu; repeat
	                  for more; without it all (with --quick, all but qemu).
	                  crypto, crypto-data: tables of their own; with them go
	                  --quick, --rounds N (default 3) and --cryptodev NAME
	                  (default crypto_openssl0)
	  --rounds N      default 5
	  --ms N          length of each run in milliseconds, default 1000
	  --backend NAME  only rxpoll, rxpoll-forever, testpmd, testpmd-afp, testpmd-xdp, ovs,
	                  tap-limit, interleave, deferred; repeat for more. ovs needs the
	                  package openvswitch-switch-dpdk, which nothing here installs
	  --json FILE     one JSON object for each back end and workload
	  --plot DIR      PNG charts

	CPU 1 is the back end's, CPU 0 everybody else's.
	END
}

cleanup()
{
	local status=$? netns

	trap - EXIT
	trap '' INT TERM HUP
	if [ -n "$child" ] && kill -TERM "$child" 2>/dev/null; then
		wait "$child" 2>/dev/null || true
	fi
	for netns in "$tag-host" "$tag-guest"; do
		[ -e "/run/netns/$netns" ] || continue
		ip netns pids "$netns" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
		ip netns del "$netns" 2>/dev/null || true
	done
	[ -z "$dir" ] || rm -rf "$dir"
	exit "$status"
}

main()
{
	local status=0

	case ${1:-} in
	-h | --help) usage; exit 0 ;;
	esac
	if [ "$(id -u)" -ne 0 ]; then
		echo "$prog: run as root: it makes network namespaces and taps" >&2
		exit 1
	fi
	if [ "$(nproc --all)" -lt 2 ]; then
		echo "$prog: needs two CPUs: one for the back end, one for the rest" >&2
		exit 1
	fi
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
	"$here/install-deps.sh" build run test bench >&2
	dir=$(mktemp -d /tmp/vhp-bench.XXXXXX)
	if [ ! -e "$build/build.ninja" ]; then
		meson setup "$build" "$top" -Dbuildtype=release >"$dir/build.log" 2>&1 ||
			{ cat "$dir/build.log" >&2; exit 1; }
	fi
	ninja -C "$build" app/dpdk-vhost-rxpoll tests/bench/bench-frames \
		tests/bench/bench-guest tests/bench/bench-relay tests/bench/bench-rr \
		tests/bench/bench-tap \
		>"$dir/build.log" 2>&1 || { cat "$dir/build.log" >&2; exit 1; }
	if [[ ${1:-} = --only && ${2:-} = crypto* ]]; then
		ninja -C "$build" tests/frontend/fe-crypto >"$dir/build.log" 2>&1 ||
			{ cat "$dir/build.log" >&2; exit 1; }
		/usr/bin/python3 "$here/lib/bench_crypto.py" --build "$build" --tag "$tag" "$@" &
	else
		/usr/bin/python3 "$here/lib/bench_main.py" --build "$build" --dir "$dir" \
			--tag "$tag" "$@" &
	fi
	child=$!
	wait "$child" || status=$?
	child=""
	return "$status"
}

main "$@"
