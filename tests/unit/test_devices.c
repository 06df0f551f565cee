/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device lines (--vdev), one at a time: every mistake with its exact line, good ones with
 * what they mean.
 */
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"
#include "keys.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

#define PATH_107                                                                                   \
	"/run/1234567890123456789012345678901234567890123456789012345"                             \
	"67890123456789012345678901234567890123456789012"

static_assert(sizeof(PATH_107) == 108, "the longest path of a socket");

/* A device line and its message; NULL: it is right. */
struct wrong {
	const char *line;
	const char *message;
};

#define VHOST_KEYS                                                                                 \
	"iface, queues, client, packed, mtu, tso, peer, poll-us, rx-poll, rate, rate-pps, "        \
	"poller, "                                                                                 \
	"socket-mode, "                                                                            \
	"socket-owner, socket-group, postcopy-support, iommu-support, linear-buffer, "             \
	"ext-buffer, legacy-ol-flags"

static const struct wrong device_lines[] = {
	/* names */
	{"", "--vdev = \"\": no device name (net_vhost<N>, net_tap<N>, net_af_packet<N>, "
	     "vhost_crypto<N> or a "
	     "device of DPDK's)"},
	{",iface=/x", "--vdev = \",iface=/x\": no device name (net_vhost<N>, net_tap<N>, "
		      "net_af_packet<N>, vhost_crypto<N> or a device of DPDK's)"},
	{"net_vhost,iface=/x", "net_vhost: unknown device (net_vhost<N>, N a number)"},
	{"net_vhostA,iface=/x", "net_vhostA: unknown device (net_vhost<N>, N a number)"},
	{"net_vhost0x1,iface=/x", "net_vhost0x1: unknown device (net_vhost<N>, N a number)"},
	{"net_tap", "net_tap: unknown device (net_tap<N>, N a number)"},
	{"net_tap-1", "net_tap-1: unknown device (net_tap<N>, N a number)"},
	{"net_vhost00000000000000000000000,iface=/x",
		"net_vhost00000000000000000000000: name too long (1..31 bytes)"},
	{"net_vhost0000000000000000000000,iface=/x", NULL},
	{"crypto_openssl0,max_nb_queue_pairs=x,nonsense", NULL},
	{"net_vhst0", NULL}, /* whether DPDK knows it is asked later */

	/* keys */
	{"net_vhost0", "net_vhost0: iface: missing (path of the vhost-user socket)"},
	{"net_vhost0,", "net_vhost0: iface: missing (path of the vhost-user socket)"},
	{"net_vhost0,queues=1", "net_vhost0: iface: missing (path of the vhost-user socket)"},
	{"net_vhost0,iface=/x,rate=7k", "net_vhost0: rate = \"7k\": out of range (0 or "
					"8000..1000000000000, or A/B, with k, "
					"M or G)"},
	{"net_vhost0,iface=/x,rate=1/", "net_vhost0: rate = \"1/\": out of range (0 or "
					"8000..1000000000000, or A/B, with k, "
					"M or G)"},
	{"net_vhost0,iface=/x,rate-pps=18446744073709551615G",
		"net_vhost0: rate-pps = \"18446744073709551615G\": out of range (0 or "
		"1..1000000000, or A/B, with k, M or G)"},
	{"net_vhost0,iface=/x,rate=10G/0,rate-pps=5k", NULL},
	{"net_vhost0,iface=/x,quues=1", "net_vhost0: quues = \"1\": unknown key (" VHOST_KEYS ")"},
	{"net_vhost0,iface=/x,Queues=1",
		"net_vhost0: Queues = \"1\": unknown key (" VHOST_KEYS ")"},
	{"net_vhost0,iface=/x,=1", "net_vhost0:  = \"1\": unknown key (" VHOST_KEYS ")"},
	{"net_vhost0,iface=/x,server", "net_vhost0: server: unknown key (" VHOST_KEYS ")"},
	{"net_tap0,remote=eth0", "net_tap0: remote = \"eth0\": unknown key (iface, mac, persist, "
				 "queues, sndbuf, bridge, offload)"},
	{"net_vhost0,iface=/x,iface=/y", "net_vhost0: iface = \"/y\": given twice (once)"},
	{"net_vhost0,iface=/x,queues=1,client=1,queues=1",
		"net_vhost0: queues = \"1\": given twice (once)"},
	{"net_tap0,persist,persist", "net_tap0: persist: given twice (once)"},
	{"net_vhost0,iface", "net_vhost0: iface: needs a value (1..107 bytes)"},
	{"net_vhost0,iface=/x,queues", "net_vhost0: queues: needs a value (1..128)"},
	{"net_tap0,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D,E,F,G",
		"net_tap0: too many keys (1..32)"},

	/* numbers */
	{"net_vhost0,iface=/x,queues=0x", "net_vhost0: queues = \"0x\": not a number (1..128)"},
	{"net_vhost0,iface=/x,queues=", "net_vhost0: queues = \"\": not a number (1..128)"},
	{"net_vhost0,iface=/x,queues=1x", "net_vhost0: queues = \"1x\": not a number (1..128)"},
	{"net_vhost0,iface=/x,queues= 1", "net_vhost0: queues = \" 1\": not a number (1..128)"},
	{"net_vhost0,iface=/x,queues=+1", "net_vhost0: queues = \"+1\": not a number (1..128)"},
	{"net_vhost0,iface=/x,queues=1.5", "net_vhost0: queues = \"1.5\": not a number (1..128)"},
	{"net_vhost0,iface=/x,queues=0", "net_vhost0: queues = \"0\": out of range (1..128)"},
	{"net_vhost0,iface=/x,queues=-1", "net_vhost0: queues = \"-1\": out of range (1..128)"},
	{"net_vhost0,iface=/x,queues=129", "net_vhost0: queues = \"129\": out of range (1..128)"},
	{"net_vhost0,iface=/x,queues=65537",
		"net_vhost0: queues = \"65537\": out of range (1..128)"},
	{"net_vhost0,iface=/x,queues=99999999999999999999",
		"net_vhost0: queues = \"99999999999999999999\": out of range (1..128)"},
	{"net_vhost0,iface=/x,queues=128", NULL},
	{"net_vhost0,iface=/x,queues=0x80", NULL},
	{"net_vhost0,iface=/x,poller=-1", "net_vhost0: poller = \"-1\": out of range (0..127)"},
	{"net_vhost0,iface=/x,poller=128", "net_vhost0: poller = \"128\": out of range (0..127)"},
	{"net_vhost0,iface=/x,mtu=67", "net_vhost0: mtu = \"67\": out of range (68..65521)"},
	{"net_vhost0,iface=/x,mtu=65522", "net_vhost0: mtu = \"65522\": out of range (68..65521)"},
	{"net_vhost0,iface=/x,mtu=9x", "net_vhost0: mtu = \"9x\": not a number (68..65521)"},
	{"net_vhost0,iface=/x,packed=2", "net_vhost0: packed = \"2\": not a switch (0 or 1)"},
	{"net_tap0,queues=0", "net_tap0: queues = \"0\": out of range (1..128)"},
	{"net_tap0,sndbuf=2147483648",
		"net_tap0: sndbuf = \"2147483648\": out of range (0..2147483647)"},
	{"net_tap0,sndbuf=1M", "net_tap0: sndbuf = \"1M\": not a number (0..2147483647)"},

	/* switches */
	{"net_vhost0,iface=/x,client=2", "net_vhost0: client = \"2\": not a switch (0 or 1)"},
	{"net_vhost0,iface=/x,client=yes", "net_vhost0: client = \"yes\": not a switch (0 or 1)"},
	{"net_vhost0,iface=/x,client", "net_vhost0: client: needs a value (0 or 1)"},
	{"net_vhost0,iface=/x,tso=", "net_vhost0: tso = \"\": not a switch (0 or 1)"},
	{"net_vhost0,iface=/x,iommu-support=2",
		"net_vhost0: iommu-support = \"2\": not a switch (0 or 1)"},
	{"net_tap0,persist=no", "net_tap0: persist = \"no\": not a switch (no value, 0 or 1)"},
	{"net_tap0,offload=on", "net_tap0: offload = \"on\": not a switch (0 or 1)"},

	/* poll windows */
	{"net_vhost0,iface=/x,poll-us=aut0",
		"net_vhost0: poll-us = \"aut0\": not a number (0..1000000, auto or forever)"},
	{"net_vhost0,iface=/x,poll-us=1000001",
		"net_vhost0: poll-us = \"1000001\": out of range (0..1000000, auto or forever)"},
	{"net_vhost0,iface=/x,poll-us=-1",
		"net_vhost0: poll-us = \"-1\": out of range (0..1000000, auto or forever)"},
	{"net_vhost0,iface=/x,rx-poll=never",
		"net_vhost0: rx-poll = \"never\": unknown word (interleave or deferred)"},

	/* sockets */
	{"net_vhost0,iface=", "net_vhost0: iface = \"\": empty (1..107 bytes)"},
	{"net_vhost0,iface=" PATH_107, NULL},
	{"net_vhost0,iface=" PATH_107 "6",
		"net_vhost0: iface = \"" PATH_107 "6\": too long (1..107 bytes)"},
	{"net_vhost0,iface=" PATH_107 PATH_107,
		"net_vhost0: iface = \"" PATH_107
		"/run/123456789012345678901234567890123456789012345678...\": too long "
		"(1..107 bytes)"},
	{"net_vhost0,iface=/a\nb,queues=x", "net_vhost0: queues = \"x\": not a number (1..128)"},
	{"net_vhost0,iface=/x,queues=\n\x1b[1m",
		"net_vhost0: queues = \"??[1m\": not a number (1..128)"},
	{"net_vhost0,iface=/x,socket-mode=0",
		"net_vhost0: socket-mode = \"0\": out of range (octal 1..777)"},
	{"net_vhost0,iface=/x,socket-mode=1777",
		"net_vhost0: socket-mode = \"1777\": out of range (octal 1..777)"},
	{"net_vhost0,iface=/x,socket-mode=0x1ff",
		"net_vhost0: socket-mode = \"0x1ff\": not a number (octal 1..777)"},
	{"net_vhost0,iface=/x,socket-mode=668",
		"net_vhost0: socket-mode = \"668\": not a number (octal 1..777)"},
	{"net_vhost0,iface=/x,socket-mode=u+rw",
		"net_vhost0: socket-mode = \"u+rw\": not a number (octal 1..777)"},
	{"net_vhost0,iface=/x,socket-group=",
		"net_vhost0: socket-group = \"\": empty (1..63 bytes)"},
	{"net_vhost0,iface=/x,peer=net_tap00000000000000000000000000",
		"net_vhost0: peer = \"net_tap00000000000000000000000000\": too long (1..31 "
		"bytes)"},

	/* interfaces */
	{"net_tap0,iface=", "net_tap0: iface = \"\": empty (1..15 bytes without blanks, / and :)"},
	{"net_tap0,iface=123456789012345", NULL},
	{"net_tap0,iface=1234567890123456", "net_tap0: iface = \"1234567890123456\": too long "
					    "(1..15 bytes without blanks, / and :)"},
	{"net_tap0,iface=a/b", "net_tap0: iface = \"a/b\": not an interface name (1..15 bytes "
			       "without blanks, / and :)"},
	{"net_tap0,iface=a b", "net_tap0: iface = \"a b\": not an interface name (1..15 bytes "
			       "without blanks, / and :)"},
	{"net_tap0,iface=eth0:1", "net_tap0: iface = \"eth0:1\": not an interface name (1..15 "
				  "bytes without blanks, / and :)"},
	{"net_tap0,iface=..", "net_tap0: iface = \"..\": not an interface name (1..15 bytes "
			      "without blanks, / and :)"},
	{"net_tap0,iface=t%s", "net_tap0: iface = \"t%s\": not an interface name (1..15 bytes "
			       "without blanks, / and :)"},
	{"net_tap0,iface=t%d%d", "net_tap0: iface = \"t%d%d\": not an interface name (1..15 bytes "
				 "without blanks, / and :)"},
	{"net_tap0,iface=t%d", NULL},
	{"net_tap0,bridge=br%d", "net_tap0: bridge = \"br%d\": not an interface name (1..15 bytes "
				 "without blanks, / and :)"},
	{"net_tap0,mac=02:00:00:00:00", "net_tap0: mac = \"02:00:00:00:00\": not an Ethernet "
					"address (xx:xx:xx:xx:xx:xx or fixed)"},
	{"net_tap0,mac=02:00:00:00:00:01:02", "net_tap0: mac = \"02:00:00:00:00:01:02\": not an "
					      "Ethernet address (xx:xx:xx:xx:xx:xx or fixed)"},
	{"net_tap0,mac=02:00:00:00:00:0g", "net_tap0: mac = \"02:00:00:00:00:0g\": not an "
					   "Ethernet address (xx:xx:xx:xx:xx:xx or fixed)"},
	{"net_tap0,mac=", "net_tap0: mac = \"\": not an Ethernet address (xx:xx:xx:xx:xx:xx or "
			  "fixed)"},
	{"net_tap0,mac=03:00:00:00:00:01", "net_tap0: mac = \"03:00:00:00:00:01\": not a unicast "
					   "address (xx:xx:xx:xx:xx:xx or fixed)"},
	{"net_tap0,mac=00:00:00:00:00:00", "net_tap0: mac = \"00:00:00:00:00:00\": not a unicast "
					   "address (xx:xx:xx:xx:xx:xx or fixed)"},
};

