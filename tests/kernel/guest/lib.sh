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

# res KIND VARIANT COMMAND...: prints the command's last line, and its status.
res()
{
	kind=$1
	variant=$2
	shift 2
	out=$("$@" 2>&1)
	rc=$?
	echo "res $kind $variant status=$rc $(echo "$out" | tail -n 1)"
}
