#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the fuzzers (tests/fuzz) and runs each for a time. One line for each; the exit status
# is 1 if one found a fault, whose input then lies in build-fuzz/.

set -uo pipefail

prog=${0##*/}
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-fuzz

if [ $# -lt 1 ] || ! [[ $1 =~ ^[1-9][0-9]*$ ]]; then
	echo "usage: $prog SECONDS [NAME]      NAME: one of config, crypto, device, gate, message, ring" >&2
	exit 2
fi
seconds=$1
names=${2:-config crypto device gate message ring}

if [ ! -e "$build/build.ninja" ]; then
	CC=clang-14 meson setup "$build" "$root" -Dfuzz=true -Dtests=enabled \
		-Db_sanitize=address,undefined -Db_lundef=false >"$root/build-fuzz.log" 2>&1 ||
		{ tail -n 20 "$root/build-fuzz.log"; exit 1; }
	rm -f "$root/build-fuzz.log"
fi
ninja -C "$build" fuzzers >"$build/ninja.log" || { tail -n 30 "$build/ninja.log"; exit 1; }

bad=0
for name in $names; do
	log=$build/$name.log
	new=$(mktemp -d)
	# New inputs go to a folder of their own: the corpus is what was committed.
	if (cd "$build" && timeout -k 1 -s KILL $((seconds + 60)) "tests/fuzz/fuzz_$name" \
		-max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -max_len=4096 \
		-print_final_stats=1 "$new" "$root/tests/fuzz/corpus/$name") >"$log" 2>&1; then
		echo "ok     fuzz_$name: $(awk '/number_of_executed_units/ { print $2 }' "$log") runs, ${seconds} s"
	else
		echo "FAILED fuzz_$name: see $log"
		tail -n 40 "$log"
		bad=1
	fi
	rm -rf "$new"
done
exit $bad
