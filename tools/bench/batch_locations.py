#!/usr/bin/env python3
"""Compares the sources of training batches: precast's own loader, synthetic data, and other programs.

usage: batch_locations.py IMAGES.beton [--build BUILD] [--python PYTHON] [--image-size PX] [--batch-size N]
                          [--samples N] [--steps N] [--rounds N]

The script writes the first samples of the file as a dataset of raw pixels. It then times training steps of a network
that needs almost no computation, with batches from: synthetic data (`--data` device, cpu and queue of `precast bench
step`), the raw dataset, the given file (its JPEGs are decoded and cropped), and the producers of examples/producers,
which send the pixels of the raw dataset. Each round measures every source once; the script prints medians over the
rounds. The CPU time includes the trainer and the producer. PYTHON must have NumPy and pyzmq.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import zipfile

from figures import ROOT, markdown, npy, run

RECIPE = """
model: {{arch: layers, params: {{layers: [global_avg_pool, flatten, linear]}}}}
data: {{num_workers: {workers}, jpeg_index_mb: 0}}
pipeline: {{train: {steps}}}
resolution: {{min_res: {size}, max_res: {size}}}
training: {{batch_size: {batch}, device: cpu}}
"""


def cpu_seconds(process):
    """Returns the CPU seconds that a process has used so far."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.precast = arguments.build / "bin/precast"
        self.endpoint = folder / "zmq"
        self.prepare()

    def prepare(self):
        a = self.arguments
        listed = ",".join(map(str, range(a.samples)))
        samples = run([self.precast, "preview", a.file, "--image-size", a.image_size, "--positions", listed, "-o",
                       self.folder / "images.npy", "--json"])
        (self.folder / "samples.json").write_text(samples)
        labels = b"".join(sample["label"].to_bytes(8, "little") for sample in json.loads(samples)["samples"])
        with zipfile.ZipFile(self.folder / "raw.npz", "w") as archive:
            archive.write(self.folder / "images.npy", "image.npy")
            archive.writestr("label.npy", npy("<i8", (a.samples,), labels))
        run([self.precast, "write", self.folder / "raw.npz", self.folder / "raw.beton", "--image.mode=raw"])
        for name, crop in (("raw", "whole_image"), ("jpeg", "random_resized_crop")):
            (self.folder / f"{name}.yaml").write_text(RECIPE.format(
                workers=os.cpu_count(), steps=f"[{crop}, horizontal_flip]", size=a.image_size, batch=a.batch_size))

    def steps(self, data, recipe="raw"):
        a = self.arguments
        figures = json.loads(run([self.precast, "bench", "step", self.folder / f"{recipe}.yaml", "--data", data,
                                  "--model.num_classes=1000", "--warmup", "20", "--steps", a.steps, "--runs", 5,
                                  "--json"]))
        return figures["images_per_second"], 1 / figures["images_per_cpu_second"]

    def outside(self, script, target, data):
        """Starts a producer, measures training steps on its batches, and kills it."""
        a = self.arguments
        batches = 20 + 5 * a.steps
        command = [a.python, ROOT / "examples/producers" / script, target, self.folder / "images.npy",
                   self.folder / "samples.json", a.batch_size, 10**6]
        producer = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL)
        try:
            self.wait_for(producer)
            before = cpu_seconds(producer.pid)
            rate, own = self.steps(data)
            return rate, own + (cpu_seconds(producer.pid) - before) / (batches * a.batch_size)
        finally:
            producer.kill()
            producer.wait()

    @staticmethod
    def wait_for(producer):
        """Waits until the producer has read its arrays, that is, until its CPU time stops growing."""
        last = -1.0
        while (now := cpu_seconds(producer.pid)) != last or now == 0:
            last = now
            try:
                producer.wait(0.5)
                sys.exit("batch_locations: expected a running producer, got one that exited. "
                         "The Python of --python needs NumPy and pyzmq")
            except subprocess.TimeoutExpired:
                pass

    def rows(self):
        ring = f"bench-{os.getpid()}"
        return {
            "device: one synthetic batch": lambda: self.steps("device"),
            "cpu: synthetic, drawn by the training thread": lambda: self.steps("cpu"),
            "queue: synthetic, drawn by a second thread": lambda: self.steps("queue"),
            "`.beton`, raw pixels": lambda: self.steps(self.folder / "raw.beton"),
            "`.beton`, the given file": lambda: self.steps(self.arguments.file, "jpeg"),
            "ring, Python producer": lambda: self.outside("ring_producer.py", ring, f"ring://{ring}"),
            "ZMQ, Python producer": lambda: self.outside("zmq_producer.py", f"ipc://{self.endpoint}",
                                                         f"zmq://{self.endpoint}"),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path, metavar="IMAGES.beton")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build folder; default: %(default)s")
    parser.add_argument("--python", default=sys.executable, help="a Python with NumPy and pyzmq; default: %(default)s")
    for name, value, text in (("image-size", 128, "side of the images in px"), ("batch-size", 64, "samples per batch"),
                              ("samples", 1024, "samples of IMAGES.beton to use"), ("steps", 40, "steps per window"),
                              ("rounds", 5, "measurements of each source")):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{text}; default: %(default)s")
    arguments = parser.parse_args()
    arguments.file = arguments.file.resolve()
    with tempfile.TemporaryDirectory() as folder:
        rows = Bench(arguments, pathlib.Path(folder)).rows()
        measured = {name: [] for name in rows}
        for number in range(arguments.rounds):
            for name, measure in rows.items():
                measured[name].append(measure())
                print(f"round {number + 1}: {name}: {measured[name][-1][0]:.0f} img/s", file=sys.stderr, flush=True)
    table = [("batches from", "images per second", "images per CPU-second, all processes")]
    for name, figures in measured.items():
        rate, cost = (statistics.median(column) for column in zip(*figures, strict=True))
        table.append((name, f"{rate:,.0f}", f"{1 / cost:,.0f}"))
    print(markdown(table))


if __name__ == "__main__":
    main()
