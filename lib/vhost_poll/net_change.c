/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a network device's configuration changes while traffic flows. */
#include <string.h>

#include <rte_cycles.h>

#include "log.h"
#include "net_dev.h"

static bool
same_rates(const struct vhp_net_conf *a, const struct vhp_net_conf *b)
{
	return memcmp(a->rate_bps, b->rate_bps, sizeof(a->rate_bps)) == 0 &&
	       memcmp(a->rate_pps, b->rate_pps, sizeof(a->rate_pps)) == 0;
}

void
vhp_net_set_rates(struct vhp_net_dev *dev)
{
	struct vhp_rate *on[2];

	for (int i = 0; i < 2; i++)
		on[i] = vhp_rate_set(&dev->rates[i], rte_get_tsc_hz(), dev->conf.rate_bps[i],
				dev->conf.rate_pps[i])
				? &dev->rates[i]
				: NULL;
	for (uint16_t i = 0; i < dev->conf.queues; i++) {
		__atomic_store_n(&dev->qpairs[i].tx_rate, on[0], __ATOMIC_RELEASE);
		__atomic_store_n(&dev->qpairs[i].rx_rate, on[1], __ATOMIC_RELEASE);
	}
}

int
vhp_net_dev_change(struct vhp_net_dev *dev, const struct vhp_net_conf *conf)
{
	int ret = 0;

	if (conf->poll_us != dev->conf.poll_us)
		ret = vhp_net_rings_poll_us(dev, conf->poll_us);
	if (ret < 0)
		VHP_LOG(ERR, "%s: poll window: %s", dev->conf.name, strerror(-ret));
	if (!same_rates(conf, &dev->conf)) {
		memcpy(dev->conf.rate_bps, conf->rate_bps, sizeof(conf->rate_bps));
		memcpy(dev->conf.rate_pps, conf->rate_pps, sizeof(conf->rate_pps));
		vhp_net_set_rates(dev);
	}
	/* Without the key the MTU stays as it is. */
	if (conf->mtu_bytes != 0 && conf->mtu_bytes != dev->conf.mtu_bytes) {
		int mtu_ret = dev->port->ops->set_mtu(dev->port, conf->mtu_bytes);

		if (mtu_ret < 0)
			VHP_LOG(ERR, "%s: MTU %u: %s", dev->conf.name, conf->mtu_bytes,
				strerror(-mtu_ret));
		ret = ret < 0 ? ret : mtu_ret;
	}
	dev->conf.mtu_bytes = conf->mtu_bytes;
	return ret;
}