static void
device_messages(void **state)
{
	struct device dev;

	(void)state;
	for (size_t i = 0; i < COUNT(device_lines); i++) {
		struct mistake why = {""};
		int rc = config_parse_device(device_lines[i].line, &dev, &why);

		assert_string_equal(
			why.text, device_lines[i].message != NULL ? device_lines[i].message : "");
		assert_int_equal(rc == 0, device_lines[i].message == NULL);
	}
}

static void
parse(const char *line, struct device *dev)
{
	struct mistake why = {""};

	assert_int_equal(config_parse_device(line, dev, &why), 0);
	assert_string_equal(why.text, "");
}

static void
vhost_defaults(void **state)
{
	struct device dev;

	(void)state;
	parse("net_vhost0,iface=/run/a.sock", &dev);
	assert_int_equal(dev.kind, DEVICE_NET_VHOST);
	assert_true(dev.is_port);
	assert_int_equal(dev.peer, -1);
	assert_string_equal(dev.name, "net_vhost0");
	assert_string_equal(dev.net.name, "net_vhost0");
	assert_string_equal(dev.net.iface, "/run/a.sock");
	assert_string_equal(dev.peer_name, "");
	assert_int_equal(dev.net.queues, 1);
	assert_false(dev.net.client);
	assert_true(dev.net.tso);
	assert_true(dev.net.packed);
	assert_int_equal(dev.net.mtu_bytes, 0);
	assert_int_equal(dev.net.poll_us, VHP_POLL_AUTO);
	assert_int_equal(dev.net.rx_poll, VHP_RX_INTERLEAVE);
	assert_int_equal(dev.net.poller, -1);
	assert_int_equal(dev.net.socket_owner, (uid_t)-1);
	assert_int_equal(dev.net.socket_group, (gid_t)-1);
	assert_int_equal(dev.net.socket_mode, 0);
	assert_int_equal(dev.ignored, 0);
}

