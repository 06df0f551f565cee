/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a network device's configuration changes while traffic flows. */
#include <string.h>

#include "net_dev.h"

int
vhp_net_dev_change(struct vhp_net_dev *dev, const struct vhp_net_conf *conf)
{
	int ret = 0;

	if (conf->poll_us != dev->conf.poll_us)
		ret = vhp_net_rings_poll_us(dev, conf->poll_us);
	if (ret < 0)
		VHP_LOG(ERR, "%s: poll window: %s", dev->conf.name, strerror(-ret));
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
