#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the corpus that the fuzzers start from: one small file for each thing that a front end
or guest may do, named after it. Run it after an input format has changed.

usage: make_corpus.py [DIRECTORY]      (default: corpus, beside this file)
"""

import pathlib
import struct
import sys

NEXT, WRITE, INDIRECT = 1, 2, 4
AVAIL, USED = 1 << 7, 1 << 15

# ---- rings: fuzz_ring.c -------------------------------------------------------

PACKED, EVENT_IDX, INDIRECT_OK, ON_EMPTY, LOG, SHORT_HDR, MERGEABLE = (1 << i for i in range(7))

DRAIN, FILL, TURN, OFFER, PUSH, PUSH_LARGE, ROOM, POKE, ARM, RESTART, TIME, DISCARD = range(12)
RX = 0x80
BUF = 0x1000
TABLE = 0x800
EDGE = 0x5000


def step(what, arg=0, at=0):
    return struct.pack('<BBH', what, arg, at)


def split_desc(addr, length, flags=0, nxt=0):
    return struct.pack('<QIHH', addr, length, flags, nxt)


def packed_desc(addr, length, flags=0, ident=0):
    return struct.pack('<QIHH', addr, length, ident, flags)


def place(memory, at, data):
    if len(memory) < at + len(data):
        memory.extend(bytes(at + len(data) - len(memory)))
    memory[at:at + len(data)] = data


def ring_input(features, steps, tx=(), rx=(), tx_heads=(), rx_heads=(), tables=(), size=8, base=0,
               tx_idx=None, rx_idx=None):
    """Descriptors are (addr, len, flags, next); tables are (address, descriptors)."""
    packed = features & PACKED
    memory = bytearray()
    for offset, descs, device_flag in ((0, tx, 0), (16 * size, rx, WRITE)):
        for i, (addr, length, flags, nxt) in enumerate(descs):
            if not flags & INDIRECT:
                flags ^= device_flag
            if packed:
                flags |= AVAIL
                place(memory, offset + 16 * i, packed_desc(addr, length, flags, i))
            else:
                place(memory, offset + 16 * i, split_desc(addr, length, flags, nxt))
    at = 32 * size
    for heads, idx in ((tx_heads, tx_idx), (rx_heads, rx_idx)):
        if packed:
            place(memory, at, struct.pack('<HH', 0x8000, 2 if features & EVENT_IDX else 0))
            at += 4
            continue
        count = base + len(heads) if idx is None else idx
        ring = [0] * size
        for i, head in enumerate(heads):
            ring[(base + i) % size] = head
        place(memory, at, struct.pack(f'<HH{size}HH', 0, count & 0xffff, *ring, 0))
        at += (6 + 2 * size + 3) // 4 * 4
    for address, device_flag, descs in tables:
        for i, (addr, length, flags, nxt) in enumerate(descs):
            make = packed_desc if packed else split_desc
            place(memory, address + 16 * i, make(addr, length, flags ^ device_flag, nxt))
    size_byte = size - 1 if packed else (size.bit_length() - 2) % 9
    start = base | (0x8000 if packed else 0)
    return (struct.pack('<BBHB', features, size_byte, start, len(steps)) + b''.join(steps) +
            bytes(memory))


def both(name, **kwargs):
    """The same for a split and a packed ring."""
    features = kwargs.pop('features', INDIRECT_OK | MERGEABLE)
    yield 'split_' + name, ring_input(features, **kwargs)
    yield 'packed_' + name, ring_input(features | PACKED, **kwargs)


def ring_corpus():
    one = [(BUF, 72, 0, 0)]
    yield from both('tx_one_frame', steps=[step(DRAIN)], tx=one, tx_heads=[0])
    yield from both('tx_chain_of_three', steps=[step(DRAIN)],
                    tx=[(BUF, 5, NEXT, 1), (BUF + 64, 7, NEXT, 2), (BUF + 128, 60, 0, 0)],
                    tx_heads=[0])
    yield from both('tx_indirect', steps=[step(DRAIN)], tx=[(TABLE, 32, INDIRECT, 0)],
                    tx_heads=[0], tables=[(TABLE, 0, [(BUF, 12, NEXT, 1), (BUF, 60, 0, 0)])])
    yield from both('tx_buffers_then_table', steps=[step(DRAIN)],
                    tx=[(BUF, 12, NEXT, 1), (TABLE, 16, INDIRECT, 0)], tx_heads=[0],
                    tables=[(TABLE, 0, [(BUF, 60, 0, 0)])])
    yield from both('tx_over_an_edge', steps=[step(DRAIN)], tx=[(EDGE - 30, 72, 0, 0)],
                    tx_heads=[0])
    yield from both('tx_short_bad_and_good', steps=[step(DRAIN), step(DRAIN)],
                    tx=[(BUF, 20, 0, 0), (1 << 40, 72, 0, 0), (BUF, 72, 0, 0), (BUF, 0, 0, 0)],
                    tx_heads=[0, 1, 2, 3])
    yield from both('tx_port_full_then_not',
                    steps=[step(ROOM, 1), step(DRAIN), step(DRAIN), step(ROOM, 255), step(DRAIN)],
                    tx=one * 4, tx_heads=[0, 1, 2, 3])
    yield 'split_tx_loop', ring_input(0, [step(DRAIN)], tx=[(BUF, 64, NEXT, 1), (BUF, 64, NEXT, 0)],
                                      tx_heads=[0])
    yield 'split_tx_next_outside', ring_input(0, [step(DRAIN)], tx=[(BUF, 64, NEXT, 8)],
                                              tx_heads=[0])
    yield 'split_tx_head_outside', ring_input(0, [step(DRAIN), step(RESTART, 1), step(DRAIN)],
                                              tx=one, tx_heads=[0, 8])
    yield 'split_tx_index_jump', ring_input(0, [step(DRAIN), step(DRAIN)], tx=one, tx_heads=[0],
                                            tx_idx=1000)
    yield 'packed_tx_endless', ring_input(PACKED, [step(DRAIN), step(DRAIN)],
                                          tx=[(BUF, 64, NEXT, 0)] * 8)
    yield from both('rx_one_frame', steps=[step(PUSH, 10), step(FILL)], rx=[(BUF, 1526, 0, 0)],
                    rx_heads=[0])
    yield from both('rx_many_small_buffers', steps=[step(PUSH, 30), step(FILL)],
                    rx=[(BUF + 64 * i, 40, 0, 0) for i in range(8)], rx_heads=range(8))
    yield from both('rx_waits_for_buffers',
                    steps=[step(PUSH, 100), step(FILL), step(OFFER, RX | 2), step(FILL),
                           step(TIME, 1), step(FILL)],
                    rx=[(BUF, 200, 0, 0)] * 8, rx_heads=[0, 1])
    yield from both('rx_bad_in_the_way', steps=[step(PUSH, 60), step(FILL), step(FILL)],
                    rx=[(BUF, 200, 0, 0), (BUF, 200, WRITE, 0), (BUF, 1526, 0, 0)],
                    rx_heads=[0, 1, 2])
    yield from both('rx_one_byte_buffers', steps=[step(PUSH, 60), step(FILL), step(FILL)],
                    rx=[(BUF, 1, 0, 0)] * 8, rx_heads=range(8))
    yield from both('rx_too_large', features=0,
                    steps=[step(PUSH_LARGE, 40), step(PUSH, 1), step(FILL)],
                    rx=[(BUF, 1526, 0, 0)], rx_heads=[0])
    yield from both('rx_indirect_into_high_memory', steps=[step(PUSH_LARGE, 20), step(FILL)],
                    rx=[(TABLE, 48, INDIRECT, 0)], rx_heads=[0],
                    tables=[(TABLE, WRITE, [(0x100000, 12, NEXT, 2), (0x100100, 0x1f00, 0, 0),
                                            (0x5000, 0x4000, NEXT, 1)])])
    yield from both('turns_with_dirty_log', features=INDIRECT_OK | MERGEABLE | LOG | EVENT_IDX,
                    steps=[step(PUSH, 50), step(PUSH, 3), step(TURN), step(ARM), step(ARM, RX),
                           step(OFFER, 3), step(TURN, 1), step(RESTART), step(RESTART, RX),
                           step(TURN)],
                    tx=one * 8, tx_heads=range(4), rx=[(BUF, 300, 0, 0)] * 8, rx_heads=range(8))
    yield from both('index_wraps', base=7, features=EVENT_IDX | SHORT_HDR | ON_EMPTY,
                    steps=[step(DRAIN), step(OFFER, 8), step(DRAIN), step(DISCARD, 1),
                           step(OFFER, 8), step(DRAIN)],
                    tx=one * 8, tx_heads=range(8))


# ---- messages: fuzz_message.c and fuzz_gate.c ---------------------------------------

REQUESTS = {
    'get_features': (1, b''), 'set_features': (2, struct.pack('<Q', 1 << 30 | 1 << 32)),
    'set_owner': (3, b''), 'reset_owner': (4, b''),
    'set_vring_num': (8, struct.pack('<II', 1, 256)),
    'set_vring_addr': (9, struct.pack('<IIQQQQ', 1, 0, 0x7f0000000000, 0x7f0000001000,
                                      0x7f0000002000, 0)),
    'set_vring_base': (10, struct.pack('<II', 1, 65535)),
    'get_vring_base': (11, struct.pack('<II', 1, 0)),
    'get_protocol_features': (15, b''), 'set_protocol_features': (16, struct.pack('<Q', 0x1f)),
    'get_queue_num': (17, b''), 'set_vring_enable': (18, struct.pack('<II', 1, 1)),
    'send_rarp': (19, struct.pack('<Q', 0x525400123456)), 'net_set_mtu': (20, struct.pack('<Q', 1500)),
}
FILES = {'set_vring_kick': 12, 'set_vring_call': 13, 'set_vring_err': 14}
VERSION, REPLY, NEED_REPLY = 1, 4, 8
NO_FD = 0x100


def region(i, gpa=None, size=0x1000, user=None, offset=0):
    return struct.pack('<QQQQ', gpa if gpa is not None else i * 0x1000, size,
                       user if user is not None else 0x7f0000000000 + i * 0x1000, offset)


def mem_table(regions, count=None):
    return struct.pack('<II', len(regions) if count is None else count, 0) + b''.join(regions)


def message_input(request, payload, kinds=(), flags=VERSION, size=None, rings=4):
    return (struct.pack('BB', rings - 1, len(kinds)) + bytes(kinds) +
            struct.pack('<III', request, flags, len(payload) if size is None else size) + payload)


def message_corpus():
    event, small, large = 2, 0, 1
    for name, (request, payload) in REQUESTS.items():
        yield name, message_input(request, payload)
    for name, request in FILES.items():
        yield name, message_input(request, struct.pack('<Q', 1), [event])
    yield 'get_config', message_input(24, struct.pack('<III', 0, 56, 0) + bytes(56))
    yield 'get_config_too_large', message_input(24, b'', size=2**32 - 2)
    yield 'close_crypto_session', message_input(27, bytes(8))
    yield 'set_vring_kick_without_fd', message_input(12, struct.pack('<Q', 1 | NO_FD))
    yield 'set_vring_kick_with_a_file', message_input(12, struct.pack('<Q', 1), [small])
    yield 'set_mem_table_one', message_input(5, mem_table([region(0)]), [small])
    yield 'set_mem_table_eight', message_input(5, mem_table([region(i) for i in range(8)]),
                                               [small, large] * 4)
    yield 'set_mem_table_nine', message_input(5, mem_table([region(i) for i in range(8)], 9),
                                              [small] * 8)
    yield 'set_mem_table_overlap', message_input(
        5, mem_table([region(0), region(1, gpa=0xfff)]), [large, large])
    yield 'set_mem_table_wraps', message_input(
        5, mem_table([region(0, gpa=2**64 - 0x800)]), [large])
    yield 'set_mem_table_offset', message_input(
        5, mem_table([region(0, size=0x10000, offset=0x10000)]), [large])
    yield 'set_log_base', message_input(6, struct.pack('<QQ', 0x1000, 0x800), [small])
    yield 'set_log_base_wraps', message_input(6, struct.pack('<QQ', 2**64 - 1, 0x800), [small])
    yield 'index_0x100', message_input(18, struct.pack('<II', 0x100, 1))
    yield 'index_0x10000', message_input(8, struct.pack('<II', 0x10000, 256))
    yield 'size_too_large', message_input(2, bytes(8), size=2000)
    yield 'a_reply', message_input(1, b'', flags=VERSION | REPLY)
    yield 'unknown', message_input(77, b'')


SEND, RAW, MODE, CONNECT, READ, RUN = 0, 3, 4, 5, 6, 7
EVENT, LARGE, SMALL = 0, 1, 2


def send(request, payload=b'', kinds=(), flags=VERSION, then=1):
    """A message, and whether the gate gets to act before the next step."""
    return (struct.pack('BBBB', SEND, request, flags, len(kinds)) + bytes(kinds) +
            struct.pack('<H', len(payload)) + payload + bytes([then]))


def raw(data, kinds=(), then=1):
    return (bytes([RAW, len(kinds)]) + bytes(kinds) + bytes([len(data)]) + data + bytes([then]))


def named(name, **kwargs):
    request, payload = REQUESTS[name]
    return send(request, payload, **kwargs)


def gate_corpus():
    mem = mem_table([region(0, size=0x10000), region(1, gpa=0x10000, size=0x10000,
                                                     user=0x7f0000010000)])
    start = (named('get_features') + named('get_protocol_features') +
             named('set_protocol_features') + named('get_queue_num') + named('set_owner') +
             named('set_features') + send(5, mem, [LARGE, LARGE]))
    ring = (named('set_vring_num') + named('set_vring_base') + named('set_vring_addr') +
            send(12, struct.pack('<Q', 1), [EVENT]) + send(13, struct.pack('<Q', 1), [EVENT]) +
            named('set_vring_enable'))
    header = struct.pack('<III', 2, VERSION, 8)
    yield 'start_of_a_device', start + bytes([READ, 1]) + ring
    yield 'ring_and_stop', ring + named('get_vring_base') + bytes([READ, 1])
    yield 'all_with_replies', b''.join(
        named(n, flags=VERSION | NEED_REPLY) for n in REQUESTS) + bytes([READ, 1])
    yield 'all_at_once', b''.join(named(n, then=0) for n in REQUESTS)
    yield 'new_memory', send(5, mem, [LARGE, LARGE]) + send(5, mem, [LARGE, 5])
    yield 'dirty_log', send(6, struct.pack('<QQ', 0x1000, 0), [SMALL])
    yield 'half_a_header', raw(header[:5])
    yield 'header_without_payload', raw(header)
    yield 'in_two_pieces', raw(header[:7]) + raw(header[7:] + bytes(8))
    yield 'descriptors_in_pieces', (raw(struct.pack('<III', 12, VERSION, 8), [EVENT]) +
                                    raw(struct.pack('<Q', 1)))
    yield 'surplus_descriptors', named('set_owner', kinds=[EVENT] * 8)
    yield 'more_than_eight_descriptors', named('set_owner', kinds=[EVENT] * 20)
    yield 'refused_with_reply', send(8, struct.pack('<II', 99, 256), flags=VERSION | NEED_REPLY)
    yield 'refused_without_reply', send(8, struct.pack('<II', 99, 256)) + named('set_owner')
    yield 'back_end_refuses', bytes([MODE, 1, 1]) + named('set_vring_num') + named(
        'set_vring_num', flags=VERSION | NEED_REPLY)
    yield 'back_end_is_silent', bytes([MODE, 2, 1]) + named('set_vring_num') + bytes([CONNECT, 1, 1])
    yield 'back_end_closes', bytes([MODE, 3, 1]) + named('set_vring_num')
    yield 'connects_again', named('set_owner') + bytes([CONNECT, 0, 0]) + named('set_owner') + bytes(
        [CONNECT, 1, 1]) + named('set_owner')
    yield 'gone_while_relayed', named('set_vring_num', then=0) + bytes([RUN, 1]) + bytes([CONNECT, 0, 0])
    yield 'garbage', raw(bytes(range(200)))


# ---- device arguments: fuzz_device.c ---------------------------------------------------

DEVICES = {
    'vhost_and_tap': 'net_vhost0,iface=/run/a.sock\nnet_tap0',
    'two_pairs': 'net_vhost0,iface=/a\nnet_tap0\nnet_vhost1,iface=/b\nnet_tap1,iface=tap9',
    'two_guests': 'net_vhost0,iface=/a\nnet_vhost1,iface=/b,client=1',
    'vhost_keys': 'net_vhost0,iface=/a,queues=4,client=1,packed=0,mtu=1500,tso=0,poll-us=50,'
                  'rx-poll=deferred,poller=1\nnet_tap0',
    'vhost_sockets': 'net_vhost0,iface=/a,socket-mode=0660,socket-owner=qemu,socket-group=36',
    'vhost_ignored_keys': 'net_vhost0,iface=/a,postcopy-support=0,iommu-support=1,linear-buffer=1,'
                          'ext-buffer=0,legacy-ol-flags=1',
    'poll_forever': 'net_vhost0,iface=/a,poll-us=forever,rx-poll=interleave\nnet_tap0',
    'poll_auto': 'net_vhost0,iface=/a,poll-us=auto\nnet_tap0',
    'tap_keys': 'net_tap0,iface=tap%d,mac=02:ab:cd:00:7f:ff,persist,queues=4,sndbuf=1048576,'
                'bridge=br0,offload=0\nnet_vhost0,iface=/a,queues=4',
    'tap_mac_fixed': 'net_tap0,mac=fixed\nnet_tap1,mac=fixed',
    'af_packet': 'net_af_packet0,iface=eth0,qpairs=2,framesz=4096,framecnt=512,qdisc_bypass=1,'
                 'blocksz=4096\nnet_vhost0,iface=/a',
    'eal_device': 'net_vhost0,iface=/a\nnet_pcap0,iface=lo',
    'crypto_device': 'crypto_openssl0,max_nb_queue_pairs=x\nnet_vhost0,iface=/a\nnet_tap0',
    'allowed_pci': '-a 0000:01:00.0,args=1\nnet_vhost0,iface=/a',
    'peer': 'net_vhost0,iface=/a,peer=net_tap1\nnet_vhost1,iface=/b\nnet_tap0\nnet_tap1',
    'peer_missing': 'net_vhost0,iface=/a,peer=net_tap7\nnet_tap0',
    'peer_of_itself': 'net_vhost0,iface=/a,peer=net_vhost0',
    'older_names': 'eth_vhost0,iface=/a\neth_tap0',
    'odd_number': 'net_vhost0,iface=/a\nnet_tap0\nnet_tap1',
    'given_twice': 'net_vhost0,iface=/a,iface=/b',
    'same_name': 'net_tap0\nnet_tap0',
    'same_socket': 'net_vhost0,iface=/a\nnet_vhost1,iface=/a',
    'unknown_key': 'net_vhost0,iface=/a,quues=1',
    'bad_number': 'net_vhost0,iface=/a,queues=0x',
    'out_of_range': 'net_vhost0,iface=/a,queues=129',
    'no_name': ',iface=/a',
    'long_name': 'net_vhost' + '0' * 80,
    'long_path': 'net_vhost0,iface=/' + 'x' * 300,
    'control_characters': 'net_vhost0,iface=/\x01\x7f\t,\x1b=\r',
    'lists': 'net_vhost0,iface=[/a,/b],queues=[1-4]',
    'too_many_keys': 'net_tap0,' + ','.join(chr(97 + i % 26) for i in range(40)),
}


def device_corpus():
    for name, text in DEVICES.items():
        yield name, text.encode()


# ---- the INI file: fuzz_config.c -------------------------------------------------------

PAIR = '[net_vhost0]\niface = /a\n[net_tap0]\n'
INI_FILES = {
    'pair': PAIR,
    'options': '[options]\npoll-us = 50\nstats = 10\nrebalance = off\n' + PAIR,
    'pollers': '[poller 0]\ncpu = 0\n[poller 1]\ncpu = 1\n' + PAIR,
    'poller_twice': '[poller 0]\ncpu = 0\n[poller 0]\ncpu = 1\n',
    'poller_missing': '[poller 1]\ncpu = 1\n',
    'rates': '[net_vhost0]\niface = /a\nrate = 100M/1G\nrate-pps = 5k\n[net_tap0]\n',
    'comments': '# one\n  [net_vhost0] # two\niface = /a#three\n\n[net_tap0]\nmac = fixed \\# x\n',
    'empty_value': '[net_vhost0]\niface =\n[net_tap0]\n',
    'before_section': 'iface = /a\n',
    'no_name': '[]\n',
    'not_closed': '[net_vhost0\n',
    'no_key': '[options]\n= 5\n',
    'key_twice': '[options]\npoll-us = 5\npoll-us = 6\n',
    'section_twice': PAIR + PAIR,
    'unknown_section': '[net_vhst0]\niface = /a\n',
    'unknown_option': '[options]\npol-us = 5\n',
    'long_name': '[net_vhost' + '0' * 80 + ']\n',
    'long_value': '[net_vhost0]\niface = /' + 'x' * 300 + '\n',
    'many_keys': '[net_vhost0]\n' + 'iface = /a\n' * 80,
    'control_characters': '[net_vhost0]\r\niface = /\x01\t\x1b\x00x\r\n',
    'no_newline': '[options]\npoll-us = auto',
    'crypto': '[crypto_openssl0]\n[vhost_crypto0]\niface = /c\ncryptodev = crypto_openssl0\n',
}


def config_corpus():
    for name, text in INI_FILES.items():
        yield name, text.encode()


# ---- crypto requests: fuzz_crypto.c ------------------------------------------------------

CIPHER_CREATE, HASH_CREATE, MAC_CREATE, AEAD_CREATE = 0x0002, 0x0102, 0x0202, 0x0302
AKCIPHER_CREATE = 0x0404
CIPHER_ENCRYPT, HASH, MAC, AEAD_ENCRYPT, AEAD_DECRYPT = 0x0000, 0x0100, 0x0200, 0x0300, 0x0301


def control(opcode, union, op_type=0):
    """A create request of 72 bytes, and its key."""
    head = struct.pack('<IIII', opcode, 0, 0, 0)
    body = (union + bytes(48))[:48] + struct.pack('<II', op_type, 0)
    return head + body + b'k' * 64


def request(opcode, union, data, op_type=0, writable=(64, 64, 64, 64)):
    """A data request of 72 bytes in one piece with its data."""
    head = struct.pack('<IIQII', opcode, 0, 0, 0, 0)
    body = (union + bytes(40))[:40] + struct.pack('<II', op_type, 0)
    cuts = bytes([0, *writable]) + bytes(11)
    return bytes([len(writable), 0]) + cuts + head + body + data


def rsa_session(numbers, keytype, padding, hashed):
    """Algorithm 1; numbers of less than 128 bytes."""
    content = b''.join(
        bytes([2, n.bit_length() // 8 + 1]) + n.to_bytes(n.bit_length() // 8 + 1, 'big')
        for n in numbers)
    key = bytes([0x30, 0x82]) + struct.pack('>H', len(content)) + content
    head = struct.pack('<IIII', AKCIPHER_CREATE, 0, 0, 0)
    body = struct.pack('<IIIII', 1, keytype, len(key), padding, hashed)
    return head + body + bytes(36) + key


def rsa_corpus():
    # 2**256 - 189 and the prime below it: small, quick, and with all that a key has.
    p, q, e = 2**256 - 189, 2**256 - 357, 65537
    while not all(pow(a, q - 1, q) == 1 for a in (2, 3, 5, 7)) or (q - 1) % e == 0:
        q -= 2
    n, d = p * q, pow(e, -1, (p - 1) * (q - 1))
    private = (0, n, e, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p))
    signed = pow(0x1234, d, n).to_bytes(64, 'big')
    for name, opcode, lengths, data in (
            ('encrypt', 0x400, (20, 64), bytes(20)), ('decrypt', 0x401, (64, 64), signed),
            ('sign', 0x402, (20, 64), bytes(20)), ('verify', 0x403, (64, 2), signed + b'\x12\x34')):
        para = struct.pack('<II', *lengths)
        yield name, b'\0' + rsa_session(private, 2, 0, 0) + request(opcode, para, data)
        yield name + '_padded', b'\0' + rsa_session(private, 2, 1, 5) + request(opcode, para, data)
        yield name + '_public', b'\0' + rsa_session((n, e), 1, 1, 0) + request(opcode, para, data)
    odd = (0, n, e, d, 3, 5, 2, 3, 2)
    yield 'odd_factors', b'\0' + rsa_session(odd, 2, 0, 0) + request(
        0x402, struct.pack('<II', 20, 64), bytes(20))


def crypto_corpus():
    for name, data in rsa_corpus():
        yield 'rsa_' + name, data
    # algorithm 16: an IV of 16 bytes, any length; 1: an IV of one byte, blocks.
    cipher = control(CIPHER_CREATE, struct.pack('<IIII', 16, 16, 1, 0), 1)
    blocks = control(CIPHER_CREATE, struct.pack('<IIII', 1, 16, 1, 0), 1)
    para = struct.pack('<IIII', 16, 100, 100, 0)
    yield 'cipher', b'\0' + cipher + request(CIPHER_ENCRYPT, para, bytes(116), 1)
    yield 'blocks', b'\0' + blocks + request(CIPHER_ENCRYPT, struct.pack('<IIII', 1, 96, 96, 0),
                                             bytes(97), 1)
    yield 'no_room', b'\0' + cipher + request(CIPHER_ENCRYPT, para, bytes(116), 1, (100,))
    yield 'too_short', b'\0' + cipher + request(CIPHER_ENCRYPT, para, bytes(115), 1)
    yield 'wraps', b'\0' + cipher + request(
        CIPHER_ENCRYPT, struct.pack('<IIII', 16, 2**32 - 16, 2**32 - 1, 0), bytes(116), 1)
    hashed = control(HASH_CREATE, struct.pack('<II', 1, 20))
    yield 'hash', b'\0' + hashed + request(HASH, struct.pack('<II', 64, 20), bytes(64))
    mac = control(MAC_CREATE, struct.pack('<IIII', 1, 20, 16, 0))
    yield 'mac', b'\0' + mac + request(MAC, struct.pack('<II', 64, 20), bytes(64))
    aead = struct.pack('<IIIIII', 12, 16, 16, 8, 1, 0)
    sealed = struct.pack('<IIIIII', 12, 8, 64, 80, 0, 0)
    yield 'aead', b'\0' + control(AEAD_CREATE, aead) + request(AEAD_ENCRYPT, sealed, bytes(84))
    opened = struct.pack('<IIIIII', 12, 16, 16, 8, 2, 0)
    yield 'aead_open', b'\0' + control(AEAD_CREATE, opened) + request(
        AEAD_DECRYPT, struct.pack('<IIIIII', 12, 8, 80, 64, 0, 0), bytes(100))
    chain = struct.pack('<IIIII', 2, 1, 16, 16, 1) + bytes(28)
    yield 'chain', b'\0' + control(CIPHER_CREATE, chain, 2) + request(
        CIPHER_ENCRYPT, struct.pack('<IIIIIIIIII', 16, 64, 64, 0, 64, 0, 64, 0, 20, 0),
        bytes(80), 2)
    message = struct.pack('<qIIIIIIBBBBIQQ', 0, 16, 16, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0)
    yield 'message', b'\1' + message + bytes(632 - len(message)) + request(
        CIPHER_ENCRYPT, para, bytes(116), 1)
    yield 'message_cut', b'\1' + message


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1
                        else pathlib.Path(__file__).parent / 'corpus')
    for fuzzer, corpus in (('ring', ring_corpus), ('message', message_corpus),
                           ('gate', gate_corpus), ('device', device_corpus),
                           ('config', config_corpus), ('crypto', crypto_corpus)):
        directory = root / fuzzer
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.iterdir():
            old.unlink()
        for name, data in corpus():
            (directory / name).write_bytes(data)


main()