static void
vhost_all_keys(void **state)
{
	struct device dev;

	(void)state;
	parse("net_vhost12,rx-poll=deferred,iface=/"
	      "a,queues=0x10,client=1,packed=0,mtu=9000,tso=0,peer=net_tap3,"
	      "poll-us=forever,poller=7,socket-mode=0660,socket-owner=qemu,socket-group=36,"
	      "postcopy-support=0,iommu-support=1,linear-buffer=0,ext-buffer=0,"
	      "legacy-ol-flags=1",
		&dev);
	assert_string_equal(dev.net.name, "net_vhost12");
	assert_string_equal(dev.net.iface, "/a");
	assert_int_equal(dev.net.queues, 16);
	assert_true(dev.net.client);
	assert_false(dev.net.tso);
	assert_false(dev.net.packed);
	assert_int_equal(dev.net.mtu_bytes, 9000);
	assert_string_equal(dev.peer_name, "net_tap3");
	assert_int_equal(dev.net.poll_us, VHP_POLL_FOREVER);
	assert_int_equal(dev.net.rx_poll, VHP_RX_DEFERRED);
	assert_int_equal(dev.net.poller, 7);
	assert_int_equal(dev.net.socket_mode, 0660);
	assert_string_equal(dev.socket_owner, "qemu");
	assert_string_equal(dev.socket_group, "36");
	assert_true(key_given(&dev, "poll-us"));
	assert_false(key_given(&dev, "nonsense"));
	/* 1 is worth a warning, 0 is what happens anyway */
	for (unsigned int i = 0; i < kinds[DEVICE_NET_VHOST].n_keys; i++) {
		const char *name = kinds[DEVICE_NET_VHOST].keys[i].name;
		bool warned =
			strcmp(name, "iommu-support") == 0 || strcmp(name, "legacy-ol-flags") == 0;

		assert_int_equal(dev.ignored >> i & 1, warned);
	}
}

