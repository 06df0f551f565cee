# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# For the plans. Each measurement is one line "res KIND VARIANT key=value ...".

# Load one variant of vhost_net, as DRIVER-SERIES in /variants, in place of the last.
use_vhost()
{
	rmmod vhost_net 2>/dev/null
	if ! insmod "/variants/vhost_net-$1.ko"; then
		echo "res load $1 status=1"
		return 1
	fi
	modprobe tun
	[ -c /dev/vhost-net ] || mknod /dev/vhost-net c 10 238
}

# res KIND VARIANT COMMAND...: prints the command's last line, its status, and how long
# a fixed piece of work took before and after, which tells whether the host was busy.
res()
{
	kind=$1
	variant=$2
	shift 2
	before=$(alg calib)
	out=$("$@" 2>&1)
	rc=$?
	after=$(alg calib)
	[ "$before" -gt "$after" ] && after=$before
	echo "res $kind $variant status=$rc $(echo "$out" | tail -n 1) calib_us=$after"
}

# Load one variant of virtio_crypto in place of the last; the rest are parameters.
use_crypto()
{
	rmmod virtio_crypto 2>/dev/null
	v=$1
	shift
	if ! insmod "/variants/virtio_crypto-$v.ko" "$@"; then
		echo "res load $v status=1"
		return 1
	fi
}

# ok NAME CONDITION...: one check, as in "ok removal [ $x = 0 ]".
ok()
{
	name=$1
	shift
	if "$@"; then echo "check pass $name"; else echo "check FAIL $name: $*"; fi
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for()
{
	left=$(($1 * 10))
	shift
	until "$@"; do
		left=$((left - 1))
		[ $left -gt 0 ] || return 1
		sleep 0.1
	done
}

# field KEY LINE: the value in "... KEY=VALUE ..."
field()
{
	echo "$2" | sed -n "s/.*\b$1=\([^ ]*\).*/\1/p"
}
