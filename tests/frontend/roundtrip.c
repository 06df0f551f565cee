/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-roundtrip: random frames through a back end that is joined to a tap, both directions,
 * each byte compared at the other end, order kept, none lost, none doubled, used
 * lengths right. Prints one result line; exit status 0 only if nothing deviated.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roundtrip.h"

enum option_id {
	O_SOCKET = 256,
	O_SERVER,
	O_IFACE,
	O_FRAMES,
	O_SEED,
	O_DIRECT,
	O_INDIRECT,
	O_MIXED,
	O_MRG,
	O_EVENT,
	O_RING,
	O_REGIONS,
	O_ADJACENT,
	O_PACKED,
	O_LEGACY,
	O_V1,
	O_ANY_LAYOUT,
	O_IN_ORDER,
	O_DIRECTION,
	O_OFFLOADS,
	O_KINDS,
	O_VLANS,
	O_MIN,
	O_MAX,
	O_SEGS,
	O_HDR,
	O_RXBUF,
	O_WINDOW,
	O_RESTART,
	O_START,
	O_QPAIRS,
	O_QPAIR,
	O_STALL,
	O_PAUSE,
	O_LENIENT,
	O_ACK,
	O_PLAIN,
	O_PEER,
	O_PEER_PACKED,
	O_CUT,
	O_PHASE,
	O_WITHOUT,
	O_HELP,
};

