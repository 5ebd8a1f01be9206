"""usage: ring_producer.py NAME IMAGES.npy SAMPLES.json BATCH_SIZE EPOCHS

Makes batches for one run with data.train_dataset: ring://NAME, as specified in data/ring/RING.md.
Uses no code of precast.
"""
import ctypes
import fcntl
import json
import mmap
import os
import pathlib
import select
import socket
import struct
import sys

import numpy as np

name, images, size, epochs = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[4]), int(sys.argv[5])
labels = np.array([sample["label"] for sample in json.loads(pathlib.Path(sys.argv[3]).read_text())["samples"]])
MAGIC, SLOTS, CONTROL, SLOT_AREA, SLOT_BYTES, DATA = b"PCSTRING", 4, 65536, 131072, 64 + 2 * 256, 196608
FUTEX = {"x86_64": 202, "aarch64": 98}[os.uname().machine]
item_bytes = 64 * (4 + size * (8 + images[0].nbytes + 8) // 64)  # ids, images, labels, each aligned to 64 bytes
memfd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
os.posix_fallocate(memfd, 0, DATA + SLOTS * item_bytes)
fcntl.fcntl(memfd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
memory = mmap.mmap(memfd, 0)
struct.pack_into("<8sIIQIIQQQQQQQ", memory, 0, MAGIC, 1, SLOTS, len(memory), 1, 0, CONTROL, SLOT_AREA, SLOT_BYTES, DATA,
                 SLOTS * item_bytes, 0, 0)
published, released = (np.frombuffer(memory, "<u8", 1, at) for at in (128, CONTROL + 128))
signal = np.frombuffer(memory, "<u4", 1, CONTROL)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(f"\0precast-ring/{os.geteuid()}/{name}")
listener.listen()
consumer, epoch, batch = None, 0, 0


def accept():
    global consumer, epoch, batch
    peer, join = listener.accept()[0], b""
    if struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1] == os.geteuid():
        join = peer.recv(32)
    if len(join) == 32 and (consumer is None or join[12] == 3):  # 3: reads the header and leaves
        socket.send_fds(peer, [struct.pack("<8sIIIIQ", MAGIC, 1, 1, 0, 0, 0)], [memfd])
        if join[12] != 3:
            consumer, (epoch, batch) = peer, struct.unpack_from("<QQ", join, 16)


def publish(kind, ids, **outputs):
    while published[0] - released[0] >= SLOTS:  # the consumer still uses all slots
        for ready in select.select([listener, consumer], [], [], 0.001)[0]:
            accept() if ready is listener else sys.exit("the consumer has left")
    place = int(published[0]) % SLOTS
    slot, at = SLOT_AREA + place * SLOT_BYTES, DATA + place * item_bytes
    struct.pack_into("<QIIQQQQ", memory, slot, int(published[0]), kind, len(outputs), epoch, batch, len(ids), at)
    for i, (key, array) in enumerate({"": ids.astype("<u8"), **outputs}.items()):  # the ids are not an output
        if i > 0:
            pad = [0] * (8 - array.ndim)
            struct.pack_into("<64s8sII8Q8QQ", memory, slot + 256 * i - 192, key.encode(), array.dtype.str.encode(),
                             array.ndim, 0, *array.shape, *pad, *array.strides, *pad, at)
        np.frombuffer(memory, array.dtype, array.size, at)[:] = array.reshape(-1)
        at += array.nbytes + -array.nbytes % 64
    published[0] += 1
    signal[0] += 1
    ctypes.CDLL(None).syscall(FUTEX, ctypes.c_void_p(signal.ctypes.data), 1, 2**31 - 1, None, None, 0)  # FUTEX_WAKE


while consumer is None:
    accept()
while epoch < epochs:  # from the consumer's position on: a batch depends only on its epoch and number
    random = np.random.default_rng([0, epoch])
    order, flip = random.permutation(len(images)), random.random(len(images)) < 0.5
    while batch < len(images) // size:
        ids = order[batch * size:][:size]
        pixels = np.where(flip[ids, None, None, None], images[ids, :, ::-1], images[ids])
        publish(1, ids, image=pixels, label=labels[ids])
        batch += 1
    publish(2, order[:0])  # the end of the pass
    epoch, batch = epoch + 1, 0
consumer.send(struct.pack("<8sIIIIQ", MAGIC, 1, 2, 0, 0, 0))  # the end of the ring
