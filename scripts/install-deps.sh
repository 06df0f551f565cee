#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs the Debian packages that building, running and testing need.
# It asks the network for nothing when every package is there already.

set -euo pipefail

prog=${0##*/}

usage()
{
	cat <<-END
	usage: $prog [build] [run] [test] [bench]

	  build  compiler, Meson, DPDK and the other libraries
	  run    QEMU, iperf3 and what scripts/qemu-guest.sh packs into its guest
	  test   cmocka, pytest, clang with its sanitizers, the style checkers
	  bench  charts of scripts/bench.sh

	Without an argument: build, run, test.
	END
}

# What each group is for decides where a package stands; a package that
# another one of the list pulls in by itself is not repeated.
build_pkgs=(gcc libc6-dev meson ninja-build pkg-config libdpdk-dev
	liburing-dev libnuma-dev libssl-dev)
run_pkgs=(qemu-system-x86 iperf3 iproute2 iputils-ping ethtool
	busybox-static cpio kmod gzip python3 procps)
test_pkgs=(libcmocka-dev dpdk dpdk-dev python3-pytest tcpdump
	clang-14 libclang-rt-14-dev llvm-14 clang-format-14 shellcheck)

bench_pkgs=(python3-matplotlib)

missing=()

# Adds those of the named packages to $missing that are not installed.
note_missing()
{
	local p

	for p in "$@"; do
		if [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" != installed ]; then
			missing+=("$p")
		fi
	done
}

main()
{
	local group

	[ $# -gt 0 ] || set -- build run test
	for group in "$@"; do
		case $group in
		build) note_missing "${build_pkgs[@]}" ;;
		run) note_missing "${run_pkgs[@]}" ;;
		test) note_missing "${test_pkgs[@]}" ;;
		bench) note_missing "${bench_pkgs[@]}" ;;
		-h | --help) usage; exit 0 ;;
		*) echo "$prog: group \"$group\": not one of build, run, test, bench" >&2; exit 2 ;;
		esac
	done

	if [ ${#missing[@]} -eq 0 ]; then
		echo "$prog: all packages for $* are installed"
		return
	fi
	if [ "$(id -u)" -ne 0 ]; then
		echo "$prog: run as root, to install: ${missing[*]}" >&2
		exit 1
	fi

	export DEBIAN_FRONTEND=noninteractive
	echo "$prog: refreshing the package lists"
	apt-get -qq update
	echo "$prog: installing ${missing[*]}"
	apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends \
		"${missing[@]}" >/dev/null
	echo "$prog: done"
}

main "$@"