static void
tap_keys(void **state)
{
	static const uint8_t mac[ETH_ALEN] = {0x02, 0xab, 0xCD, 0x00, 0x7f, 0xff};
	struct device dev;

	(void)state;
	parse("net_tap0", &dev);
	assert_int_equal(dev.kind, DEVICE_NET_TAP);
	assert_string_equal(dev.tap.name, "net_tap0");
	assert_string_equal(dev.tap.iface, "dtap%d");
	assert_string_equal(dev.tap.bridge, "");
	assert_false(dev.tap.mac_given);
	assert_false(dev.tap.persist);
	assert_int_equal(dev.tap.queues, 1);
	assert_int_equal(dev.tap.sndbuf_bytes, 0);
	assert_true(dev.tap.offload);

	parse("net_tap9,iface=tap%d,mac=02:ab:CD:00:7f:ff,persist,queues=4,sndbuf=1048576,"
	      "bridge=br0,offload=0",
		&dev);
	assert_string_equal(dev.tap.iface, "tap%d");
	assert_string_equal(dev.tap.bridge, "br0");
	assert_true(dev.tap.mac_given);
	assert_memory_equal(&dev.tap.mac, mac, ETH_ALEN);
	assert_true(dev.tap.persist);
	assert_int_equal(dev.tap.queues, 4);
	assert_int_equal(dev.tap.sndbuf_bytes, 1048576);
	assert_false(dev.tap.offload);

	parse("net_tap0,persist=0", &dev);
	assert_false(dev.tap.persist);
	parse("net_tap0,persist=1", &dev);
	assert_true(dev.tap.persist);
}

