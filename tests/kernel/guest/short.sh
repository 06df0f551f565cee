# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Plan: every variant is loaded and passes traffic; the lost notification.
modprobe -a vhost tap tun virtio_pci algif_skcipher crypto_engine
for v in baseline mainline rxpoll; do
	use_vhost $v || continue
	res echo $v fe -m echo -r 256 -w 64 -t 5000 -d 1
	res flood $v fe -m flood -r 256 -w 64 -t 5000 -d 1
	res hang $v fe -m hang -r 16 -t 20000 -n 12
	ok "unload-vhost_net-$v" rmmod vhost_net
done
for v in baseline mainline wait; do
	use_crypto $v || continue
	res crypt $v alg crypt virtio_crypto_aes_cbc 'cbc(aes-generic)'
	res rekey8 $v alg rekey virtio_crypto_aes_cbc 8 1
	ok "unload-virtio_crypto-$v" rmmod virtio_crypto
done
