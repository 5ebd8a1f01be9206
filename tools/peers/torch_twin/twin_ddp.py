#!/usr/bin/env python3
"""Compares ranks of DistributedDataParallel with ranks of precast, step by step.

    twin_ddp.py FILE.beton [--precast build/bin/precast] [--steps 20] [--help]

precast initialises the weights of a resnet18 and trains it on the CPU with `--dist.nproc`. The twin, torch's
own DDP on Gloo in fp32, starts from the same weights and uses the same batches: images from `precast preview`,
position p for rank p % world. Prints the differences. The exit code is 1 if a weight differs by more than
1e-5 after one step, or the loss of any step by more than 1e-3 of its value.
"""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.distributed
import torch.multiprocessing

import recipe

MOST_WEIGHT_DIFFERENCE = 1e-5
MOST_LOSS_DIFFERENCE = 1e-3


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parents[3]
    parser.add_argument("file", help="a .beton file; epochs are repeated until there are enough steps")
    parser.add_argument("--precast", default=root / "build/bin/precast")
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4, help="images per step and rank")
    parser.add_argument("--size", type=int, default=64, help="image size (side of the square), px")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=5e-5)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        sys.exit(f"twin_ddp: {command[0]} {command[1]} exited with {done.returncode}:\n{done.stderr}")
    return done.stdout


class Peer:
    """Runs precast with the same recipe as the twin."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.samples = json.loads(run([args.precast, "inspect", args.file, "--json"]))["samples"]
        self.steps_per_epoch = self.samples // (args.world * args.batch)
        self.epochs = -(-args.steps // self.steps_per_epoch)

    def train(self, name, epochs, more=()):
        """Trains with precast. @return the loss of each step, and the final weights."""
        args, file = self.args, self.args.file
        run([args.precast, "train", f"--data.train_dataset={file}", f"--data.val_dataset={file}",
             "--training.device=cpu", f"--training.epochs={epochs}",
             f"--training.batch_size={args.batch}", f"--training.seed={args.seed}",
             f"--lr.lr={args.lr}", "--lr.lr_schedule_type=constant", "--lr.warmup_epochs=0",
             f"--training.momentum={args.momentum}",
             f"--training.weight_decay={args.weight_decay}",
             f"--training.label_smoothing={args.label_smoothing}",
             f"--resolution.min_res={args.size}", f"--resolution.max_res={args.size}",
             f"--validation.resolution={args.size}", "--logging.log_level=0", "--logging.every=1",
             "--checkpoint.every_epochs=0",
             f"--logging.folder={self.folder}", f"--logging.run_id={name}", *more])
        with open(self.folder / name / "log") as log:
            rows = [json.loads(line) for line in log]
        losses = [row["loss"] for row in rows if "epoch_step" in row]
        return losses, recipe.load_weights(self.folder / name / "final_weights.safetensors")

    def batches(self):
        """Images [steps, batch * world, H, W, 3] and labels, in the order of training."""
        args, images, labels = self.args, [], []
        for epoch in range(self.epochs):
            pixels = self.folder / f"epoch_{epoch}.npy"
            shown = json.loads(run([args.precast, "preview", args.file, "--train", "--order",
                                    "random", "--positions", "all", "--seed", args.seed, "--epoch",
                                    epoch, "--image-size", args.size, "--json", "-o", pixels]))
            taken = slice(self.steps_per_epoch * args.world * args.batch)
            images.append(np.load(pixels)[taken])
            labels += [sample["label"] for sample in shown["samples"][taken]]
        shape = (self.epochs * self.steps_per_epoch, args.world * args.batch)
        images = np.concatenate(images)
        return images.reshape(*shape, *images.shape[1:]), np.array(labels).reshape(shape)


def train_rank(rank, args, port, weights, images, labels, results):
    """Trains one rank of the twin, with the same steps as the rank of precast."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank,
                                         world_size=args.world)
    model = recipe.make_model("resnet18", weights["fc.weight"].shape[0], False, weights)
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = recipe.make_sgd(model, args.momentum, args.weight_decay)
    recipe.set_lr(optimizer, args.lr)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=args.label_smoothing)
    losses, after_one = [], None
    for step in range(args.steps):
        mine = slice(rank, None, args.world)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(recipe.normalise(images[step][mine])),
                       torch.from_numpy(labels[step][mine]))
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        losses.append(mean.item() / args.world)
        if after_one is None:
            after_one = {name: value.clone() for name, value in model.module.state_dict().items()}
    if rank == 0:
        torch.save({"losses": losses, "after_one": after_one}, results)
    torch.distributed.destroy_process_group()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def largest_weight_difference(ours, theirs):
    """The largest absolute difference between parameters or running statistics."""
    return max((ours[name].double() - theirs[name].double()).abs().max().item()
               for name in theirs if theirs[name].is_floating_point())


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        peer = Peer(args, folder)
        _, weights = peer.train("start", 0)
        start = f"--model.weights={folder / 'start/final_weights.safetensors'}"
        ranks = f"--dist.nproc={args.world}"
        images, labels = peer.batches()
        losses, _ = peer.train("all", peer.epochs, more=[start, ranks])
        peer.train("one", 1, more=[start, ranks, "--checkpoint.every_steps=1",
                                   "--checkpoint.keep_last=1000000"])
        after_one = recipe.load_weights(
            folder / "one/checkpoints/ckpt-0000000001/model.safetensors")
        results = folder / "twin.pt"
        torch.multiprocessing.spawn(train_rank, nprocs=args.world,
                                    args=(args, free_port(), weights, images, labels, results))
        twin = torch.load(results, weights_only=True)
    weight_difference = largest_weight_difference(after_one, twin["after_one"])
    parameters = {name: value for name, value in weights.items() if "running" not in name}
    step_size = largest_weight_difference(twin["after_one"], parameters)
    loss_difference = max(abs(ours - theirs) / theirs
                          for ours, theirs in zip(losses[:args.steps], twin["losses"], strict=True))
    print(json.dumps({"steps": args.steps, "losses": losses[:args.steps],
                      "twin_losses": twin["losses"],
                      "largest_weight_difference_after_1_step": weight_difference,
                      "largest_weight_change_of_1_step": step_size,
                      "largest_relative_loss_difference": loss_difference}, indent=2))
    if weight_difference > MOST_WEIGHT_DIFFERENCE or loss_difference > MOST_LOSS_DIFFERENCE:
        sys.exit("twin_ddp: precast and DistributedDataParallel differ")


if __name__ == "__main__":
    main()
