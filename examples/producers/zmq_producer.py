"""usage: zmq_producer.py tcp://127.0.0.1:5555 IMAGES.npy SAMPLES.json BATCH_SIZE EPOCHS [FIRST_EPOCH FIRST_BATCH]

Sends batches to a run with data.train_dataset: zmq://127.0.0.1:5555, as specified in data/outside/MESSAGE.md.
"""
import json
import pathlib
import struct
import sys

import numpy as np
import zmq

images, samples = np.load(sys.argv[2]), json.loads(pathlib.Path(sys.argv[3]).read_text())["samples"]
labels = np.array([sample["label"] for sample in samples])
size, epochs, first_epoch, first_batch = map(int, (*sys.argv[4:], 0, 0)[:4])
context = zmq.Context()
pushes = context.socket(zmq.PUSH)
pushes.sndhwm, pushes.sndtimeo = 4, 600_000  # messages, milliseconds
departures = pushes.get_monitor_socket(zmq.EVENT_DISCONNECTED)
pushes.bind(sys.argv[1])


def send(header, **outputs):
    if outputs:
        header["outputs"] = [{"name": name, "dtype": a.dtype.str, "shape": a.shape} for name, a in outputs.items()]
    text = json.dumps(header).encode()
    data = [array.tobytes() for array in outputs.values()]
    pushes.send(b"".join([struct.pack("<8sII", b"PCSTBTCH", 1, len(text)), text, *data]))


for epoch in range(first_epoch, epochs):
    random = np.random.default_rng([0, epoch])
    order, flip = random.permutation(len(images)), random.random(len(images)) < 0.5
    for batch in range(first_batch if epoch == first_epoch else 0, len(images) // size):
        ids = order[batch * size:][:size]
        pixels = np.where(flip[ids, None, None, None], images[ids, :, ::-1], images[ids])
        send({"epoch": epoch, "batch": batch}, image=pixels, label=labels[ids])
send({"end": "all epochs have been sent"})
departures.poll(600_000)  # wait for the end of the run: closing earlier can lose messages
context.destroy(linger=0)
