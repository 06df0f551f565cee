# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Plan: virtio_crypto "wait" on the daemon, through QEMU's vhost-user crypto.
modprobe -a virtio_pci algif_skcipher crypto_engine
for v in baseline wait; do
	use_crypto $v || continue
	sleep 1
	passed=$(awk '/^driver.*virtio_crypto_aes_cbc/ { d = 1 } d && /^selftest/ { print $3; exit }' /proc/crypto)
	ok "selftest-$v" [ "$passed" = passed ]
	res crypt $v alg crypt virtio_crypto_aes_cbc 'cbc(aes-generic)'
	res rekey1 $v alg rekey virtio_crypto_aes_cbc 1 2
	res rekey8 $v alg rekey virtio_crypto_aes_cbc 8 2
	ok "unload-$v" rmmod virtio_crypto
done
