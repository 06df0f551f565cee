# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Plan: orders of events that a variant of vhost_net gets right or wrong, whatever the
# speed of the machine; the parameters and counters of the series.
modprobe -a vhost tap tun veth
ip link add v0 type veth # its peer becomes veth0
ip link set v0 up
ip link set veth0 up
for v in baseline mainline rxpoll-2 rxpoll; do
	use_vhost $v || continue
	res hang $v fe -m hang -r 16 -t 20000 -n 12
	res hang-event $v fe -m hang -e -r 16 -t 20000 -n 12
	res pair $v fe -m pair -r 256 -t 20000 -n 12
	res paced-packet $v fe -m paced -p -i v0 -o veth0 -t 20000 -d 2
	res echo-event $v fe -m echo -e -r 256 -w 64 -t 5000 -d 1
	res echo-packet $v fe -m echo -p -i v0 -o veth0 -r 256 -w 32 -t 5000 -d 1
	res echo-sleep $v fe -m echo -r 256 -w 16 -t 0 -d 1
	res echo-big $v fe -m echo -b 1514 -r 256 -w 32 -t 5000 -d 1
done

P=/sys/module/vhost_net/parameters
out=$(fe -m paced -r 256 -t 0 -d 1)
unset_pct=$(field kicks_pct "$out")
echo 20000 >$P/busypoll_us
out=$(fe -m paced -r 256 -t 0 -d 1)
ok busypoll_us-default-window [ "$(field kicks_tx "$out")" -lt $(($(field tx_pkts "$out") / 10)) ]
echo "res param rxpoll status=0 kicks_pct_without=$unset_pct kicks_pct_with=$(field kicks_pct "$out")"
ok busypoll_us-range sh -c "! echo 1000001 >$P/busypoll_us 2>/dev/null"
echo 0 >$P/busypoll_us
echo 0 >$P/rxpoll
res pair rxpoll=0 fe -m pair -r 256 -t 20000 -n 8
echo 1 >$P/rxpoll

# The counters of a device that is at work, and the trace events.
T=/sys/kernel/debug/tracing
mount -t tracefs tracefs $T 2>/dev/null
echo 1 >$T/events/vhost_net/enable
fe -m echo -r 256 -w 64 -t 20000 -d 2 >/dev/null &
sleep 1
for f in /sys/kernel/debug/vhost_net/*; do
	echo "res counters rxpoll status=0 $(tr ' \n' '= ' <"$f")"
	ok counters-polls [ "$(awk '/^tx_polls/ { print $2 }' "$f")" -gt 0 ]
	ok counters-rx_in_tx [ "$(awk '/^rx_in_tx/ { print $2 }' "$f")" -gt 0 ]
	ok counters-sum awk '{ c[$1] = $2 } END { d = c["tx_polls"] - c["tx_hits"] - \
		c["tx_timeouts"] - c["tx_interrupted"]; exit !(d >= 0 && d <= 1) }' "$f"
done
wait
ok counters-go-with-device sh -c '! ls /sys/kernel/debug/vhost_net/* 2>/dev/null'
for e in vhost_net_poll vhost_net_rx_in_tx; do
	ok "trace-$e" sh -c "grep -q '$e:' $T/trace"
done
echo 0 >$T/events/vhost_net/enable
