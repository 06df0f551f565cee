#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# shellcheck disable=SC2013,SC3043
#
# /init of the test guest (busybox ash, which has "local"). scripts/qemu-guest.sh packs it into
# the initramfs; scripts/lib/guest_serial.py talks to the agent at its end.
#
# Kernel arguments it knows:
#   vhp.addrN=ADDR/LEN[,ADDR/LEN]  addresses of ethN
#   vhp.crypto                     there is a crypto device: insert its driver
#   vhp.probe                      say that the kernel came up, power off

export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/ LD_LIBRARY_PATH=/lib

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /run
mount -t devpts devpts /dev/pts

for arg in $(cat /proc/cmdline); do
	if [ "$arg" = vhp.probe ]; then
		echo "VHP-PROBE-OK"
		poweroff -f
	fi
done

# Dependency order, worked out when the initramfs was built.
while read -r module; do
	insmod "/modules/$module" || echo "guest-init: insmod $module failed"
done </modules/order

if grep -qw vhp.crypto /proc/cmdline; then
	while read -r module; do
		insmod "/modules/$module" || echo "guest-init: insmod $module failed"
	done </modules/order.crypto
fi

ip link set lo up
for arg in $(cat /proc/cmdline); do
	case $arg in
	vhp.addr*=*)
		name=${arg%%=*}
		nic=eth${name#vhp.addr}
		ip link set "$nic" up
		for addr in $(echo "${arg#*=}" | tr , ' '); do
			ip addr add "$addr" dev "$nic"
		done
		;;
	esac
done

iperf3 -s -D >/dev/null 2>&1

# The agent: one command at a time, over the second serial port, which the
# kernel never prints to.
#   host:  RUN <id> <limit in seconds> <command in hex>
#   guest: BEGIN <id> / output in hex, lines of 64 bytes / END <id> <status> <bytes>
# A line that is none of this (a rest of one from before a reset) is skipped.
agent()
{
	local word id limit hex status

	while read -r word id limit hex; do
		if [ "$word" != RUN ] || [ -z "$hex" ]; then
			continue
		fi
		timeout -s KILL "$limit" sh -c "$(echo "$hex" | xxd -r -p)" \
			</dev/null >"/tmp/out.$id" 2>&1
		status=$?
		echo "BEGIN $id"
		xxd -p -c 64 "/tmp/out.$id"
		echo "END $id $status $(wc -c <"/tmp/out.$id")"
		rm -f "/tmp/out.$id"
	done
}

stty raw -echo </dev/ttyS1
echo "VHP-GUEST-UP"
# Not in this process: orphans become the children of process 1, and a SIGCHLD
# in the middle of a line makes ash's "read" forget what it has of it. Every
# "timeout" leaves an orphan, which ends up to a second later.
(agent <>/dev/ttyS1 >&0) &
while :; do
	wait
	sleep 1
done
