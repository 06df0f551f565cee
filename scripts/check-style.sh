#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What CONTRIBUTING.md asks for and a program can see: layout, licences, layers, one home
# for each dependency. Prints each violation; exit status 1 if there is one.

set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

bad=0

violation()
{
	echo "$*"
	bad=1
}

# Files of the tree by pattern; those git does not know yet count, too.
files()
{
	git ls-files --cached --others --exclude-standard -- "$@"
}

# Kernel code has the kernel's layout.
c_files=$(files 'app/*.[ch]' 'lib/*.[ch]' 'drivers/net/*.[ch]' 'drivers/crypto/*.[ch]' 'tests/*.[ch]' ':!tests/kernel/testdev')

for f in $c_files; do
	clang-format-14 --dry-run -Werror "$f" 2>/dev/null || violation "$f: not as clang-format-14 lays it out"
done

for f in $(files '*.[ch]' '*.sh' '*.py' '*meson.build' '.ci/run'); do
	head -n 2 "$f" | grep -q 'SPDX-License-Identifier:' || violation "$f: no SPDX line at the top"
done

for f in $(files 'app/*.[ch]' 'lib/*.[ch]' 'drivers/net/*.[ch]' 'drivers/crypto/*.[ch]'); do
	lines=$(wc -l <"$f")
	[ "$lines" -le 500 ] || violation "$f: $lines lines; the limit is 500"
done

# only_in HEADER FILE...: a header that has few homes
only_in()
{
	local header=$1 f

	shift
	for f in $(grep -lE "#include <$header>" $(files 'app/*.[ch]' 'lib/*.[ch]' 'drivers/net/*.[ch]' 'drivers/crypto/*.[ch]')); do
		[[ " $* " == *" $f "* ]] || violation "$f: includes $header; its home is $*"
	done
}

only_in rte_vhost.h lib/vhost_poll/vhost_lib.c lib/vhost_poll/net_rings.c
only_in rte_telemetry.h lib/vhost_poll/stats.c lib/vhost_poll/control.c lib/vhost_poll/crypto_stats.c
only_in liburing.h drivers/net/tap/tap_uring.c
only_in rte_kvargs.h app/config.c
only_in 'rte_crypto.*.h' drivers/crypto/cryptodev_priv.h
only_in 'openssl/.*' drivers/crypto/cryptodev_rsa.c
only_in 'rte_ethdev.h' drivers/net/ethdev/ethdev.c drivers/net/ethdev/eth_intr.c
only_in 'linux/if_tun.h' drivers/net/tap/tap_if.c

# Layers: app -> public headers; drivers -> vhp_port.h, vhp_crypto.h; lib -> itself.
lib_internal=$(files 'lib/vhost_poll/*.h' | xargs -n 1 basename | grep -vE '^(vhost_poll|vhp_port|vhp_crypto|vhp_iov|log)\.h$' | paste -sd '|')
for f in $(files 'app/*.[ch]' 'drivers/net/*.[ch]' 'drivers/crypto/*.[ch]'); do
	if grep -nE "#include \"($lib_internal)\"" "$f"; then
		violation "$f: includes an internal header of lib/vhost_poll"
	fi
done

shellcheck -x $(files '*.sh' '.ci/run' ':!tests/kernel') || bad=1
# The kernel rig, half of which runs in a test machine: words are meant to split there.
shellcheck -e SC1091,SC2015,SC2086,SC2012,SC2016,SC2034,SC2154 $(files 'tests/kernel/*.sh') || bad=1

exit $bad
