#!/usr/bin/env python3
"""Times the training step of `precast bench step --data device` in plain Python; prints JSON.

The step uses torch as most users do, eager or with --compile: torchvision's model with weights from seed 0,
one batch from seed 0 that stays on the device (on a GPU, in the step's precision), torch.optim.SGD in its default
implementation, autocast for fp16 and bf16, GradScaler for fp16, channels_last and cudnn.benchmark. bench_step.py
compares the losses of eager steps with precast's, to check that both compute the same. Compilation and the first
steps are part of `warmup_seconds`, not of the timed windows. Exit code 6 if --device requests a GPU that torch cannot
use.
"""

import argparse
import json
import os
import statistics
import time

import torch

import recipe

LEARNING_RATE = 0.01
TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def arguments(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--blurpool", action="store_true")
    parser.add_argument("--image-size", type=int, default=160)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "fp16", "bf16"])
    parser.add_argument("--layout", default="channels_last", choices=["channels_last", "nchw"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--runs", type=int, default=5, help="timed windows of --steps steps")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--compile", nargs="?", const="default",
                        choices=["default", "max-autotune-no-cudagraphs"],
                        help="compile the model with torch.compile in this mode")
    return parser.parse_args(argv)


class Step:
    def __init__(self, args):
        self.device = recipe.find_device(args.device)
        layout = torch.channels_last if args.layout == "channels_last" else torch.contiguous_format
        torch.manual_seed(0)
        model = recipe.make_model(args.model, args.classes, args.blurpool)
        self.model = model.to(self.device, memory_format=layout).train()
        self.forward = torch.compile(self.model, mode=args.compile) if args.compile else self.model
        generator = torch.Generator().manual_seed(0)
        images = torch.randn(args.batch_size, 3, args.image_size, args.image_size, generator=generator)
        labels = torch.randint(args.classes, (args.batch_size,), generator=generator)
        # On a GPU, images have the type in which the step computes, as images from precast's loader do.
        kind = TYPES[args.precision] if self.device.type == "cuda" else torch.float32
        self.images = images.contiguous(memory_format=layout).to(self.device, kind)
        self.labels = labels.to(self.device)
        self.loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
        self.optimizer = recipe.make_sgd(self.model, 0.9, 4e-5)
        recipe.set_lr(self.optimizer, LEARNING_RATE)
        self.autocast = torch.autocast(self.device.type, TYPES[args.precision],
                                       enabled=args.precision != "fp32")
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=args.precision == "fp16")

    def __call__(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast:
            loss = self.loss_of(self.forward(self.images), self.labels)
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
    loss = float("nan")
    for _ in range(steps):
        loss = step()
    step.wait()
    seconds, used = time.perf_counter() - start, os.times()
    return {"seconds": seconds, "cpu_seconds": used.user + used.system - cpu.user - cpu.system,
            "loss": float(loss)}


def device_name(device):
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def main():
    args = arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.backends.cudnn.benchmark = True
    step = Step(args)
    warmup = time_steps(step, args.warmup)
    windows = [time_steps(step, args.steps) for _ in range(args.runs)]
    images = args.steps * args.batch_size
    for window in windows:
        window["images_per_second"] = images / window["seconds"]
    rates = [window["images_per_second"] for window in windows]
    print(json.dumps({
        "images_per_second": statistics.median(rates), "min": min(rates), "max": max(rates),
        "images_per_cpu_second": statistics.median(images / w["cpu_seconds"] for w in windows),
        "loss": windows[-1]["loss"], "warmup_seconds": warmup["seconds"],
        "settings": vars(args) | {"threads": torch.get_num_threads()},
        "device_name": device_name(step.device), "torch": torch.__version__, "windows": windows}))


if __name__ == "__main__":
    main()
