#!/usr/bin/env python3
"""Trains the ResNet-9 of configs/cifar10/rn9.yaml on images of 32 x 32 px, in plain torch.

    twin_cifar.py train.npz val.npz [--epochs 24] [--lr 0.5] ...
    twin_cifar.py train.npz --steps 20 --weights w.safetensors --lr 3e-4

This is the recipe of FFCV's CIFAR-10 example: SGD with a triangular learning rate, flip, shift by up to
2 px and a cutout of 4 px filled with the mean; evaluation adds the logits of an image and its mirror
image. The archives contain `image`, uint8 [N, 32, 32, 3], and `label`. Prints one line of JSON per epoch.
With --steps, the learning rate is constant, there is no augmentation, batches are in the order of the
file, and the output is {"losses": [...]}.
"""

import argparse
import json
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import recipe

MEAN = torch.tensor([125.307, 122.961, 113.8575]).view(1, 3, 1, 1)
STD = torch.tensor([51.5865, 50.847, 51.255]).view(1, 3, 1, 1)
FILL = torch.tensor([125, 122, 113], dtype=torch.uint8).view(1, 1, 1, 3)
SIDE, SHIFT, HOLE = 32, 2, 4


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("val", nargs="?")
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--peak", type=int, default=5, help="epoch with the highest learning rate")
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--weights", help="initial state_dict, .pt or .safetensors")
    parser.add_argument("--steps", type=int)
    return parser.parse_args()


class Residual(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.layers(x)


def unit(channels_in, channels_out, kernel=3, stride=1, padding=1):
    return [nn.Conv2d(channels_in, channels_out, kernel, stride, padding, bias=False),
            nn.BatchNorm2d(channels_out), nn.ReLU()]


def make_model(classes):
    """The network, with the parameter names of precast's model `layers`."""
    return nn.Sequential(
        *unit(3, 64), *unit(64, 128, 5, 2, 2), Residual(*unit(128, 128), *unit(128, 128)),
        *unit(128, 256), nn.MaxPool2d(2), Residual(*unit(256, 256), *unit(256, 256)),
        *unit(256, 128, padding=0), nn.AdaptiveMaxPool2d(1), nn.Flatten(),
        nn.Linear(128, classes, bias=False))


def logits_of(model, images):
    return 0.2 * model(images)


def normalise(pixels):
    return (pixels.permute(0, 3, 1, 2).float() - MEAN) / STD


def augment(pixels):
    """Augments uint8 [N, 32, 32, 3]; flip, shift and cutout are drawn for each image."""
    count = len(pixels)
    flipped = torch.where(torch.rand(count, 1, 1, 1) < 0.5, pixels.flip(2), pixels)
    padded = FILL.expand(count, SIDE + 2 * SHIFT, SIDE + 2 * SHIFT, 3).clone()
    padded[:, SHIFT:-SHIFT, SHIFT:-SHIFT] = flipped
    each, side = torch.arange(count).view(-1, 1, 1), torch.arange(SIDE)
    top, left = torch.randint(2 * SHIFT + 1, (2, count, 1))
    shifted = padded[each, (top + side).unsqueeze(2), (left + side).unsqueeze(1)]
    top, left = torch.randint(SIDE - HOLE + 1, (2, count, 1))
    rows, columns = ((side >= at) & (side < at + HOLE) for at in (top, left))
    hole = (rows.unsqueeze(2) & columns.unsqueeze(1)).unsqueeze(3)
    return torch.where(hole, FILL, shifted)


def load(path):
    arrays = np.load(path)
    return torch.from_numpy(arrays["image"]), torch.from_numpy(arrays["label"].astype(np.int64))


def step(model, optimizer, images, labels):
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(logits_of(model, images), labels, label_smoothing=0.1)
    loss.backward()
    optimizer.step()
    return loss.item()


def losses_of_steps(args, model, optimizer, images, labels):
    losses = []
    for number in range(args.steps):
        part = slice(number * args.batch, (number + 1) * args.batch)
        losses.append(step(model, optimizer, normalise(images[part]), labels[part]))
    return losses


def accuracy(model, images, labels, batch):
    model.eval()
    hits = 0
    with torch.no_grad():
        for begin in range(0, len(images), batch):
            pixels = normalise(images[begin : begin + batch])
            logits = logits_of(model, pixels) + logits_of(model, pixels.flip(3))
            hits += (logits.argmax(1) == labels[begin : begin + batch]).sum().item()
    model.train()
    return hits / len(images)


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    images, labels = load(args.train)
    model = make_model(int(labels.max()) + 1)
    if args.weights:
        model.load_state_dict(recipe.load_weights(args.weights))
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=5e-4)
    if args.steps:
        print(json.dumps({"losses": losses_of_steps(args, model, optimizer, images, labels)}))
        return
    started, steps = time.monotonic(), len(images) // args.batch
    for epoch in range(args.epochs):
        order, losses = torch.randperm(len(images)), []
        for number in range(steps):
            at = recipe.interpolate(epoch * steps + number,
                                    [0, args.peak * steps, args.epochs * steps], [0, 1, 0])
            recipe.set_lr(optimizer, args.lr * at)
            part = order[number * args.batch : (number + 1) * args.batch]
            losses.append(step(model, optimizer, normalise(augment(images[part])), labels[part]))
        row = {"epoch": epoch, "train_loss": sum(losses) / steps,
               "seconds": time.monotonic() - started}
        if args.val:
            row["top_1"] = accuracy(model, *load(args.val), args.batch)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
