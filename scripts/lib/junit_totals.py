#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints "passed failed skipped" of a JUnit file."""
import sys
import xml.etree.ElementTree as ElementTree


def totals(path):
    cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    failed = sum(1 for c in cases if c.find("failure") is not None or c.find("error") is not None)
    skipped = sum(1 for c in cases if c.find("skipped") is not None)
    return len(cases) - failed - skipped, failed, skipped


if __name__ == "__main__":
    try:
        print(*totals(sys.argv[1]))
    except (OSError, ElementTree.ParseError) as error:
        sys.exit(f"junit_totals: {error}")
