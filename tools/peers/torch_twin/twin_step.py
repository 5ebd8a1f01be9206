#!/usr/bin/env python3
"""Times the training step that `precast bench step --data device` takes, in plain Python; prints JSON.

Eager torch as its users write it: torchvision's model with its own weights from seed 0, one batch from
seed 0 that stays on the device, torch.optim.SGD as it comes, on a GPU with autocast, GradScaler,
channels_last and cudnn.benchmark. Losses equal precast's, so both have computed the same.
"""

import argparse
import json
import os
import statistics
import time

import torch

import recipe

LEARNING_RATE = 0.01


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--blurpool", action="store_true")
    parser.add_argument("--image_size", type=int, default=160)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "fp16", "bf16"])
    parser.add_argument("--layout", default="channels_last", choices=["channels_last", "nchw"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--classes", type=int, default=1000)
    return parser.parse_args()


class Step:
    def __init__(self, args):
        self.device = torch.device(args.device)
        layout = torch.channels_last if args.layout == "channels_last" else torch.contiguous_format
        torch.manual_seed(0)
        model = recipe.make_model(args.model, args.classes, args.blurpool)
        self.model = model.to(self.device, memory_format=layout).train()
        generator = torch.Generator().manual_seed(0)
        images = torch.randn(args.batch_size, 3, args.image_size, args.image_size, generator=generator)
        labels = torch.randint(args.classes, (args.batch_size,), generator=generator)
        half = self.device.type == "cuda" and args.precision == "fp16"
        self.images = images.contiguous(memory_format=layout).to(self.device, torch.half if half else None)
        self.labels = labels.to(self.device)
        self.loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
        self.optimizer = recipe.make_sgd(self.model, 0.9, 4e-5)
        recipe.set_lr(self.optimizer, LEARNING_RATE)
        kind = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[args.precision]
        self.autocast = torch.autocast(self.device.type, kind, enabled=args.precision != "fp32")
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=args.precision == "fp16")

    def __call__(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast:
            loss = self.loss_of(self.model(self.images), self.labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def time_steps(step, steps):
    step.wait()
    cpu, start = os.times(), time.perf_counter()
    for _ in range(steps):
        loss = step()
    step.wait()
    seconds, used = time.perf_counter() - start, os.times()
    return {"seconds": seconds, "cpu_seconds": used.user + used.system - cpu.user - cpu.system,
            "loss": float(loss)}


def main():
    args = arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.backends.cudnn.benchmark = True
    step = Step(args)
    for _ in range(args.warmup):
        step()
    windows = [time_steps(step, args.steps) for _ in range(args.windows)]
    images = args.steps * args.batch_size
    for window in windows:
        window["images_per_second"] = images / window["seconds"]
    rates = [window["images_per_second"] for window in windows]
    print(json.dumps({
        "images_per_second": statistics.median(rates), "least": min(rates), "most": max(rates),
        "images_per_cpu_second": statistics.median(images / w["cpu_seconds"] for w in windows),
        "loss": windows[-1]["loss"], "settings": vars(args) | {"threads": torch.get_num_threads()},
        "torch": torch.__version__, "windows": windows}))


if __name__ == "__main__":
    main()
