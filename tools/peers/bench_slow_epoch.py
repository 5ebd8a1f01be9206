#!/usr/bin/env python3
"""Compares one epoch of training from a slow disk: precast, and plain Python torch that loads with FFCV or torchvision.

    bench_slow_epoch.py PHOTOS.tar [--read_limit 6] [--rounds 3] [--peers ffcv ffcv_quasi torchvision] [--json OUT.json]

All train the same model on the same JPEGs: precast and FFCV read one .beton file, torchvision reads the JPEGs as files.
All are pinned to the same cores, read through a control group that limits bytes per second (read_limit.py: needs root),
and begin an epoch after the files were dropped from the page cache. Before the first round, the Python peers compile,
start their workers and train two epochs from memory; the second is reported. precast trains each epoch in a new
process, and only its training time counts. The table also shows two lower limits for an epoch from the slow disk: the
time of an epoch from memory, and the time for reading the bytes at the limit. precast can be below the second one,
because its time starts with its first step, when its loader is already reading.
"""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from bench_loader import ROOT, PeerFailed, call
from loader_files import Files
from peer_loaders import PEERS, cpu_seconds
from read_limit import ReadLimit, cached_share, forget

sys.path.append(str(pathlib.Path(__file__).resolve().parent / "torch_twin"))


class TrainingPeer:
    """A separate process that trains the twin's model on batches from a loader of peer_loaders.py."""

    def __init__(self, spec):
        import torch

        import recipe

        torch.set_num_threads(spec["threads"])
        self.recipe, self.spec, self.loader = recipe, spec, PEERS[spec["peer"]](spec)
        self.model = recipe.make_model(spec["arch"], spec["classes"], False).to(memory_format=torch.channels_last)
        self.optimizer = recipe.make_sgd(self.model, 0.9, 5e-5)
        recipe.set_lr(self.optimizer, 0.01)
        self.loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

    def epoch(self):
        import torch

        mean, std = self.recipe.MEAN, self.recipe.STD
        cpu, start, trained = cpu_seconds(), time.perf_counter(), 0
        # precast drops an incomplete batch, so the peers do too.
        for pixels, labels in itertools.islice(self.loader.loader, self.loader.samples // self.spec["batch"]):
            planes = pixels if pixels.shape[1] == 3 else pixels.permute(0, 3, 1, 2)
            images = ((planes.float() - mean) / std).contiguous(memory_format=torch.channels_last)
            self.optimizer.zero_grad(set_to_none=True)
            self.loss_of(self.model(images), labels.long() % self.spec["classes"]).backward()
            self.optimizer.step()
            trained += len(labels)
        return {"images": trained, "seconds": time.perf_counter() - start, "cpu_seconds": cpu_seconds() - cpu}

    def serve(self):
        answers = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)  # libraries that print to stdout write to stderr instead
        self.model.train()
        self.epoch()
        print(json.dumps(self.epoch()), file=answers)
        self.loader.unmap()
        for _ in sys.stdin:
            print(json.dumps(self.epoch()), file=answers)
            self.loader.unmap()


