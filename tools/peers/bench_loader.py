#!/usr/bin/env python3
"""Images per second and per CPU-second of precast's loader beside FFCV's and torchvision's.

    bench_loader.py PHOTOS.tar [--rounds 5] [--json OUT.json]

PHOTOS.tar: class folders or CLASS_NAME.JPEG files. precast writes it twice: JPEG of quality 90, longer
side at most 512 px; raw pixels, longer side at most 256 px. FFCV reads these very files; torchvision
reads the JPEGs of the first, taken out byte for byte (it has no raw format). All do a random resized
crop to 176 px and a flip, and give uint8; batch 256; random order; page cache hot.

Every measurement is a process of its own that warms up (numba compiles, workers start, a first pass) and
then counts. Peers take turns in each round, so that a machine's bad minutes hit all of them; a ratio is
the median over the rounds of precast's figure divided by the peer's of the same round. CPU seconds are
those of the process and all its children. With one worker the process is pinned to one core (torchvision
then loads in the process itself, its fastest way); with two, to two.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIDE, BATCH = 176, 256
# Images a measurement at least: FFCV allocates its buffers anew each pass, so short ones understate it.
IMAGES = {"jpg": 6000, "raw": 20000}
IMAGES_OF = {"torchvision": 3000}


def cpu_seconds():
    """Of this process and its living children (user and system)."""
    mine = os.times()
    total = mine.user + mine.system
    for children in pathlib.Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            fields = pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def measure(one_pass):
    """The second of two passes over everything."""
    one_pass()
    cpu, start = cpu_seconds(), time.perf_counter()
    images = one_pass()
    seconds = time.perf_counter() - start
    return {"images": images, "seconds": seconds, "cpu_seconds": cpu_seconds() - cpu}


def run_ffcv(file, workers, images):
    import numpy as np
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.reader import Reader
    from ffcv.transforms import RandomHorizontalFlip, Squeeze, ToTensor

    samples = int(Reader(file).num_samples)
    loader = Loader(
        file, batch_size=BATCH, num_workers=workers, os_cache=True, order=OrderOption.RANDOM, drop_last=False,
        indices=np.tile(np.arange(samples), -(-images // samples)),
        pipelines={"image": [RandomResizedCropRGBImageDecoder((SIDE, SIDE)), RandomHorizontalFlip(), ToTensor()],
                   "label": [IntDecoder(), ToTensor(), Squeeze()]})
    return measure(lambda: sum(len(label) for _, label in loader))


class JpegFiles:
    """A dataset of torch: the files of a folder, again and again."""

    def __init__(self, folder, images):
        from torchvision import transforms

        self.files = sorted(folder.glob("*.jpg"))
        self.images = -(-images // len(self.files)) * len(self.files)
        self.transform = transforms.Compose(
            [transforms.RandomResizedCrop(SIDE), transforms.RandomHorizontalFlip(), transforms.PILToTensor()])

    def __len__(self):
        return self.images

    def __getitem__(self, index):
        from PIL import Image

        number = index % len(self.files)
        with Image.open(self.files[number]) as image:
            return self.transform(image.convert("RGB")), number


def run_torchvision(folder, workers, images):
    import torch

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        JpegFiles(pathlib.Path(folder), images), batch_size=BATCH, shuffle=True,
        num_workers=0 if workers == 1 else workers, persistent_workers=workers > 1)
    return measure(lambda: sum(len(label) for _, label in loader))


class Bench:
    """Runs one measurement in a process of its own."""

    def __init__(self, program, scratch):
        self.program, self.scratch = program, scratch

    def call(self, *command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"bench_loader: expected success, got exit code {done.returncode} ({' '.join(map(str, command))}): {done.stderr[-2000:]}")
        return done.stdout

    def prepare(self, photos):
        """Writes the files that all read."""
        for kind, side in (("jpg", 512), ("raw", 256)):
            self.call(self.program, "write", photos, self.file(kind), "--image.mode", kind, "--image.max_resolution", side, "--image.quality", 90)
        folder = self.scratch / "photos"
        folder.mkdir()
        self.samples = json.loads(self.call(self.program, "inspect", self.file("jpg"), "--json"))["samples"]
        for sample in range(self.samples):
            self.call(self.program, "inspect", self.file("jpg"), "--sample", sample, "--out", folder / f"{sample:06}.jpg")

    def file(self, kind):
        return self.scratch / f"{kind}.beton"

    def measure(self, peer, kind, workers):
        images = IMAGES_OF.get(peer, IMAGES[kind])
        pinned = ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:workers]))]
        if peer == "precast":
            passes = -(-images // self.samples)
            out = self.call(*pinned, self.program, "bench", "loader", self.file(kind), "--json", "--passes", passes, "--runs", 1,
                            "--workers", workers, "--image_size", SIDE, "--batch_size", BATCH)
            run = json.loads(out)["runs"][0]
        else:
            source = self.scratch / "photos" if peer == "torchvision" else self.file(kind)
            out = self.call(*pinned, sys.executable, __file__, "--child", peer, source, workers, images)
            run = json.loads(out.splitlines()[-1])
        return {"images": run["images"], "seconds": run["seconds"], "cpu_seconds": run["cpu_seconds"],
                "per_second": run["images"] / run["seconds"], "per_cpu_second": run["images"] / run["cpu_seconds"]}


def summarise(results):
    """Medians and ratios of {(kind, workers, peer): [measurement of each round]}."""
    rows = []
    for (kind, workers, peer), runs in results.items():
        row = {"file": kind, "workers": workers, "peer": peer}
        for figure in ("per_second", "per_cpu_second"):
            values = [r[figure] for r in runs]
            ours = [r[figure] for r in results[kind, workers, "precast"]]
            row[figure] = statistics.median(values)
            row[f"{figure}_least"], row[f"{figure}_most"] = min(values), max(values)
            row[f"precast_over_peer_{figure}"] = statistics.median(o / v for o, v in zip(ours, values, strict=True))
        rows.append(row | {"runs": runs})
    return rows


def print_table(rows):
    print(f"\n{'file':<5} {'workers':>7}  {'':<12} {'img/s (least - most)':>24} {'img/CPU-s (least - most)':>27}   {'precast / peer: img/s':>21}  {'img/CPU-s':>9}")
    for r in rows:
        figures = [f"{r[f]:7.0f} ({r[f + '_least']:.0f} - {r[f + '_most']:.0f})" for f in ("per_second", "per_cpu_second")]
        ratios = ["", ""] if r["peer"] == "precast" else [f"{r[f'precast_over_peer_{f}']:.2f}" for f in ("per_second", "per_cpu_second")]
        print(f"{r['file']:<5} {r['workers']:>7}  {r['peer']:<12} {figures[0]:>24} {figures[1]:>27}   {ratios[0]:>21}  {ratios[1]:>9}")


def main():
    if sys.argv[1:2] == ["--child"]:
        peer, source, workers, images = sys.argv[2:]
        print(json.dumps({"ffcv": run_ffcv, "torchvision": run_torchvision}[peer](source, int(workers), int(images))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path, metavar="PHOTOS.tar")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--kinds", nargs="+", default=["jpg", "raw"], choices=["jpg", "raw"])
    parser.add_argument("--json", type=pathlib.Path, metavar="OUT.json", help="write every measurement")
    parser.add_argument("--precast", default=ROOT / "build/bin/precast", type=pathlib.Path)
    arguments = parser.parse_args()
    for path in (arguments.photos, arguments.precast):
        if not path.exists():
            parser.error(f"expected an existing path, got {path}")
    results, loads = {}, []
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(arguments.precast, pathlib.Path(scratch))
        bench.prepare(arguments.photos)
        for number in range(arguments.rounds):
            for kind in arguments.kinds:
                for workers in arguments.workers:
                    for peer in ("precast", "ffcv", "torchvision") if kind == "jpg" else ("precast", "ffcv"):
                        loads.append(os.getloadavg()[0])
                        run = bench.measure(peer, kind, workers)
                        results.setdefault((kind, workers, peer), []).append(run)
                        print(f"round {number + 1}: {kind}, {workers} worker(s), {peer}: {run['per_second']:.0f} img/s, "
                              f"{run['per_cpu_second']:.0f} img/CPU-s, load {loads[-1]:.1f}", file=sys.stderr, flush=True)
    rows = summarise(results)
    print_table(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps({"rounds": arguments.rounds, "load_most": max(loads), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
