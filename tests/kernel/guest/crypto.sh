# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Plan: the variants of virtio_crypto on QEMU's own back end, A B C A B C in one boot.
modprobe -a virtio_pci algif_skcipher crypto_engine
for _ in $(seq "${rounds:-5}"); do
	for v in baseline mainline wait; do
		use_crypto $v || continue
		sleep 1
		passed=$(awk '/^driver.*virtio_crypto_aes_cbc/ { d = 1 } d && /^selftest/ { print $3; exit }' /proc/crypto)
		ok "selftest-$v" [ "$passed" = passed ]
		res crypt $v alg crypt virtio_crypto_aes_cbc 'cbc(aes-generic)'
		res rekey1 $v alg rekey virtio_crypto_aes_cbc 1 "${secs:-2}"
		res rekey8 $v alg rekey virtio_crypto_aes_cbc 8 "${secs:-2}"
		ok "unload-$v" rmmod virtio_crypto
	done
done
others=$(dmesg | grep 'alg: self-tests for.*failed' | grep -v rsa)
ok selftest-others [ -z "$others" ]
