# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Plan: the variants of vhost_net against each other, A B C A B C in one boot.
VARIANTS="baseline mainline rxpoll-4 rxpoll-5 rxpoll"
modprobe -a vhost tap tun
for i in 1 2; do
	for v in $VARIANTS; do
		use_vhost $v || continue
		res echo20 $v fe -m echo -r 256 -w 128 -t 20000 -d 2
		res echo1 $v fe -m echo -r 16 -w 128 -t 1000 -d 2
		res flood1 $v fe -m flood -r 256 -w 128 -t 1000 -d 2
		res flood16 $v fe -m flood -r 16 -w 64 -t 1000 -d 2
		res hang $v fe -m hang -r 16 -t 20000 -n 6
		res pair $v fe -m pair -r 256 -t 20000 -n 8
	done
done
