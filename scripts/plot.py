#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Charts of what scripts/bench.sh --json wrote: plot.py FILE DIRECTORY, one PNG a group, and
summary.png: how many times better the daemon is than testpmd.
"""

import json
import os
import sys

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt


def chart(group, rows, path):
    """One panel per unit; bars are medians, whiskers reach from the least to the most."""
    units = list(dict.fromkeys(r["unit"] for r in rows))
    names = list(dict.fromkeys(r["backend"] for r in rows))
    figure, axes = plt.subplots(len(units), 1, squeeze=False, layout="constrained",
                                figsize=(9, 3.2 * len(units)))
    for axis, unit in zip(axes[:, 0], units):
        mine = [r for r in rows if r["unit"] == unit]
        labels = list(dict.fromkeys((r["workload"], r["guest"]) for r in mine))
        width = 0.8 / len(names)
        for k, name in enumerate(names):
            bars = [r for r in mine if r["backend"] == name]
            at = [labels.index((r["workload"], r["guest"])) + k * width for r in bars]
            medians = [r["median"] for r in bars]
            spread = [[r["median"] - r["min"] for r in bars], [r["max"] - r["median"] for r in bars]]
            axis.bar(at, medians, width, yerr=spread, capsize=2, label=name)
        axis.set_xticks([i + 0.4 - width / 2 for i in range(len(labels))],
                        ["%s\n(%s)" % label for label in labels], fontsize=7)
        axis.set_ylabel("%s (%s is better)" % (unit, mine[0]["better"]))
        axis.legend(fontsize=7)
    figure.suptitle(group)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def summary(rows, path):
    """One bar for each workload that both did; 1 is "no difference"."""
    bars = []
    for r in rows:
        ratio = r["ratios"].get("testpmd")
        if r["backend"] == "rxpoll" and ratio:
            bars.append(("%s (%s)" % (r["workload"], r["guest"]),
                         ratio if r["better"] == "more" else 1 / ratio))
    if not bars:
        return
    bars.reverse()
    figure, axis = plt.subplots(layout="constrained", figsize=(9, 1 + 0.24 * len(bars)))
    axis.barh([b[0] for b in bars], [b[1] for b in bars])
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_xlabel("times better than dpdk-testpmd, net_vhost + net_tap")
    axis.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axis.tick_params(axis="y", labelsize=7)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print("chart: " + path)


def charts(rows, directory):
    os.makedirs(directory, exist_ok=True)
    summary(rows, os.path.join(directory, "summary.png"))
    for group in dict.fromkeys(r["group"] for r in rows):
        path = os.path.join(directory, group + ".png")
        chart(group, [r for r in rows if r["group"] == group], path)
        print("chart: " + path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as lines:
        charts([json.loads(line) for line in lines], sys.argv[2])