static const struct option options[] = {
	{"socket", required_argument, NULL, O_SOCKET},
	{"server", no_argument, NULL, O_SERVER},
	{"iface", required_argument, NULL, O_IFACE},
	{"frames", required_argument, NULL, O_FRAMES},
	{"seed", required_argument, NULL, O_SEED},
	{"direct", no_argument, NULL, O_DIRECT},
	{"indirect", no_argument, NULL, O_INDIRECT},
	{"mixed", no_argument, NULL, O_MIXED},
	{"mrg", required_argument, NULL, O_MRG},
	{"event-idx", required_argument, NULL, O_EVENT},
	{"ring-size", required_argument, NULL, O_RING},
	{"regions", required_argument, NULL, O_REGIONS},
	{"adjacent", no_argument, NULL, O_ADJACENT},
	{"packed", no_argument, NULL, O_PACKED},
	{"legacy", no_argument, NULL, O_LEGACY},
	{"v1", required_argument, NULL, O_V1},
	{"any-layout", required_argument, NULL, O_ANY_LAYOUT},
	{"in-order", no_argument, NULL, O_IN_ORDER},
	{"direction", required_argument, NULL, O_DIRECTION},
	{"offloads", required_argument, NULL, O_OFFLOADS},
	{"without", required_argument, NULL, O_WITHOUT},
	{"kinds", required_argument, NULL, O_KINDS},
	{"vlans", required_argument, NULL, O_VLANS},
	{"min-len", required_argument, NULL, O_MIN},
	{"max-len", required_argument, NULL, O_MAX},
	{"max-segs", required_argument, NULL, O_SEGS},
	{"header", required_argument, NULL, O_HDR},
	{"rx-buffer", required_argument, NULL, O_RXBUF},
	{"window", required_argument, NULL, O_WINDOW},
	{"restart", required_argument, NULL, O_RESTART},
	{"start", required_argument, NULL, O_START},
	{"qpairs", required_argument, NULL, O_QPAIRS},
	{"qpair", required_argument, NULL, O_QPAIR},
	{"stall-ms", required_argument, NULL, O_STALL},
	{"pause-us", required_argument, NULL, O_PAUSE},
	{"plain-host", no_argument, NULL, O_PLAIN},
	{"peer", required_argument, NULL, O_PEER},
	{"peer-packed", no_argument, NULL, O_PEER_PACKED},
	{"cut", no_argument, NULL, O_CUT},
	{"phase", required_argument, NULL, O_PHASE},
	{"reply-ack", no_argument, NULL, O_ACK},
	{"lenient", no_argument, NULL, O_LENIENT},
	{"help", no_argument, NULL, O_HELP},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"usage: fe-roundtrip --socket PATH --iface TAP|--peer PATH [options]\n"
	"  --peer PATH         the far end is a second guest on this socket, not an interface\n"
	"  --peer-packed       with packed rings\n"
	"  --server            listen at PATH, the back end connects (client=1)\n"
	"  --frames N          frames per direction (1000)\n"
	"  --seed N            of lengths, contents and splits (1)\n"
	"  --direction D       tx, rx or both (both)\n"
	"  --direct --indirect chains only of that kind (either, at random)\n"
	"  --mixed             also direct descriptors that end in an indirect table\n"
	"  --mrg on|off        VIRTIO_NET_F_MRG_RXBUF (on)\n"
	"  --event-idx E       on, off, or random behaviour of the guest (on)\n"
	"  --packed --in-order ring layout and order\n"
	"  --v1 on|off         VIRTIO_F_VERSION_1 (on); --legacy: off, 10-byte header\n"
	"  --any-layout on|off VIRTIO_F_ANY_LAYOUT (on)\n"
	"  --ring-size N       64..32768 (256)\n"
	"  --regions N         memory regions (2); --adjacent: without holes\n"
	"  --offloads on|off   accept checksum and segmentation features (off)\n"
	"  --without N         do not accept this feature bit, after --offloads\n"
	"  --kinds A,B,...     raw udp4 udp6 tcp4 tcp6 tso4 tso6 ufo4 ufo6 uso4 uso6 (all "
	"allowed)\n"
	"  --vlans N           0..2 tags per frame (0)\n"
	"  --min-len --max-len frame bytes (60, 65535)\n"
	"  --max-segs N        segments per chain, 1..32 (8)\n"
	"  --header P          any, alone or joined (any)\n"
	"  --rx-buffer MIN:MAX bytes of a receive buffer (mergeable 64:4096, else 65562)\n"
	"  --window N          frames in flight per direction (64)\n"
	"  --restart N         stop and start the rings every N frames (never)\n"
	"  --start N           first ring index (0)\n"
	"  --qpairs N          queue pairs made (1); --qpair N: the one used (0)\n"
	"  --plain-host        guest to host only, no headers at the host: for the kinds ufo4, "
	"ufo6\n"
	"  --reply-ack         have every message acknowledged\n"
	"  --cut               frames with a segmentation request may arrive as segments\n"
	"  --phase NAME:KINDS:MIN:MAX\n"
	"                      such frames, then those of the next --phase, on one device\n"
	"  --lenient           accept deviations that drivers do not mind (other back ends)\n"
	"  --stall-ms N        give up when nothing moves for so long (5000)\n"
	"  --pause-us N        whenever all has arrived, silence of 0..N us (none)\n";

static const char *const on_off[] = {"off", "on", NULL};

static void
set_bit(uint64_t *features, uint32_t bit, bool on)
{
	if (on)
		*features |= FE_BIT(bit);
	else
		*features &= ~FE_BIT(bit);
}

static uint32_t
parse_kinds(char *list)
{
	uint32_t kinds = 0;

	for (char *save = NULL, *t = strtok_r(list, ",", &save); t != NULL;
		t = strtok_r(NULL, ",", &save))
		kinds |= 1U << fe_opt_choice("kinds", t, fe_kind_names);
	return kinds;
}

static void
parse_phase(struct rt_opts *o, char *text)
{
	struct rt_phase *p = &o->phases[o->n_phases];
	char *field[4] = {text};

	for (int i = 1; i < 4; i++) {
		field[i] = field[i - 1] == NULL ? NULL : strchr(field[i - 1], ':');
		if (field[i] != NULL)
			*field[i]++ = '\0';
	}
	if (field[3] == NULL || o->n_phases == RT_PHASES_MAX) {
		fputs(usage, stderr);
		exit(2);
	}
	p->name = field[0];
	p->kinds = parse_kinds(field[1]);
	p->min_len = (uint32_t)fe_opt_number("phase", field[2], FE_FRAME_MIN, FE_FRAME_MAX);
	p->max_len = (uint32_t)fe_opt_number("phase", field[3], p->min_len, FE_FRAME_MAX);
	o->n_phases++;
}

static void
parse_rx_buffer(struct rt_opts *o, char *text)
{
	char *colon = strchr(text, ':');

	if (colon != NULL)
		*colon++ = '\0';
	o->rx_min = (uint32_t)fe_opt_number("rx-buffer", text, 12, FE_BUF_MAX);
	o->rx_max = colon == NULL
			    ? o->rx_min
			    : (uint32_t)fe_opt_number("rx-buffer", colon, o->rx_min, FE_BUF_MAX);
}

/* Options that choose features; false if id is none of them. */
static bool
feature_option(struct rt_opts *o, int id, const char *arg)
{
	uint64_t *f = &o->net.features;
	static const char *const events[] = {"off", "on", "random", NULL};

	switch (id) {
	case O_MRG:
		set_bit(f, VIRTIO_NET_F_MRG_RXBUF, fe_opt_choice("mrg", arg, on_off));
		return true;
	case O_EVENT:
		o->event = (enum rt_event)fe_opt_choice("event-idx", arg, events);
		set_bit(f, VIRTIO_RING_F_EVENT_IDX, o->event != RT_EVENT_OFF);
		return true;
	case O_PACKED:
		o->net.need_features |= FE_BIT(VIRTIO_F_RING_PACKED);
		return true;
	case O_IN_ORDER:
		o->net.need_features |= FE_BIT(VIRTIO_F_IN_ORDER);
		return true;
	case O_LEGACY:
		set_bit(f, VIRTIO_F_VERSION_1, false);
		set_bit(f, VIRTIO_NET_F_MRG_RXBUF, false);
		return true;
	case O_V1:
		set_bit(f, VIRTIO_F_VERSION_1, fe_opt_choice("v1", arg, on_off));
		return true;
	case O_ANY_LAYOUT:
		set_bit(f, VIRTIO_F_ANY_LAYOUT, fe_opt_choice("any-layout", arg, on_off));
		return true;
	case O_OFFLOADS:
		*f = fe_opt_choice("offloads", arg, on_off) ? *f | FE_NET_OFFLOADS
							    : *f & ~FE_NET_OFFLOADS;
		return true;
	case O_WITHOUT:
		set_bit(f, (unsigned int)fe_opt_number("without", arg, 0, 63), false);
		return true;
	case O_DIRECT:
		o->chain = FE_CHAIN_DIRECT;
		set_bit(f, VIRTIO_RING_F_INDIRECT_DESC, false);
		return true;
	case O_INDIRECT:
		o->chain = FE_CHAIN_INDIRECT;
		o->net.need_features |= FE_BIT(VIRTIO_RING_F_INDIRECT_DESC);
		return true;
	case O_MIXED:
		o->chain = FE_CHAIN_MIXED;
		return true;
	default:
		return false;
	}
}

static bool
traffic_option(struct rt_opts *o, int id, char *arg)
{
	static const char *const directions[] = {"", "tx", "rx", "both", NULL};
	static const char *const places[] = {"any", "alone", "joined", NULL};

	switch (id) {
	case O_FRAMES:
		o->frames = (uint32_t)fe_opt_number("frames", arg, 1, 1U << 31);
		return true;
	case O_SEED:
		o->seed = fe_opt_number("seed", arg, 0, UINT64_MAX);
		return true;
	case O_DIRECTION:
		o->direction = (enum rt_direction)fe_opt_choice("direction", arg, directions);
		return true;
	case O_KINDS:
		o->kinds = parse_kinds(arg);
		return true;
	case O_VLANS:
		o->vlans = (uint32_t)fe_opt_number("vlans", arg, 0, FE_VLANS_MAX);
		return true;
	case O_MIN:
		o->min_len = (uint32_t)fe_opt_number("min-len", arg, FE_FRAME_MIN, FE_FRAME_MAX);
		return true;
	case O_MAX:
		o->max_len = (uint32_t)fe_opt_number("max-len", arg, FE_FRAME_MIN, FE_FRAME_MAX);
		return true;
	case O_SEGS:
		o->max_segs = (uint32_t)fe_opt_number("max-segs", arg, 1, FE_SEGS_MAX);
		return true;
	case O_HDR:
		o->hdr_place = (enum fe_hdr_place)fe_opt_choice("header", arg, places);
		return true;
	case O_RXBUF:
		parse_rx_buffer(o, arg);
		return true;
	case O_WINDOW:
		o->window = (uint32_t)fe_opt_number("window", arg, 1, 4096);
		return true;
	case O_RESTART:
		o->restart = (uint32_t)fe_opt_number("restart", arg, 1, UINT32_MAX);
		return true;
	case O_STALL:
		o->stall_ms = (uint32_t)fe_opt_number("stall-ms", arg, 10, 600000);
		return true;
	case O_PAUSE:
		o->pause_us = (uint32_t)fe_opt_number("pause-us", arg, 0, 1000000);
		return true;
	case O_CUT:
		o->cut = true;
		return true;
	case O_PHASE:
		parse_phase(o, arg);
		return true;
	default:
		return false;
	}
}

static void
device_option(struct rt_opts *o, int id, const char *arg)
{
	switch (id) {
	case O_SOCKET:
		o->net.path = arg;
		break;
	case O_SERVER:
		o->net.server = true;
		break;
	case O_IFACE:
		o->iface = arg;
		break;
	case O_RING:
		o->net.ring_size = (uint32_t)fe_opt_number("ring-size", arg, 1, FE_RING_SIZE_MAX);
		break;
	case O_REGIONS:
		o->net.regions = (uint32_t)fe_opt_number("regions", arg, 1, FE_REGIONS_MAX);
		break;
	case O_ADJACENT:
		o->net.layout = FE_MEM_ADJACENT;
		break;
	case O_START:
		o->net.start = (uint16_t)fe_opt_number("start", arg, 0, UINT16_MAX);
		break;
	case O_QPAIRS:
		o->net.qpairs = (uint32_t)fe_opt_number("qpairs", arg, 1, FE_QPAIRS_MAX);
		break;
	case O_QPAIR:
		o->qpair = (uint32_t)fe_opt_number("qpair", arg, 0, FE_QPAIRS_MAX - 1);
		break;
	case O_PLAIN:
		o->plain_host = true;
		o->direction = RT_TX;
		break;
	case O_PEER:
		o->peer = arg;
		break;
	case O_PEER_PACKED:
		o->peer_packed = true;
		break;
	case O_ACK:
		o->net.ack = true;
		break;
	case O_LENIENT:
		o->net.lenient = true;
		break;
	case O_HELP:
		fputs(usage, stdout);
		exit(0);
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

/*
 * Receive buffers that hold the longest frame even if each takes as many descriptors as it
 * may: a frame for which there is no room waits in the tap, and the test with it.
 */
static void
choose_buffers(struct rt_opts *o)
{
	bool mrg = (o->net.features & FE_BIT(VIRTIO_NET_F_MRG_RXBUF)) != 0;
	uint32_t ring = o->net.ring_size == 0 ? 256 : o->net.ring_size;
	uint32_t chains = ring / o->max_segs;
	uint32_t worst = chains < 2 ? FE_BUF_MAX : FE_BUF_MAX / chains + 1;

	if (o->rx_max == 0 && !mrg) {
		o->rx_min = o->rx_max = FE_BUF_MAX;
	} else if (o->rx_max == 0) {
		o->rx_min = ring >= 256 && o->max_segs <= 8 ? 64 : worst;
		o->rx_max = 2 * worst > 4096 ? 2 * worst : 4096;
		o->rx_max = o->rx_max > FE_BUF_MAX ? FE_BUF_MAX : o->rx_max;
	}
	o->net.rx_buf_bytes = o->rx_max;
	/* Many small buffers need a large pool. */
	if (o->rx_max < 1024)
		o->net.rx_bufs = ring;
}

static void
parse(struct rt_opts *o, int argc, char **argv)
{
	int id;

	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!feature_option(o, id, optarg) && !traffic_option(o, id, optarg))
			device_option(o, id, optarg);
	if (optind < argc || o->net.path == NULL || (o->iface == NULL) == (o->peer == NULL) ||
		o->qpair >= (o->net.qpairs == 0 ? 1 : o->net.qpairs)) {
		fputs(usage, stderr);
		exit(2);
	}
	choose_buffers(o);
}

int
main(int argc, char **argv)
{
	static struct rt_opts opts = {
		.net = {.features = FE_NET_BASE | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
				    FE_BIT(VIRTIO_RING_F_EVENT_IDX) |
				    FE_BIT(VIRTIO_RING_F_INDIRECT_DESC)},
		.seed = 1,
		.frames = 1000,
		.min_len = FE_FRAME_MIN,
		.max_len = FE_FRAME_MAX,
		.kinds = UINT32_MAX,
		.window = 64,
		.max_segs = 8,
		.stall_ms = 5000,
		.event = RT_EVENT_ON,
		.direction = RT_BOTH,
		.chain = FE_CHAIN_RANDOM,
	};

	parse(&opts, argc, argv);
	return rt_main(&opts);
}
