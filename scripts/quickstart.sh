#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# From a clean clone on a fresh Debian 12 to measured figures: installs what
# is missing, builds, starts the daemon with a tap in a network namespace of
# its own, boots a guest on it and sends traffic both ways. Everything it
# started or made on the host is gone when it ends, however it ends; only the
# packages, ./build and the guest's cache stay.

set -euo pipefail

prog=${0##*/}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(dirname "$here")
seconds=5

# Addresses for documentation (RFC 5737), and only inside the namespace.
host_addr=192.0.2.1
guest_addr=192.0.2.2

netns=""
dir=""
daemon_pid=""
guest_pid=""
command_pid=""

usage()
{
	cat <<-END
	usage: $prog [--seconds N]

	  --seconds N   length of each iperf3 run, 1 to 3600; default 5
	END
}

say()
{
	echo "$prog: $*"
}

die()
{
	echo "$prog: $*" >&2
	exit 1
}

# Ends process $1, a child of this shell: TERM, 3 s for it to tidy up, KILL.
end_child()
{
	local i

	kill -TERM "$1" 2>/dev/null || true
	for ((i = 0; i < 30; i++)); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

cleanup()
{
	local status=$? log

	trap - EXIT
	trap '' INT TERM HUP
	# Above 128 it was told to end, and there is nothing to explain.
	if [ "$status" -ne 0 ] && [ "$status" -lt 128 ] && [ -n "$dir" ]; then
		for log in "$dir"/*.log; do
			[ -s "$log" ] || continue
			echo "--- end of ${log##*/}" >&2
			tail -n 15 "$log" >&2
		done
	fi
	[ -z "$command_pid" ] || end_child "$command_pid"
	[ -z "$guest_pid" ] || end_child "$guest_pid"
	[ -z "$daemon_pid" ] || end_child "$daemon_pid"
	if [ -n "$netns" ]; then
		ip netns pids "$netns" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
		ip netns del "$netns" 2>/dev/null || true
	fi
	[ -z "$dir" ] || rm -rf "$dir"
	exit "$status"
}

# Runs a command so that a signal to this script takes effect at once and not
# after the command has ended.
run()
{
	local status=0

	"$@" &
	command_pid=$!
	wait "$command_pid" || status=$?
	command_pid=""
	return "$status"
}

# For commands started in the background only: the subshell there becomes the
# command, so that its process id is the command's.
in_netns()
{
	exec ip netns exec "$netns" "$@"
}

# Waits up to $1 s for the rest of the arguments, a command, to succeed while
# process $2 lives.
wait_for()
{
	local tries=$(($1 * 10)) pid=$2

	shift 2
	while ! "$@" >/dev/null 2>&1; do
		[ $((tries -= 1)) -gt 0 ] || return 1
		kill -0 "$pid" 2>/dev/null || return 1
		sleep 0.1
	done
}

# --- steps ----------------------------------------------------------------

parse_arguments()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--seconds)
			seconds=${2:-}
			if ! [[ $seconds =~ ^[1-9][0-9]{0,3}$ ]] || [ "$seconds" -gt 3600 ]; then
				echo "$prog: --seconds \"$seconds\": not a number from 1 to 3600" >&2
				exit 2
			fi
			shift
			;;
		-h | --help) usage; exit 0 ;;
		*) usage >&2; exit 2 ;;
		esac
		shift
	done
	[ "$(id -u)" -eq 0 ] ||
		die "run as root: it makes a network namespace and a tap, and may install packages"
}

build_daemon()
{
	say "building the daemon in build/ (C, Meson)"
	if [ ! -e "$top/build/build.ninja" ]; then
		run meson setup "$top/build" "$top" >"$dir/build.log" 2>&1 || die "meson failed"
	fi
	run ninja -C "$top/build" app/dpdk-vhost-rxpoll >>"$dir/build.log" 2>&1 ||
		die "the build failed"
	rm -f "$dir/build.log"
}

start_daemon()
{
	local command=("$top/build/app/dpdk-vhost-rxpoll" --file-prefix "$netns"
		--vdev "net_vhost0,iface=$dir/vhost0.sock"
		--vdev "net_tap0,iface=tap0")

	say "making network namespace $netns"
	ip netns add "$netns"
	ip -n "$netns" link set lo up
	say "starting the daemon in it: ${command[*]}"
	in_netns "${command[@]}" >"$dir/daemon.out" 2>"$dir/daemon.log" &
	daemon_pid=$!
	wait_for 20 "$daemon_pid" grep -q '^ready: ' "$dir/daemon.out" ||
		die "the daemon does not get ready"
	grep -m 1 '^ready: ' "$dir/daemon.out"
	ip -n "$netns" addr add "$host_addr/24" dev tap0
	ip -n "$netns" link set tap0 up
}

