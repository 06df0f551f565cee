#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Takes the pristine files of a driver out of Debian's kernel source package,
# applies a series of this directory to them and leaves a directory that builds by
# itself (make) and is a DKMS source tree. Called by vhost_net/prepare.sh and
# virtio_crypto/prepare.sh.
#
# usage: prepare.sh DRIVER [--source TARBALL|TREE] [--upto N] SERIES OUTDIR
#   DRIVER  vhost_net or virtio_crypto
#   SERIES  mainline (no patch), baseline, or the name of the series in patches/;
#           SERIES-on-baseline starts from baseline and ends in the same source
#   --upto  apply the first N patches of the last series only
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-/var/cache}/dpdk-vhost-rxpoll/kernel
source=/usr/src/linux-source-6.1.tar.xz
upto=999

die()
{
	echo "prepare.sh: $*" >&2
	exit 1
}

driver=$1
shift
while [ $# -gt 0 ]; do
	case $1 in
	--source) source=$2; shift 2 ;;
	--upto) upto=$2; shift 2 ;;
	-*) die "$1: unknown option" ;;
	*) break ;;
	esac
done
[ $# -eq 2 ] || die "usage: prepare.sh [--source TARBALL|TREE] [--upto N] SERIES OUTDIR"
series=$1
out=$2

case $driver in
vhost_net) dir=drivers/vhost ;;
virtio_crypto) dir=drivers/crypto/virtio ;;
*) die "$driver: not a driver of this directory" ;;
esac

# The archive takes long to unpack: what is needed of it is kept.
if [ -d "$source" ]; then
	tree=$source
else
	[ -r "$source" ] || die "$source is missing: apt-get install linux-source-6.1"
	tree=$cache/source-$(stat -c '%s-%Y' "$source")
	if [ ! -e "$tree/complete" ]; then
		mkdir -p "$cache"
		tmp=$(mktemp -d "$cache/unpack.XXXXXX")
		tar -C "$tmp" --strip-components=1 -xf "$source" \
			linux-source-6.1/drivers/vhost \
			linux-source-6.1/drivers/crypto/virtio \
			linux-source-6.1/scripts/checkpatch.pl \
			linux-source-6.1/scripts/const_structs.checkpatch \
			linux-source-6.1/scripts/spelling.txt \
			linux-source-6.1/Makefile
		touch "$tmp/complete"
		mv -T "$tmp" "$tree" 2>/dev/null || rm -rf "$tmp"
	fi
fi
[ -d "$tree/$dir" ] || die "$tree has no $dir"
[ "$(sed -n 's/^\(VERSION\|PATCHLEVEL\) = //p' "$tree/Makefile" | tr '\n' .)" = 6.1. ] ||
	die "$source is not Linux 6.1, which these patches are for"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$dir"
cp -R "$tree/$dir/." "$work/$dir/"

# apply SERIES-FILE [COUNT]
apply()
{
	at=$(dirname "$1")
	for name in $(grep -v '^#' "$1" | head -n "$2"); do
		patch -d "$work" -p1 -s -F0 --no-backup-if-mismatch -i "$at/$name" ||
			die "$name does not apply"
	done
}

patches=$here/$driver/patches
case $series in
mainline) ;;
baseline) apply "$patches/baseline/series" "$upto" ;;
*-on-baseline)
	last=${series%-on-baseline}
	[ -r "$patches/$last/series.on-baseline" ] || die "$series: no such series"
	apply "$patches/baseline/series" 999
	apply "$patches/$last/series.on-baseline" "$upto"
	;;
*)
	[ -r "$patches/$series/series" ] || die "$series: no such series"
	apply "$patches/$series/series" "$upto"
	;;
esac

mkdir -p "$out"
rm -f "$out"/*.[cho] "$out"/*.ko
case $driver in
vhost_net)
	cp "$work/$dir/net.c" "$work/$dir/vhost.h" "$out/"
	[ ! -e "$work/$dir/net_trace.h" ] || cp "$work/$dir/net_trace.h" "$out/"
	;;
virtio_crypto)
	cp "$work/$dir"/*.[ch] "$out/"
	;;
esac
cp "$here/$driver/Kbuild" "$here/$driver/Makefile" "$here/$driver/dkms.conf" "$out/"
echo "$series" >"$out/SERIES"
