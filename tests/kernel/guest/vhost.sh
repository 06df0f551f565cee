# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Plan: the variants of vhost_net against each other, A B C A B C in one boot.
# rxpoll-4 is the series without its later patches: receive work that the transmit
# poll finds goes through the worker's list.
modprobe -a vhost tap tun
for _ in $(seq "${rounds:-8}"); do
	for v in baseline mainline rxpoll-4 rxpoll; do
		use_vhost $v || continue
		res echo20 $v fe -m echo -r 256 -w 128 -t 20000 -d 1
		res echo1 $v fe -m echo -r 256 -w 64 -t 1000 -d 1
		res flood1 $v fe -m flood -r 256 -w 128 -t 1000 -d 1
		res flood16 $v fe -m flood -r 16 -w 64 -t 1000 -d 1
	done
done
