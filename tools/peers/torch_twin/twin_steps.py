#!/usr/bin/env python3
"""Trains torchvision's model on given batches and prints the loss of each step as JSON.

    twin_steps.py --weights w.pt --images x.npy --labels y.npy --lrs lrs.json [--blurpool] ...

Uses fp32 on the CPU and ffcv-imagenet's legacy decay groups. Step i uses images[i * batch : (i+1) * batch]
and the learning rate lrs[i]; batch is the number of images divided by the number of learning rates.
"""

import argparse
import json

import numpy as np
import torch

import recipe


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True, help="initial state_dict, .pt or .safetensors")
    parser.add_argument("--images", required=True, help="uint8 [steps * batch, H, W, 3]")
    parser.add_argument("--labels", required=True, help="integers [steps * batch]")
    parser.add_argument("--lrs", required=True, help="JSON list: the learning rate of each step")
    parser.add_argument("--arch", default="resnet18")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=4e-5)
    parser.add_argument("--label-smoothing", type=float, default=0.0)
    parser.add_argument("--blurpool", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--save", help="write the final state_dict to this .pt")
    parser.add_argument("--logits", help="write evaluation-mode logits of all images, before the "
                                         "first step, to this .npy")
    return parser.parse_args()


def logits_of(model, images, batch):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(recipe.normalise(np.array(images[i:i + batch])))
                          for i in range(0, len(images), batch)]).numpy()


def main():
    args = arguments()
    images = np.load(args.images, mmap_mode="r")
    labels = torch.from_numpy(np.load(args.labels).astype(np.int64).reshape(-1))
    with open(args.lrs) as file:
        lrs = json.load(file)
    batch = len(images) // len(lrs)
    if batch * len(lrs) != len(images) or len(labels) != len(images):
        raise SystemExit(f"twin_steps: expected images and labels to be {len(lrs)} equal batches, "
                         f"got {len(images)} images and {len(labels)} labels")

    weights = recipe.load_weights(args.weights)
    model = recipe.make_model(args.arch, weights["fc.weight"].shape[0], args.blurpool, weights)
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
    if args.logits:
        np.save(args.logits, logits_of(model, images, batch))
    optimizer = recipe.make_sgd(model, args.momentum, args.weight_decay)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=args.label_smoothing)

    model.train()
    losses = []
    for step, lr in enumerate(lrs):
        part = slice(step * batch, (step + 1) * batch)
        recipe.set_lr(optimizer, lr)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(recipe.normalise(np.array(images[part]))), labels[part])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if args.save:
        torch.save(model.state_dict(), args.save)
    print(json.dumps({"losses": losses}))


if __name__ == "__main__":
    main()
