# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Plan: the same front end and traffic against vhost-net mainline, vhost-net rxpoll, the
# daemon, and testpmd, A B C D A B C D in one boot. Back ends have CPU 1, the front end 0.
modprobe -a vhost tap tun
EAL="--no-huge -m 128 --no-pci --no-telemetry --lcores 0@1,1@1"

# start_daemon WINDOW_US, start_testpmd: serve /tmp/s with tap tapu, pid in $back
start_daemon()
{
	rm -f /tmp/s
	dpdk-vhost-rxpoll $EAL --file-prefix d --vdev net_vhost0,iface=/tmp/s \
		--vdev net_tap0,iface=tapu -- --poll-us "$1" >/tmp/back.log 2>&1 </dev/null &
	back=$!
	wait_for 30 [ -S /tmp/s ]
}
start_testpmd()
{
	rm -f /tmp/s /tmp/stdin
	mkfifo /tmp/stdin
	dpdk-testpmd $EAL --file-prefix t --vdev net_vhost0,iface=/tmp/s --vdev net_tap0,iface=tapu \
		-- --total-num-mbufs=4096 --nb-cores=1 </tmp/stdin >/tmp/back.log 2>&1 &
	back=$!
	exec 6>/tmp/stdin
	wait_for 30 [ -S /tmp/s ]
	wait_for 30 ip link show tapu >/dev/null 2>&1
	sleep 1
}
stop_back()
{
	kill -INT $back
	exec 6>&-
	wait_for 10 sh -c "! kill -0 $back 2>/dev/null" || kill -9 $back
	wait $back 2>/dev/null
}
run() # KIND VARIANT FE-ARGUMENTS...
{
	kind=$1 variant=$2
	shift 2
	case $variant in
	vhost-net-*) res "$kind" "$variant" fe "$@" ;;
	daemon)
		start_daemon 1000
		ip link set tapu up
		res "$kind" "$variant" fe "$@" -s /tmp/s -i tapu
		stop_back
		;;
	testpmd)
		start_testpmd
		ip link set tapu up
		res "$kind" "$variant" fe "$@" -s /tmp/s -i tapu
		stop_back
		;;
	esac
	[ $rc = 0 ] || [ "${variant#vhost}" != "$variant" ] || tail -n 5 /tmp/back.log
}
for _ in $(seq "${rounds:-4}"); do
	for v in vhost-net-mainline vhost-net-rxpoll daemon testpmd; do
		case $v in vhost-net-*) use_vhost "${v#vhost-net-}" || continue ;; esac
		run echo $v -m echo -r 256 -w 64 -t 1000 -d 2
		run flood $v -m flood -r 256 -w 128 -t 1000 -d 2
	done
done

# testpmd as a front end of its own on /dev/vhost-net
for v in mainline rxpoll; do
	use_vhost $v || continue
	[ $v = mainline ] || echo 1000 >/sys/module/vhost_net/parameters/busypoll_us
	rm -f /tmp/stdin
	mkfifo /tmp/stdin
	dpdk-testpmd $EAL --file-prefix v \
		--vdev net_virtio_user0,path=/dev/vhost-net,queues=1,queue_size=256,iface=tapv \
		-- --total-num-mbufs=4096 --nb-cores=1 --port-topology=loop </tmp/stdin >/tmp/back.log 2>&1 &
	back=$!
	exec 6>/tmp/stdin
	wait_for 30 grep -q 'Press enter' /tmp/back.log
	ip link set tapv up
	sleep 1
	res bounce "virtio_user-$v" fe -m bounce -i tapv -w 32 -d 2
	stop_back
done
