#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs what the tests need, builds, and runs them all. The last line is
# "N passed, N failed, N skipped"; the exit status is 0 only if none failed.

set -uo pipefail

prog=${0##*/}
root=$(cd "$(dirname "$0")/.." && pwd)

usage()
{
	cat <<-END
	usage: $prog [--only STAGE[,STAGE...]] [--kernel]

	Stages, in this order:
	  style    layout (clang-format), shell scripts (shellcheck), layers
	  unit     unit tests, gcc, warnings are errors
	  asan     the same under AddressSanitizer and UBSan (clang)
	  system   the daemon with test front ends, testpmd and QEMU guests (pytest)
	  hostile  front end tests again, against the daemon built with sanitizers
	  fuzz     each fuzzer for FUZZ_SECONDS (default 20)
	  kernel   the kernel patch series (drivers/linux), short form

	  --kernel  only the kernel stage, in its long form
	END
}

stages=style,unit,asan,system,hostile,fuzz,kernel
kernel_form=--short

while [ $# -gt 0 ]; do
	case $1 in
	--only) stages=${2?"--only needs a list of stages"}; shift 2 ;;
	--kernel) stages=kernel; kernel_form=; shift ;;
	-h | --help) usage; exit 0 ;;
	*) echo "$prog: \"$1\": not an option" >&2; usage >&2; exit 2 ;;
	esac
done

if [ "$(id -u)" -ne 0 ]; then
	echo "$prog: run as root: the tests make network namespaces and taps" >&2
	exit 1
fi

passed=0 failed=0 skipped=0

wants()
{
	[[ ,$stages, == *,$1,* ]]
}

# count PASSED FAILED SKIPPED
count()
{
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# One check that is its exit status.
check()
{
	local name=$1

	shift
	if "$@"; then
		echo "ok: $name"
		count 1 0 0
	else
		echo "FAILED: $name"
		count 0 1 0
	fi
}

# Adds the totals of a JUnit file; a run that wrote none has failed.
count_junit()
{
	local totals

	if ! totals=$(/usr/bin/python3 "$root/scripts/lib/junit_totals.py" "$1"); then
		count 0 1 0
		return
	fi
	# shellcheck disable=SC2086 # three numbers
	count $totals
}

# Reads the closing line of a program that counts by itself.
count_closing_line()
{
	local line

	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$1" | tail -n 1)
	if [ -z "$line" ]; then
		count 0 1 0
		return
	fi
	# shellcheck disable=SC2046 # three numbers
	count $(sed -E 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/' \
		<<<"$line") 0
}

# build DIR [meson option ...]
build()
{
	local dir=$root/$1

	shift
	if [ -e "$dir/build.ninja" ]; then
		meson configure "$dir" -Dwerror=true "$@" >/dev/null
	else
		meson setup "$dir" "$root" -Dwerror=true -Dtests=enabled "$@" >"$logs/meson.log" ||
			{ tail -n 20 "$logs/meson.log"; return 1; }
	fi
	ninja -C "$dir" >"$logs/ninja.log" || { tail -n 40 "$logs/ninja.log"; return 1; }
}

asan_build()
{
	CC=clang-14 build build-asan -Db_sanitize=address,undefined -Db_lundef=false
}

meson_tests()
{
	local junit=$root/$1/meson-logs/testlog.junit.xml

	rm -f "$junit"
	meson test -C "$root/$1" --no-rebuild --print-errorlogs
	count_junit "$junit"
}

# system_tests NAME [pytest argument ...]
system_tests()
{
	local junit=$logs/$1.xml

	shift
	(cd "$root" && /usr/bin/python3 -m pytest -p no:cacheprovider --junitxml="$junit" "$@")
	count_junit "$junit"
}

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

"$root/scripts/install-deps.sh" || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }

if wants style; then
	check style "$root/scripts/check-style.sh"
fi
if wants unit || wants system; then
	check "build with gcc, warnings are errors" build build
fi
if wants unit; then
	meson_tests build
fi
if wants asan || wants hostile; then
	check "build with clang and sanitizers" asan_build
fi
if wants asan; then
	meson_tests build-asan
fi
if wants system; then
	system_tests system tests/system
fi
if wants hostile; then
	VHP_BUILD=$root/build-asan system_tests hostile tests/system -m frontend
fi
if wants fuzz; then
	check "fuzzers, ${FUZZ_SECONDS:-20} s each" \
		"$root/scripts/fuzz.sh" "${FUZZ_SECONDS:-20}"
fi
if wants kernel; then
	"$root/tests/kernel/run.sh" $kernel_form | tee "$logs/kernel.log"
	count_closing_line "$logs/kernel.log"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
