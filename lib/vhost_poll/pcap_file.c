/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of a pcapng file in the byte order of this machine; see pcap_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pcap_file.h"

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_FRAME = 6,
	SECTION_MAGIC = 0x1a2b3c4d,
	LINK_ETHERNET = 1,
	OPT_END = 0,
	OPT_COMMENT = 1,
	OPT_IF_NAME = 2,
	OPT_FRAME_FLAGS = 2,
	OPT_IF_TSRESOL = 9,
};

/** Longest frame and what surrounds it. */
#define BLOCK_BYTES (128U << 10)

struct vhp_pcap_file {
	FILE *out;
	unsigned int uses;
	uint32_t interfaces;
	uint32_t used_bytes; /* of block */
	uint8_t block[BLOCK_BYTES];
};

/* Bytes, filled up to a multiple of four. */
static void
add(struct vhp_pcap_file *file, const void *bytes, uint32_t len_bytes)
{
	if (len_bytes > 0)
		memcpy(file->block + file->used_bytes, bytes, len_bytes);
	file->used_bytes += len_bytes;
	while (file->used_bytes % 4 != 0)
		file->block[file->used_bytes++] = 0;
}

static void
add_u32(struct vhp_pcap_file *file, uint32_t value)
{
	add(file, &value, sizeof(value));
}

static void
add_option(struct vhp_pcap_file *file, uint16_t code, const void *value, uint16_t len_bytes)
{
	const uint16_t head[2] = {code, len_bytes};

	add(file, head, sizeof(head));
	add(file, value, len_bytes);
}

static void
begin(struct vhp_pcap_file *file, uint32_t type)
{
	file->used_bytes = 0;
	add_u32(file, type);
	add_u32(file, 0); /* the length, by end() */
}

static void
end(struct vhp_pcap_file *file)
{
	uint32_t total = file->used_bytes + (uint32_t)sizeof(uint32_t);

	memcpy(file->block + 4, &total, sizeof(total));
	add_u32(file, total);
	fwrite(file->block, 1, file->used_bytes, file->out);
}

static void
section(struct vhp_pcap_file *file)
{
	const uint16_t version[2] = {1, 0};
	const int64_t unknown = -1;

	begin(file, BLOCK_SECTION);
	add_u32(file, SECTION_MAGIC);
	add(file, version, sizeof(version));
	add(file, &unknown, sizeof(unknown));
	end(file);
}

struct vhp_pcap_file *
vhp_pcap_file_open(const char *path)
{
	struct vhp_pcap_file *file = calloc(1, sizeof(*file));
	int fd;

	if (file == NULL)
		return NULL;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	file->out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (file->out == NULL) {
		int err = errno;

		if (fd >= 0)
			close(fd);
		free(file);
		errno = err;
		return NULL;
	}
	file->uses = 1;
	section(file);
	return file;
}

void
vhp_pcap_file_get(struct vhp_pcap_file *file)
{
	file->uses++;
}

void
vhp_pcap_file_put(struct vhp_pcap_file *file)
{
	if (file == NULL || --file->uses > 0)
		return;
	fclose(file->out);
	free(file);
}

uint32_t
vhp_pcap_file_interface(struct vhp_pcap_file *file, const char *name)
{
	const uint16_t link[2] = {LINK_ETHERNET, 0};
	const uint8_t nanoseconds = 9;

	begin(file, BLOCK_INTERFACE);
	add(file, link, sizeof(link));
	add_u32(file, 0); /* no limit to a frame's length */
	add_option(file, OPT_IF_NAME, name, (uint16_t)strlen(name));
	add_option(file, OPT_IF_TSRESOL, &nanoseconds, sizeof(nanoseconds));
	add_option(file, OPT_END, NULL, 0);
	end(file);
	return file->interfaces++;
}

void
vhp_pcap_file_frame(struct vhp_pcap_file *file, const struct vhp_pcap_frame *frame)
{
	const struct virtio_net_hdr_v1 *h = &frame->hdr;
	struct timespec now;
	uint64_t stamp;
	char comment[160];
	int n;

	clock_gettime(CLOCK_REALTIME, &now);
	stamp = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - frame->ago_ns;
	n = snprintf(comment, sizeof(comment),
		"virtio-net: flags %u gso_type %u hdr_len %u gso_size %u csum_start %u "
		"csum_offset %u num_buffers %u",
		h->flags, h->gso_type, h->hdr_len, h->gso_size, h->csum_start, h->csum_offset,
		h->num_buffers);
	begin(file, BLOCK_FRAME);
	add_u32(file, frame->interface);
	add_u32(file, (uint32_t)(stamp >> 32));
	add_u32(file, (uint32_t)stamp);
	add_u32(file, frame->len_bytes);
	add_u32(file, frame->len_bytes);
	add(file, frame->data, frame->len_bytes);
	add_option(file, OPT_FRAME_FLAGS, &frame->flags, sizeof(frame->flags));
	add_option(file, OPT_COMMENT, comment, (uint16_t)n);
	add_option(file, OPT_END, NULL, 0);
	end(file);
}

int
vhp_pcap_file_flush(struct vhp_pcap_file *file)
{
	return fflush(file->out) != 0 || ferror(file->out) ? -1 : 0;
}
