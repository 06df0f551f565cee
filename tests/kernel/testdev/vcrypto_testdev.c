// SPDX-License-Identifier: GPL-2.0-only
/*
 * A virtio crypto device for tests, inside the kernel that drives it: it answers
 * late, or not at all, or says nonsense, or is taken away with requests on it, all
 * of which a real device does at moments of its own choice only. It computes
 * nothing: data requests are "done" and leave their buffers as they are.
 *
 * Controls are module parameters: write mute, event; read sessions, requests.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <uapi/linux/virtio_crypto.h>
#include <uapi/linux/virtio_ids.h>

#define QUEUES 2 /* dataq 0, controlq */
#define CONTROLQ 1
#define RING_NUM 64

static bool mute;
module_param(mute, bool, 0644);
MODULE_PARM_DESC(mute, "Take requests and do not answer them");
static int sessions;
module_param(sessions, int, 0444);
MODULE_PARM_DESC(sessions, "Sessions created and not closed");
static int requests;
module_param(requests, int, 0444);
MODULE_PARM_DESC(requests, "Requests answered");

struct testdev {
	struct virtio_device vdev;
	struct virtqueue *vqs[QUEUES];
	u16 seen[QUEUES];
	struct virtio_crypto_config config;
	struct task_struct *thread;
	/* Rings come and go under it, the thread looks at them under it */
	struct mutex lock;
	u64 next_session;
	u64 features;
	u8 status;
};

static struct testdev *dev;
static struct platform_device *parent;

static void answer_control(const void *out, void *in)
{
	const struct virtio_crypto_op_ctrl_req *req = out;
	struct virtio_crypto_session_input *input = in;

	switch (le32_to_cpu(req->header.opcode)) {
	case VIRTIO_CRYPTO_CIPHER_CREATE_SESSION:
		input->session_id = cpu_to_le64(dev->next_session++);
		input->status = cpu_to_le32(VIRTIO_CRYPTO_OK);
		sessions++;
		break;
	case VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION:
		*(u8 *)in = VIRTIO_CRYPTO_OK;
		sessions--;
		break;
	default:
		*(u8 *)in = VIRTIO_CRYPTO_NOTSUPP;
	}
}

/* The first descriptor of a chain is the header, the last the answer. */
static void answer_one(unsigned int q, const struct vring *vr, u16 head)
{
	const struct vring_desc *table = vr->desc, *d = &table[head];
	const struct vring_desc *first;

	if (d->flags & VRING_DESC_F_INDIRECT) {
		table = phys_to_virt(d->addr);
		d = table;
	}
	first = d;
	while (d->flags & VRING_DESC_F_NEXT)
		d = &table[d->next];
	if (q == CONTROLQ)
		answer_control(phys_to_virt(first->addr), phys_to_virt(d->addr));
	else
		*(u8 *)phys_to_virt(d->addr) = VIRTIO_CRYPTO_OK;
	requests++;
}

static bool serve(unsigned int q)
{
	const struct vring *vr = virtqueue_get_vring(dev->vqs[q]);
	bool work = false;

	while (dev->seen[q] != READ_ONCE(vr->avail->idx)) {
		u16 head, used = vr->used->idx;

		smp_rmb(); /* index before entry */
		head = vr->avail->ring[dev->seen[q]++ % RING_NUM];
		answer_one(q, vr, head);
		vr->used->ring[used % RING_NUM].id = head;
		vr->used->ring[used % RING_NUM].len = 1;
		smp_wmb(); /* entry before index */
		WRITE_ONCE(vr->used->idx, used + 1);
		work = true;
	}
	return work;
}

static int worker(void *unused)
{
	while (!kthread_should_stop()) {
		mutex_lock(&dev->lock);
		for (unsigned int q = 0; q < QUEUES && !READ_ONCE(mute); q++) {
			if (dev->vqs[q] && serve(q)) {
				local_irq_disable(); /* callbacks expect an interrupt */
				vring_interrupt(0, dev->vqs[q]);
				local_irq_enable();
			}
		}
		mutex_unlock(&dev->lock);
		usleep_range(100, 200);
	}
	return 0;
}

static bool notify(struct virtqueue *vq)
{
	return true; /* the thread looks by itself */
}

static void del_vqs(struct virtio_device *vdev)
{
	mutex_lock(&dev->lock);
	for (int q = 0; q < QUEUES; q++) {
		if (dev->vqs[q])
			vring_del_virtqueue(dev->vqs[q]);
		dev->vqs[q] = NULL;
	}
	mutex_unlock(&dev->lock);
}

