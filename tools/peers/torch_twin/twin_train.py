#!/usr/bin/env python3
"""Trains torchvision's model with ffcv-imagenet's recipe on a small dataset, in plain Python torch.

    twin_train.py recipe.yaml --train DATA --val DATA [--classes N] [--crop whole] [--help]

DATA is a folder of class folders, or PREFIX for PREFIX_images.npy (uint8 [N, H, W, 3]) and
PREFIX_labels.npy. The recipe's keys: model.arch, resolution.*, lr.*, training.*, validation.*.
fp32 on the CPU or, where there is one, fp16 autocast on a GPU. Prints one JSON line an epoch.
"""

import argparse
import json
import pathlib
import time

import numpy as np
import torch
import yaml
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

import recipe

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Arrays(torch.utils.data.Dataset):
    def __init__(self, prefix, transform):
        self.images = np.load(f"{prefix}_images.npy", mmap_mode="r")
        self.labels = np.load(f"{prefix}_labels.npy").reshape(-1)
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        pixels = torch.from_numpy(np.array(self.images[i])).permute(2, 0, 1)
        return self.transform(pixels), int(self.labels[i])


def dataset(place, transform):
    if pathlib.Path(place).is_dir():
        return ImageFolder(place, v2.Compose([v2.PILToTensor(), transform]))
    return Arrays(place, transform)


def train_transform(size, crop):
    crops = {"random": v2.RandomResizedCrop(size, scale=(0.08, 1), ratio=(3 / 4, 4 / 3)),
             "whole": v2.Resize([size, size])}
    return v2.Compose([crops[crop], v2.RandomHorizontalFlip()])


class CenterCropRatio:
    """The central square of `ratio` of the shorter side, resized."""

    def __init__(self, size, ratio):
        self.size, self.ratio = size, ratio

    def __call__(self, pixels):
        side = int(self.ratio * min(pixels.shape[-2:]))
        square = v2.functional.center_crop(pixels, [side, side])
        return v2.functional.resize(square, [self.size, self.size])


def batches(data, size, workers, shuffle):
    loader = torch.utils.data.DataLoader(data, batch_size=size, shuffle=shuffle, drop_last=shuffle,
                                         num_workers=workers)
    for pixels, labels in loader:
        images = (pixels.to(DEVICE).float() - recipe.MEAN.to(DEVICE)) / recipe.STD.to(DEVICE)
        yield images.contiguous(memory_format=torch.channels_last), labels.to(DEVICE)


def autocast():
    return torch.autocast(DEVICE.type, torch.float16, enabled=DEVICE.type == "cuda")


def evaluate(model, data, keys, workers):
    model.eval()
    hits = np.zeros(2)
    with torch.no_grad(), autocast():
        for images, labels in batches(data, keys.get("batch_size", 512), workers, False):
            logits = model(images)
            if keys.get("lr_tta", True):
                logits = logits + model(images.flip(3))
            best = logits.topk(min(5, logits.shape[1])).indices == labels[:, None]
            hits += [best[:, 0].sum().item(), best.sum().item()]
    return hits / len(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ["recipe", "--train", "--val"]:
        parser.add_argument(name, **({"required": True} if name.startswith("--") else {}))
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--crop", choices=["random", "whole"], default="random", help="in training")
    parser.add_argument("--val-ratio", type=float, default=224 / 256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    config = yaml.safe_load(open(args.recipe))
    lr, training = config["lr"], config["training"]
    sizes, validation = config["resolution"], config.get("validation", {})
    workers = int(config.get("data", {}).get("num_workers", 2))
    epochs, peak_lr, batch = int(training["epochs"]), float(lr["lr"]), int(training["batch_size"])

    model = recipe.make_model(config["model"]["arch"], args.classes, training.get("use_blurpool"))
    model = model.to(DEVICE, memory_format=torch.channels_last)
    optimizer = recipe.make_sgd(model, float(training.get("momentum", 0.9)),
                                float(training.get("weight_decay", 4e-5)))
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=float(training["label_smoothing"]))
    scaler = torch.amp.GradScaler(DEVICE.type, enabled=DEVICE.type == "cuda")
    val = dataset(args.val, CenterCropRatio(validation.get("resolution", 224), args.val_ratio))
    start = time.time()
    for epoch in range(epochs):
        size = recipe.resolution(epoch, sizes["min_res"], sizes["max_res"],
                                 sizes.get("start_ramp", 0), sizes.get("end_ramp", 0))
        train = dataset(args.train, train_transform(size, args.crop))
        rates = recipe.rates_of_epoch(epoch, len(train) // batch, peak_lr, epochs,
                                      lr.get("lr_peak_epoch", 2))
        model.train()
        for rate, (images, labels) in zip(rates, batches(train, batch, workers, True)):
            recipe.set_lr(optimizer, rate)
            optimizer.zero_grad(set_to_none=True)
            with autocast():
                loss = loss_of(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        trained = time.time()
        top_1, top_5 = evaluate(model, val, validation, workers)
        print(json.dumps({"epoch": epoch, "size_px": size, "loss": loss.item(), "top_1": top_1,
                          "top_5": top_5, "val_s": time.time() - trained,
                          "total_s": time.time() - start}), flush=True)


if __name__ == "__main__":
    main()
