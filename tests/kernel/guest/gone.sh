# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Plan: virtio_crypto "wait" on a device that does not answer, breaks, sleeps or goes.
# Started with cryptomgr.notests=1: such a device passes no self-test.
modprobe -a virtio algif_skcipher crypto_engine
P=/sys/module/vcrypto_testdev/parameters
D=virtio_crypto_aes_cbc

begin() # TIMEOUT_MS
{
	insmod /variants/vcrypto_testdev.ko
	use_crypto wait ctrl_timeout_ms=$1
	V=$(ls -d /sys/bus/virtio/drivers/virtio_crypto/virtio* | head -1)
}
finish()
{
	rmmod virtio_crypto && rmmod vcrypto_testdev
}
in_flight()
{
	[ "$(cat "$V/ctrl_in_flight")" = "$1" ]
}
between() # LOW VALUE HIGH
{
	[ "$1" -le "${2:-0}" ] && [ "${2:-0}" -le "$3" ]
}
all_ended() # FILE LINES
{
	[ "$(grep -c "error=" "$1")" = "$2" ]
}
# keyed: a transform on the device, that does one block for each line in /tmp/in
keyed()
{
	rm -f /tmp/in
	mkfifo /tmp/in
	alg twice $D </tmp/in >/tmp/twice 2>&1 &
	exec 5>/tmp/in
	wait_for 5 grep -q keyed /tmp/twice
}

# A bounded wait, an error that says so, and no session left from a late answer.
begin 500
echo 1 >$P/mute
out=$(alg setkey $D)
echo "res timeout wait status=0 $out"
ok timeout-is-ETIMEDOUT [ "$(field error "$out")" = 110 ]
ok timeout-in-time between 450 "$(field ms "$out")" 1500
ok timeout-counted [ "$(cat "$V/ctrl_timeouts")" = 1 ]
ok timeout-in-flight in_flight 1
ok timeout-in-log sh -c 'dmesg | grep -q "no answer within 500 ms"'
echo 0 >$P/mute
ok late-answer-taken wait_for 5 in_flight 0
sleep 0.3
ok late-session-closed [ "$(cat $P/sessions)" = 0 ]
out=$(alg setkey $D)
ok works-after-timeout [ "$(field error "$out")" = 0 ]
ok timeout-unload finish

# A killed caller goes at once; the request outlives it.
begin 60000
echo 1 >$P/mute
alg setkey $D >/tmp/out 2>&1 &
pid=$!
ok kill-in-flight wait_for 5 in_flight 1
kill -9 $pid
ok kill-ends wait_for 1 sh -c "! kill -0 $pid 2>/dev/null"
ok kill-request-stays in_flight 1
echo 0 >$P/mute
ok kill-late-answer wait_for 5 in_flight 0
sleep 0.3
ok kill-session-closed [ "$(cat $P/sessions)" = 0 ]
ok kill-unload finish

# More callers than descriptors (64): they wait for room.
begin 60000
echo 1 >$P/mute
: >/tmp/out
for _ in $(seq 80); do alg setkey $D >>/tmp/out 2>&1 & done
ok full-in-flight wait_for 20 in_flight 64
echo 0 >$P/mute
ok full-all-served wait_for 20 all_ended /tmp/out 80
ok full-no-error [ "$(grep -c 'error=0 ' /tmp/out)" = 80 ]
ok full-unload wait_for 5 rmmod virtio_crypto
rmmod vcrypto_testdev

# Removal with control and data requests in flight.
begin 60000
keyed
echo 1 >$P/mute
: >/tmp/out
for _ in 1 2 3 4 5 6 7 8; do alg setkey $D >>/tmp/out 2>&1 & done
echo e >&5
ok removal-in-flight wait_for 5 in_flight 8
sleep 0.3
basename "$V" >/sys/bus/virtio/drivers/virtio_crypto/unbind
ok removal-control-ends wait_for 2 all_ended /tmp/out 8
ok removal-ENODEV [ "$(grep -c 'error=19 ' /tmp/out)" = 8 ]
ok removal-data-ends wait_for 2 grep -q 'twice e error=5 ' /tmp/twice
echo e >&5
ok removal-then-ENODEV wait_for 2 grep -q 'twice e error=19 ' /tmp/twice
ok removal-module-held sh -c '! rmmod virtio_crypto 2>/dev/null'
exec 5>&-
ok removal-unload wait_for 5 rmmod virtio_crypto
rmmod vcrypto_testdev

# A device that says nonsense is broken: nobody waits for it.
begin 60000
echo 1 >$P/mute
: >/tmp/out
alg setkey $D >>/tmp/out 2>&1 &
ok broken-in-flight wait_for 5 in_flight 1
echo nonsense >$P/event
ok broken-ends wait_for 2 all_ended /tmp/out 1
ok broken-EIO grep -q 'error=5 ' /tmp/out
out=$(alg setkey $D)
ok broken-next-fails [ "$(field error "$out")" != 0 ]
ok broken-unload finish

# Suspend and resume with a request in flight and a transform that stays.
begin 60000
keyed
echo 1 >$P/mute
: >/tmp/out
alg setkey $D >>/tmp/out 2>&1 &
ok suspend-in-flight wait_for 5 in_flight 1
echo freeze >$P/event
ok suspend-ends wait_for 2 all_ended /tmp/out 1
ok suspend-EIO grep -q 'error=5 ' /tmp/out
echo e >&5
ok suspend-data-ENODEV wait_for 2 grep -q 'twice e error=19 ' /tmp/twice
echo 0 >$P/mute
echo restore >$P/event
echo e >&5
ok resume-old-key-ENOKEY wait_for 2 grep -q 'twice e error=126 ' /tmp/twice
echo k >&5
ok resume-new-key wait_for 2 grep -q 'twice k error=0 ' /tmp/twice
echo e >&5
ok resume-data wait_for 2 grep -q 'twice e error=0 ' /tmp/twice
ok resume-sessions [ "$(cat $P/sessions)" = 2 ]
exec 5>&-
sleep 0.5
ok resume-sessions-closed [ "$(cat $P/sessions)" = 0 ]
ok resume-unload finish