static int find_vqs(struct virtio_device *vdev, unsigned int nvqs, struct virtqueue *vqs[],
		    vq_callback_t *callbacks[], const char * const names[], const bool *ctx,
		    struct irq_affinity *desc)
{
	if (nvqs != QUEUES)
		return -EINVAL;
	mutex_lock(&dev->lock);
	for (unsigned int q = 0; q < nvqs; q++) {
		vqs[q] = vring_create_virtqueue(q, RING_NUM, PAGE_SIZE, vdev, true, false, false,
						notify, callbacks[q], names[q]);
		dev->vqs[q] = vqs[q];
		dev->seen[q] = 0;
	}
	mutex_unlock(&dev->lock);
	if (!vqs[0] || !vqs[1]) {
		del_vqs(vdev);
		return -ENOMEM;
	}
	return 0;
}

static void get_config(struct virtio_device *vdev, unsigned int offset, void *buf, unsigned int len)
{
	if (offset + len <= sizeof(dev->config))
		memcpy(buf, (u8 *)&dev->config + offset, len);
}

static u8 get_status(struct virtio_device *vdev)
{
	return dev->status;
}

static void set_status(struct virtio_device *vdev, u8 status)
{
	dev->status = status;
}

/* After a reset the device touches no ring: it waits for new ones. */
static void reset(struct virtio_device *vdev)
{
	mutex_lock(&dev->lock);
	for (int q = 0; q < QUEUES; q++)
		if (dev->vqs[q])
			dev->seen[q] = virtqueue_get_vring(dev->vqs[q])->avail->idx;
	dev->status = 0;
	sessions = 0;
	mutex_unlock(&dev->lock);
}

static u64 get_features(struct virtio_device *vdev)
{
	return 1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_RING_F_INDIRECT_DESC;
}

static int finalize_features(struct virtio_device *vdev)
{
	vring_transport_features(vdev);
	return 0;
}

static const char *bus_name(struct virtio_device *vdev)
{
	return "testdev";
}

static const struct virtio_config_ops ops = {
	.get = get_config,
	.get_status = get_status,
	.set_status = set_status,
	.reset = reset,
	.find_vqs = find_vqs,
	.del_vqs = del_vqs,
	.get_features = get_features,
	.finalize_features = finalize_features,
	.bus_name = bus_name,
};

/* nonsense: status bits that do not exist; freeze, restore: as around a suspend */
static int set_event(const char *val, const struct kernel_param *kp)
{
	if (!dev)
		return -ENODEV;
	if (sysfs_streq(val, "nonsense")) {
		dev->config.status = cpu_to_le32(0xff);
		virtio_config_changed(&dev->vdev);
		return 0;
	}
	if (sysfs_streq(val, "freeze"))
		return virtio_device_freeze(&dev->vdev);
	if (sysfs_streq(val, "restore"))
		return virtio_device_restore(&dev->vdev);
	return -EINVAL;
}

static const struct kernel_param_ops event_ops = { .set = set_event };
module_param_cb(event, &event_ops, NULL, 0200);
MODULE_PARM_DESC(event, "nonsense, freeze or restore");

static void release(struct device *d)
{
}

static int __init testdev_init(void)
{
	int r;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	mutex_init(&dev->lock);
	dev->config.status = cpu_to_le32(VIRTIO_CRYPTO_S_HW_READY);
	dev->config.max_dataqueues = cpu_to_le32(1);
	dev->config.crypto_services = cpu_to_le32(1 << VIRTIO_CRYPTO_SERVICE_CIPHER);
	dev->config.cipher_algo_l = cpu_to_le32(1 << VIRTIO_CRYPTO_CIPHER_AES_CBC);
	dev->config.max_cipher_key_len = cpu_to_le32(64);
	dev->config.max_size = cpu_to_le64(1 << 20);
	parent = platform_device_register_simple("vcrypto_testdev", -1, NULL, 0);
	if (IS_ERR(parent)) {
		kfree(dev);
		return PTR_ERR(parent);
	}
	dev->thread = kthread_run(worker, NULL, "vcrypto_testdev");
	dev->vdev.id.device = VIRTIO_ID_CRYPTO;
	dev->vdev.id.vendor = VIRTIO_DEV_ANY_ID;
	dev->vdev.config = &ops;
	dev->vdev.dev.parent = &parent->dev;
	dev->vdev.dev.release = release;
	r = register_virtio_device(&dev->vdev);
	if (r) {
		kthread_stop(dev->thread);
		platform_device_unregister(parent);
	}
	return r;
}
module_init(testdev_init);

static void __exit testdev_exit(void)
{
	unregister_virtio_device(&dev->vdev);
	kthread_stop(dev->thread);
	platform_device_unregister(parent);
	kfree(dev);
}
module_exit(testdev_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("virtio crypto device for tests");