class Bench:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        self.files = Files(call, args.precast, args.photos, scratch)
        self.cores = sorted(os.sched_getaffinity(0))[:args.threads]
        self.limit = ReadLimit(scratch, int(args.read_limit * 1e6))
        if self.limit.reason:
            sys.exit(f"bench_slow_epoch: expected a control group that limits reads, got none: {self.limit.reason}")

    def source(self, peer):
        return self.files.source(peer, "jpg", self.args.copies)

    def pinned(self):
        return ["taskset", "-c", ",".join(map(str, self.cores))]

    def start(self, peer):
        spec = {"peer": peer, "source": str(self.source(peer)), "workers": self.args.threads,
                "threads": self.args.threads, "side": self.args.side, "batch": self.args.batch, "format": "u8",
                "slow_disk": True, "arch": self.args.arch, "classes": 1000}
        return subprocess.Popen([*self.pinned(), sys.executable, __file__, "--peer", json.dumps(spec)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                preexec_fn=self.limit.enter)

    def answer(self, peer, process):
        line = process.stdout.readline()
        if not line:
            raise PeerFailed(f"{peer} exited with code {process.wait()}")
        return json.loads(line)

    def cold(self, peer):
        """Removes the peer's files from the page cache. @return the share of them that is still cached."""
        forget(self.source(peer))
        return cached_share(self.source(peer))

    def train_precast(self, limited):
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            call(*self.pinned(), self.args.precast, "train", f"--model.arch={self.args.arch}",
                 "--model.num_classes=1000",
                 f"--data.train_dataset={self.source('precast')}", f"--data.val_dataset={self.source('precast')}",
                 "--validation.resolution=32", "--logging.log_level=1",
                 f"--data.num_workers={self.args.threads}", "--training.epochs=1",
                 f"--training.batch_size={self.args.batch}", "--training.label_smoothing=0.1",
                 "--lr.lr_schedule_type=constant", "--lr.lr=0.01",
                 f"--resolution.min_res={self.args.side}", f"--resolution.max_res={self.args.side}",
                 f"--logging.folder={folder}",
                 *self.args.options, before=self.limit.enter if limited else None)
            run = json.loads(next(pathlib.Path(folder).rglob("log")).read_text().strip().splitlines()[-1])
        return {"images": run["images"], "seconds": run["train_time"], "waited": run["wait_time"]}

    def measure(self):
        """Returns {peer: {"hot": run, "cold": [runs]}}. The peers alternate."""
        processes, found = {}, {"precast": {"hot": self.train_precast(False), "cold": []}}
        try:
            for peer in self.args.peers:
                print(f"starting {peer}", file=sys.stderr, flush=True)
                processes[peer] = self.start(peer)
                found[peer] = {"hot": self.answer(peer, processes[peer]), "cold": []}
            for number in range(self.args.rounds):
                for peer in list(found)[::1 if number % 2 == 0 else -1]:
                    cached, before = self.cold(peer), self.limit.bytes_read()
                    if peer == "precast":
                        run = self.train_precast(True)
                    else:
                        processes[peer].stdin.write("epoch\n")
                        processes[peer].stdin.flush()
                        run = self.answer(peer, processes[peer])
                    run |= {"cached_before": cached, "bytes_read": self.limit.bytes_read() - before}
                    found[peer]["cold"].append(run)
                    print(f"round {number + 1}, {peer}: {run['seconds']:.1f} s, "
                          f"{run['images'] / run['seconds']:.0f} img/s, {run['bytes_read'] / 1e6:.1f} MB read, "
                          f"{cached:.0%} were cached, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        finally:
            for process in processes.values():
                process.kill()
        return found


def print_table(bench, found):
    print(f"{'loader':<12} {'from memory':>12} {'MB read':>8} {'MB / limit':>11} "
          f"{'from the slow disk (min - max)':>34} {'img/s':>6} {'time / precast':>19}")
    ours = [run["seconds"] for run in found["precast"]["cold"]]
    for peer, runs in found.items():
        seconds = [run["seconds"] for run in runs["cold"]]
        read = statistics.median(run["bytes_read"] for run in runs["cold"]) / 1e6
        middle, ratio = statistics.median(seconds), statistics.median(s / o for s, o in zip(seconds, ours, strict=True))
        span = f"{middle:.1f} s ({min(seconds):.1f} - {max(seconds):.1f})"
        print(f"{peer:<12} {runs['hot']['seconds']:>10.1f} s {read:>8.1f} {read / bench.args.read_limit:>9.1f} s "
              f"{span:>34} {runs['cold'][0]['images'] / middle:>6.0f} {ratio:>19.2f}")


def main():
    if sys.argv[1:2] == ["--peer"]:
        TrainingPeer(json.loads(sys.argv[2])).serve()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--read_limit", type=float, default=6, help="read limit of the disk, MB/s")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", nargs="+", default=["ffcv", "ffcv_quasi", "torchvision"],
                        choices=["ffcv", "ffcv_quasi", "torchvision"])
    parser.add_argument("--copies", type=int, default=2, help="copies of each photo")
    parser.add_argument("--arch", default="resnet18")
    parser.add_argument("--side", type=int, default=64, help="side of the images, px")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2, help="cores, loader workers and threads of torch")
    parser.add_argument("--scratch", type=pathlib.Path, help="folder on the disk to read from; default: TMPDIR")
    parser.add_argument("--precast", default=ROOT / "build/bin/precast", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, metavar="OUT.json", help="write every measurement")
    parser.add_argument("--options", nargs="*", default=[], help="additional keys for precast train")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.scratch) as scratch:
        bench = Bench(args, pathlib.Path(scratch))
        with bench.limit:
            found = bench.measure()
            print_table(bench, found)
        if args.json:
            args.json.write_text(json.dumps({"read_limit": args.read_limit, "found": found}, indent=1))


if __name__ == "__main__":
    main()