# Leaves "kvm" or "tcg" in $accel.
prepare_guest()
{
	run "$here/qemu-guest.sh" build >/dev/null || die "no guest to boot"
	run "$here/qemu-guest.sh" accel >"$dir/accel" || die "no way to boot the guest"
	accel=$(cat "$dir/accel")
}

start_guest()
{
	say "booting the guest ($accel) on $dir/vhost0.sock"
	"$here/qemu-guest.sh" run --dir "$dir" --accel "$accel" \
		--net "$dir/vhost0.sock,addr=$guest_addr/24" >"$dir/qemu.log" 2>&1 &
	guest_pid=$!
	run "$here/qemu-guest.sh" wait --dir "$dir" --limit 90 || die "the guest did not come up"
}

# Leaves the mean round trip in ms in $rtt.
measure_ping()
{
	say "ping: 20 round trips"
	# The first one resolves addresses and is not one of the 20.
	run in_netns ping -q -c 1 -w 10 "$guest_addr" >/dev/null || die "the guest answers no ping"
	run in_netns ping -q -c 20 -i 0.1 -w 20 "$guest_addr" >"$dir/ping.log" || die "ping failed"
	rtt=$(sed -n 's|^rtt [^=]*= [^/]*/\([^/]*\)/.*|\1|p' "$dir/ping.log")
	[ -n "$rtt" ] || die "ping gave no round trip time"
}

# Runs iperf3 with the extra arguments given; leaves what the receiver counted
# in Gbit/s in $gbits.
measure_iperf3()
{
	local tries=10

	# Its server in the guest listens anew after each run, and may not be back.
	until run in_netns iperf3 -J -c "$guest_addr" -t "$seconds" \
		--connect-timeout 5000 "$@" >"$dir/iperf3.json"; do
		tries=$((tries - 1))
		if [ "$tries" -eq 0 ] || ! grep -q 'Connection refused' "$dir/iperf3.json"; then
			die "iperf3: $(iperf3_error)"
		fi
		sleep 0.5
	done
	gbits=$(/usr/bin/python3 -c '
import json, sys
end = json.load(open(sys.argv[1]))["end"]
print("%.2f" % (end["sum_received"]["bits_per_second"] / 1e9))' "$dir/iperf3.json") ||
		die "iperf3: $(iperf3_error)"
}

iperf3_error()
{
	sed -n 's/.*"error":[^"]*"\(.*\)".*/\1/p' "$dir/iperf3.json"
}

stop_guest()
{
	say "shutting the guest down"
	run "$here/qemu-guest.sh" exec --dir "$dir" "(sleep 0.2; poweroff -f) >/dev/null 2>&1 &" ||
		die "the guest does not answer any more"
	wait_for 10 $$ sh -c "! kill -0 $guest_pid" || die "the guest does not shut down"
	wait "$guest_pid" 2>/dev/null || true
	guest_pid=""
}

stop_daemon()
{
	local status=0

	say "stopping the daemon"
	kill -TERM "$daemon_pid"
	wait "$daemon_pid" || status=$?
	daemon_pid=""
	[ "$status" -eq 0 ] || die "the daemon ended with status $status"
}

# The counters that the daemon printed when it ended.
daemon_counters()
{
	sed '0,/^ready: /d' "$dir/daemon.out"
}

# The sum of its drop counters: "drops N" in the line of each virtqueue.
count_drops()
{
	daemon_counters | awk '
		{ for (i = 1; i < NF; i++) if ($i == "drops") { n += $(i + 1); seen = 1 } }
		END { if (!seen) exit 1; print n }'
}

main()
{
	local accel rtt gbits guest_to_host host_to_guest drops

	parse_arguments "$@"
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP

	run "$here/install-deps.sh" build run
	netns=vhp-qs-$$
	dir=$(mktemp -d "/tmp/$netns.XXXXXX")

	build_daemon
	prepare_guest
	start_daemon
	start_guest
	measure_ping
	say "iperf3 guest -> host, $seconds s"
	measure_iperf3 --reverse
	guest_to_host=$gbits
	say "iperf3 host -> guest, $seconds s"
	measure_iperf3
	host_to_guest=$gbits
	stop_guest
	stop_daemon
	drops=$(count_drops) || die "the daemon printed no drop counters"

	echo "RESULT guest->host $guest_to_host Gbits/sec"
	echo "RESULT host->guest $host_to_guest Gbits/sec"
	echo "RESULT ping-rtt $(printf %.2f "$rtt") ms"
	echo "RESULT daemon-drops $drops"
	daemon_counters
}

main "$@"
