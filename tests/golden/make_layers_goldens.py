#!/usr/bin/env python3
"""Writes golden/layers.json: tensors, logits and gradients of two networks built with torch.nn.Sequential.

    pip install torch==2.11.0 torchvision==0.26.0 numpy
    python tests/golden/make_layers_goldens.py

tests/models/described_test.cpp describes the same networks; one is that of configs/cifar10/rn9.yaml. The checksum of
the weights drawn with seed 7 is valid on CPUs with AVX2. Logits and gradients are computed in float64.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

from make_torchvision_goldens import checksum, fill
from toy_model import noise_tensor


class Residual(nn.Module):
    def __init__(self, layers, shortcut):
        super().__init__()
        self.layers = layers
        self.shortcut = shortcut

    def forward(self, x):
        return self.layers(x) + self.shortcut(x)


class Branch(nn.Module):
    """A residual block with an identity shortcut."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        return self.layers(x) + x


def build():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        Residual(nn.Sequential(nn.Conv2d(16, 24, 3, stride=2, padding=1), nn.GELU(),
                               nn.Conv2d(24, 24, 3, padding=1, groups=4)),
                 nn.Sequential(nn.Conv2d(16, 24, 1, stride=2, padding=0))),
        Branch(nn.Sequential(nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 24, 1))),
        nn.AvgPool2d(2), nn.Dropout(0.0), nn.Flatten(), nn.Linear(24 * 4, 20, bias=False),
        nn.ReLU(), nn.Linear(20, 10))


def unit(channels_in, channels_out, kernel=3, stride=1, padding=1):
    return [nn.Conv2d(channels_in, channels_out, kernel, stride, padding, bias=False),
            nn.BatchNorm2d(channels_out), nn.ReLU()]


class Times(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


def resnet9():
    """Returns the network of FFCV's CIFAR-10 example."""
    return nn.Sequential(
        *unit(3, 64), *unit(64, 128, kernel=5, stride=2, padding=2),
        Branch(nn.Sequential(*unit(128, 128), *unit(128, 128))),
        *unit(128, 256), nn.MaxPool2d(2),
        Branch(nn.Sequential(*unit(256, 256), *unit(256, 256))),
        *unit(256, 128, padding=0), nn.AdaptiveMaxPool2d(1), nn.Flatten(),
        nn.Linear(128, 10, bias=False), Times(0.2))


def golden(build):
    torch.manual_seed(7)
    model = build()
    golden = {"seed7": checksum(model.parameters()),
              "state": [" ".join([name, *map(str, tensor.shape)])
                        for name, tensor in model.state_dict().items()]}
    fill(model)
    model.double()
    images = noise_tensor(1000, (4, 3, 32, 32), 4).double()
    with torch.no_grad():
        golden["eval_logits"] = model.eval()(images).flatten().tolist()
    logits = model.train()(images)
    F.cross_entropy(logits, torch.tensor([3, 1, 4, 1])).backward()
    golden["train_logits"] = logits.flatten().tolist()
    golden["gradient_norms"] = [p.grad.double().norm().item() for p in model.parameters()]
    return golden


def main():
    path = pathlib.Path(__file__).parent / "layers.json"
    goldens = {"all_layers": golden(build), "resnet9": golden(resnet9)}
    path.write_text(json.dumps(goldens, indent=1) + "\n")


if __name__ == "__main__":
    main()
