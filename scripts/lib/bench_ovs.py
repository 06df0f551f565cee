# SPDX-License-Identifier: BSD-3-Clause
"""Open vSwitch with DPDK as a back end, without its service: a database and a switch of our
own in the host's namespace, a vhost-user port, and two flows to the bridge's own interface."""

import shutil
import subprocess
from pathlib import Path

from bench_host import BACK_END_CPU, BackEnd, Failed, OTHER_CPU, Process, Skipped

SWITCH = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
MEMORY_MB = 400


def need_hugepages():
    """It cannot do without."""
    info = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    page_kb, free = int(info["Hugepagesize"].split()[0]), int(info["HugePages_Free"])
    if free * page_kb < MEMORY_MB * 1024:
        raise Skipped("%d free hugepages of %d KiB, needs %d (sysctl vm.nr_hugepages)" % (
            free, page_kb, -(-MEMORY_MB * 1024 // page_kb)))


class Ovs(BackEnd):
    iface = "br0"
    port = "vhost0"

    def tool(self, name, *args):
        done = subprocess.run(self.bench.host.command(*self.env, name, *args), timeout=30,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed("%s: %s" % (name, done.stderr.strip()))

    def vsctl(self, *args):
        self.tool("ovs-vsctl", "--db=" + self.db, "--timeout=20", *args)

    def start(self):
        if not SWITCH.exists() or shutil.which("ovsdb-server") is None:
            raise Skipped("package openvswitch-switch-dpdk is not installed")
        need_hugepages()
        run = self.run_dir = self.bench.dir / self.bench.new_name("ovs")
        run.mkdir()
        self.env = ["env"] + ["OVS_%s=%s" % (key, run) for key in ("RUNDIR", "DBDIR", "LOGDIR")]
        self.db = "unix:%s/db.sock" % run
        self.server = None
        self.tool("ovsdb-tool", "create", run / "conf.db", SCHEMA)
        try:
            self.server = Process(self.bench.host, self.log(), "ovsdb-server", *self.env,
                                  "ovsdb-server", run / "conf.db", "--remote=p" + self.db,
                                  "--unixctl=%s/db.ctl" % run)
            self.vsctl("--no-wait", "init")
            self.vsctl("--no-wait", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true",
                       "other_config:dpdk-lcore-mask=%#x" % (1 << OTHER_CPU),
                       "other_config:pmd-cpu-mask=%#x" % (1 << BACK_END_CPU),
                       "other_config:dpdk-socket-mem=%d" % MEMORY_MB,
                       'other_config:dpdk-extra="--no-pci --file-prefix=%s"'
                       % self.bench.new_name(self.bench.tag))
            return self.start_switch()
        except Failed:
            if self.server:
                self.server.stop()
            raise

    def start_switch(self):
        switch = Process(self.bench.host, self.log(), "DPDK Enabled - initialized", *self.env,
                         SWITCH, self.db, "--unixctl=%s/switch.ctl" % self.run_dir)
        try:
            self.vsctl("add-br", self.iface, "--", "set", "bridge", self.iface,
                       "datapath_type=netdev", "--", "add-port", self.iface, self.port, "--",
                       "set", "Interface", self.port, "type=dpdkvhostuser", "ofport_request=1")
            self.tool("ovs-ofctl", "del-flows", self.iface)
            self.tool("ovs-ofctl", "add-flow", self.iface, "in_port=1,actions=LOCAL")
            self.tool("ovs-ofctl", "add-flow", self.iface, "in_port=LOCAL,actions=output:1")
        except Failed:
            switch.stop()
            raise
        self.socket = self.run_dir / self.port
        return switch

    def stop(self):
        out = super().stop()
        self.server.stop()
        # Its datapath's tap is a device that may outlive it.
        subprocess.run(self.bench.host.command("ip", "link", "del", self.iface),
                       capture_output=True, check=False)
        return out


__all__ = ["Ovs"]
