#!/usr/bin/env python3
"""Trains torchvision's model with ffcv-imagenet's recipe on a small dataset, in plain Python torch.

    twin_train.py RECIPE --train DATA --val DATA [--classes N] [--crop whole] [--device auto] [--help]

RECIPE is a YAML file, or the JSON output of `precast train RECIPE --dry-run --json`, which needs no PyYAML.
DATA is a folder of class folders, or PREFIX for PREFIX_images.npy (uint8 [N, H, W, 3]) and
PREFIX_labels.npy. Trains with fp16 autocast on a GPU if there is one, else in fp32 on the CPU, with SGD and
ffcv-imagenet's ramp of the learning rate. Prints one JSON line per epoch. Exit code 6 if --device requests a GPU
that torch cannot use. These keys of the recipe are used:

    model       arch
    resolution  min_res, max_res, start_ramp, end_ramp
    lr          lr, lr_peak_epoch, lr_schedule_type (must be cyclic)
    training    batch_size, epochs, use_blurpool, momentum, weight_decay, label_smoothing
    validation  resolution, batch_size, lr_tta
    data        num_workers (class folders only)
"""

import argparse
import json
import pathlib
import random
import time

import torch

import recipe
import twin_data


def read_sections(path):
    with open(path) as file:
        if not str(path).endswith(".json"):
            import yaml
            return yaml.safe_load(file)
        config = json.load(file)["config"]
    sections = {}
    for key, value in config.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    return sections


def read_recipe(path):
    config = read_sections(path)
    schedule = config["lr"].get("lr_schedule_type", "cyclic")
    if schedule != "cyclic":
        raise SystemExit(f"twin: lr.lr_schedule_type: expected cyclic, got {schedule} ({path})")
    return config


def open_data(place, device, workers):
    if pathlib.Path(place).is_dir():
        return twin_data.Folder(place, device, workers)
    return twin_data.Arrays(place, device)


def autocast(device):
    return torch.autocast(device.type, torch.float16, enabled=device.type == "cuda")


def evaluate(model, data, device, keys, ratio):
    """Top-1 and top-5 accuracy; correct predictions are counted on the device."""
    model.eval()
    hits = torch.zeros(2, dtype=torch.float64, device=device)
    size, batch = keys.get("resolution", 224), keys.get("batch_size", 512)
    with torch.no_grad(), autocast(device):
        for images, labels in data.val(size, batch, ratio):
            logits = model(images)
            if keys.get("lr_tta", True):
                logits = logits + model(images.flip(3))
            best = logits.topk(min(5, logits.shape[1])).indices == labels[:, None]
            hits += torch.stack([best[:, 0].sum(), best.sum()])
    return (hits / len(data)).tolist()


class Training:
    def __init__(self, config, args, device):
        self.config, self.args, self.device = config, args, device
        keys = config["training"]
        model = recipe.make_model(config["model"]["arch"], args.classes, keys.get("use_blurpool"))
        self.model = model.to(device, memory_format=torch.channels_last)
        self.optimizer = recipe.make_sgd(self.model, float(keys.get("momentum", 0.9)),
                                         float(keys.get("weight_decay", 4e-5)))
        self.loss_of = torch.nn.CrossEntropyLoss(label_smoothing=float(keys.get("label_smoothing", 0.1)))
        self.scaler = torch.amp.GradScaler(device.type, enabled=device.type == "cuda")

    def epoch(self, number, data):
        """@return the last step's loss and the image size."""
        sizes, lr, keys = self.config["resolution"], self.config["lr"], self.config["training"]
        size = recipe.resolution(number, sizes["min_res"], sizes["max_res"],
                                 sizes.get("start_ramp", 0), sizes.get("end_ramp", 0))
        batch = int(keys["batch_size"])
        rates = recipe.rates_of_epoch(number, len(data) // batch, float(lr["lr"]), int(keys["epochs"]),
                                      lr.get("lr_peak_epoch", 2))
        self.model.train()
        for rate, (images, labels) in zip(rates, data.train(size, batch, self.args.crop), strict=True):
            recipe.set_lr(self.optimizer, rate)
            self.optimizer.zero_grad(set_to_none=True)
            with autocast(self.device):
                loss = self.loss_of(self.model(images), labels)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        return loss.item(), size


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--train", required=True)
    parser.add_argument("--val", required=True)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--crop", choices=["random", "whole"], default="random", help="crop in training")
    parser.add_argument("--val-ratio", type=float, default=224 / 256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    return parser.parse_args()


def main():
    args = arguments()
    device = recipe.find_device(args.device)
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    torch.set_num_threads(args.threads)
    torch.backends.cudnn.benchmark = True
    config = read_recipe(args.recipe)
    workers = int(config.get("data", {}).get("num_workers", 2))
    train, val = [open_data(place, device, workers) for place in (args.train, args.val)]
    training = Training(config, args, device)
    start = time.time()
    for number in range(int(config["training"]["epochs"])):
        begun = time.time()
        loss, size = training.epoch(number, train)
        trained = time.time()
        top_1, top_5 = evaluate(training.model, val, device, config.get("validation", {}),
                                args.val_ratio)
        print(json.dumps({"epoch": number, "size_px": size, "loss": loss, "top_1": top_1,
                          "top_5": top_5, "train_s": trained - begun, "val_s": time.time() - trained,
                          "total_s": time.time() - start}), flush=True)
    train.close()
    val.close()


if __name__ == "__main__":
    main()