/* Every key of net_af_packet, and what holds without them. */
static void
af_packet_keys(void **state)
{
	struct mistake why = {""};
	struct device dev;

	(void)state;
	assert_int_equal(config_parse_device("net_af_packet0,iface=veth0", &dev, &why), 0);
	assert_int_equal(dev.kind, DEVICE_NET_AF_PACKET);
	assert_string_equal(dev.af_packet.name, "net_af_packet0");
	assert_string_equal(dev.af_packet.iface, "veth0");
	assert_int_equal(dev.af_packet.queues, 1);
	assert_int_equal(dev.af_packet.frame_bytes, 2048);
	assert_int_equal(dev.af_packet.frame_count, 8192);
	assert_false(dev.af_packet.qdisc_bypass);
	assert_int_equal(dev.ignored, 0);

	assert_int_equal(config_parse_device("eth_af_packet1,iface=eth0,qpairs=4,blocksz=4096,"
					     "framesz=128,framecnt=512,qdisc_bypass=1",
				 &dev, &why),
		0);
	assert_int_equal(dev.af_packet.queues, 4);
	assert_int_equal(dev.af_packet.frame_bytes, 128);
	assert_int_equal(dev.af_packet.frame_count, 512);
	assert_true(dev.af_packet.qdisc_bypass);
	assert_int_not_equal(dev.ignored, 0);

	assert_int_equal(config_parse_device("net_af_packet0", &dev, &why), -EINVAL);
	assert_string_equal(why.text, "net_af_packet0: iface: missing (interface of the host)");
	assert_int_equal(
		config_parse_device("net_af_packet0,iface=a,blocksz=0", &dev, &why), -EINVAL);
	assert_string_equal(
		why.text, "net_af_packet0: blocksz = \"0\": out of range (1..2147483647)");
}

/* What --help calls the default is the default. */
static void
presets_are_true(void **state)
{
	unsigned int compared = 0;

	(void)state;
	for (int kind = 0; kind < DEVICE_KINDS; kind++)
		for (unsigned int i = 0; i < kinds[kind].n_keys; i++) {
			const struct key *key = &kinds[kind].keys[i];
			struct device none = {.kind = (enum device_kind)kind};
			struct mistake why = {""};
			struct device set;

			kinds[kind].set_defaults(&none);
			set = none;
			if (key->preset == NULL || key->type == KEY_TEXT ||
				key->type == KEY_BRIDGE ||
				key_set(&set, key->name, key->preset, &why) != 0)
				continue; /* "by umask": for people only */
			set.given = 0;
			assert_memory_equal(&set, &none, sizeof(set));
			compared++;
		}
	assert_int_equal(compared, 19);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_messages),
		cmocka_unit_test(vhost_defaults),
		cmocka_unit_test(vhost_all_keys),
		cmocka_unit_test(tap_keys),
		cmocka_unit_test(af_packet_keys),
		cmocka_unit_test(presets_are_true),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
