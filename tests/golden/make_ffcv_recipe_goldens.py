#!/usr/bin/env python3
"""Writes golden/ffcv_recipes.json: learning rates and image sizes of FFCV's two examples.

    pip install torchvision==0.26.0 numpy
    python tests/golden/make_ffcv_recipe_goldens.py

The script reimplements two schedules of libffcv/ffcv:

- examples/imagenet/train_imagenet.py of the first release (2022-01-14), with the values of its twelve YAML files. For
  each run, the file contains the number of iterations of an epoch and, for each epoch, the side of the images, the
  first and the last learning rate, and the CRC-32 of the learning rates of all iterations as little-endian float64. For
  each network, it contains the names of the parameters without weight decay.
- examples/cifar/train_cifar.py: the learning rate of each iteration.
"""

import json
import pathlib
import zlib

import numpy as np
from torchvision import models

TRAIN_IMAGES = 1281167
RAMPS = {16: (11, 13), 24: (17, 20), 32: (23, 27), 40: (29, 34), 56: (41, 48), 88: (65, 76)}
NETWORKS = {18: {"lr": 0.5, "batch": 1024, "ranks": 1}, 50: {"lr": 1.7, "batch": 512, "ranks": 8}}
SIDES = (160, 192)
PEAK_EPOCH = 2


def lr_at(epoch, lr, epochs):
    return np.interp(epoch, [0, PEAK_EPOCH, epochs], [1e-4 * lr, lr, 0])


def side_at(epoch, ramp):
    if ramp[0] < epoch < ramp[1]:
        return int(np.round(np.interp(epoch, ramp, SIDES) / 32)) * 32
    return SIDES[0] if epoch <= ramp[0] else SIDES[1]


def run(epochs, network):
    """Returns the epochs of a run. Like a DistributedSampler, repeats samples until all ranks have equally many."""
    samples = -(-TRAIN_IMAGES // network["ranks"])
    iterations = samples // network["batch"]
    rows = []
    for epoch in range(epochs):
        ends = [lr_at(at, network["lr"], epochs) for at in (epoch, epoch + 1)]
        rates = np.interp(np.arange(iterations), [0, iterations], ends)
        rows.append([side_at(epoch, RAMPS[epochs]), rates[0], rates[-1],
                     zlib.crc32(rates.astype("<f8").tobytes())])
    return {"iterations": iterations, "epochs": rows}


def cifar10():
    """Returns one triangle over all iterations. The last, incomplete batch of an epoch is dropped."""
    lr, peak, epochs, iterations = 0.5, 5, 24, 50000 // 512
    at = np.arange(epochs * iterations)
    shares = np.interp(at, [0, peak * iterations, epochs * iterations], [0, 1, 0])
    return {"iterations": iterations, "rates": " ".join(f"{lr * share:.17g}" for share in shares)}


def main():
    golden = {"cifar10": cifar10(), "no_decay": {}, "runs": {}}
    for depth, network in NETWORKS.items():
        arch = f"resnet{depth}"
        names = [name for name, _ in getattr(models, arch)().named_parameters()]
        golden["no_decay"][arch] = " ".join(name for name in names if "bn" in name)
        for epochs in RAMPS:
            golden["runs"][f"rn{depth}_{epochs}"] = run(epochs, network)
    path = pathlib.Path(__file__).parent / "ffcv_recipes.json"
    text = json.dumps(golden, indent=1)
    # One epoch per line.
    text = text.replace(",\n     ", ", ").replace("[\n     ", "[").replace("\n    ]", "]")
    path.write_text(text + "\n")


if __name__ == "__main__":
    main()
