#!/usr/bin/env python3
"""Measures the cost and the savings of a ring: `precast serve` with consumers, compared with private loaders.

usage: shared_loading.py FILE.beton [--build BUILD] [--workers N] [--batch-size N] [--image-size PX] [--epochs N]
                         [--repeats N] [--rounds N] [--train]

Measures all variants in each round, and prints medians over the rounds:
  - throughput of one consumer that discards its batches, divided by that of a private loader with as many threads
    as the server;
  - CPU-seconds of a server and four consumers together, per image that the server decodes, divided by those of one
    private loader per image.
With --train, also prints, from one measurement:
  - CPU-seconds of loading for four training runs on a ring and its server, divided by those for one run alone.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from figures import run


class Bench:
    def __init__(self, arguments, folder):
        self.precast = str(Path(arguments.build) / "bin/precast")
        self.arguments = arguments
        self.folder = folder
        self.recipe = folder / "recipe.yaml"
        size = arguments.image_size
        self.recipe.write_text(f"""
data: {{train_dataset: {arguments.file}, val_dataset: {arguments.file}, num_workers: {arguments.workers},
  repeats: {arguments.repeats}, jpeg_index_mb: 0}}
resolution: {{min_res: {size}, max_res: {size}}}
training: {{batch_size: {arguments.batch_size}, epochs: {arguments.epochs}, device: cpu}}
validation: {{resolution: {size}}}
logging: {{log_level: 0}}
""")
        self.rings = 0

    def private(self):
        row = json.loads(run([self.precast, "bench", "loader", self.recipe, "--seconds", "10", "--runs", "1",
                              "--image-size", self.arguments.image_size, "--json"]))
        row = row["points"][0] if "points" in row else row
        return row["images_per_second"], 1 / row["images_per_cpu_second"]

    def serve(self, consumers):
        self.rings += 1
        name = f"bench-{os.getpid()}-{self.rings}"
        command = [self.precast, "serve", self.recipe, "--as", name, "--consumers", str(consumers), "--json"]
        output, messages = self.folder / f"{name}.out", self.folder / f"{name}.err"
        # Files, because a pipe that nobody reads blocks the server once it is full.
        with output.open("w") as written, messages.open("w") as printed:
            server = subprocess.Popen(command, stdout=written, stderr=printed)
        while f"ring://{name}" not in messages.read_text():
            assert server.poll() is None, messages.read_text()
            time.sleep(0.02)
        return name, server

    def end_of(self, name, server):
        """Waits for the server to end, and returns its last record."""
        assert server.wait() == 0, (self.folder / f"{name}.err").read_text()
        return json.loads((self.folder / f"{name}.out").read_text().splitlines()[-1])

    def shared(self, consumers):
        """Returns the throughput of the slowest consumer, and the CPU-seconds of all processes per decoded image."""
        name, server = self.serve(consumers)
        readers = [subprocess.Popen([self.precast, "bench", "ring", name, "--json"], stdout=subprocess.PIPE, text=True)
                   for _ in range(consumers)]
        figures = [json.loads(reader.communicate()[0]) for reader in readers]
        end = self.end_of(name, server)
        cpu = end["cpu_seconds"] + sum(figure["cpu_seconds"] for figure in figures)
        return min(figure["samples_per_second"] for figure in figures), cpu / end["samples_decoded"]

    def train(self, run, *more):
        command = [self.precast, "train", self.recipe, f"--logging.folder={self.folder}/runs",
                   f"--logging.run_id={run}", *more]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def decoding_seconds(self, run):
        """Returns the CPU-seconds of the run's own loader threads."""
        lines = [json.loads(line) for line in (self.folder / "runs" / run / "log").read_text().splitlines()]
        return max(line["loader_time"]["decoding"] for line in lines if "loader_time" in line)

    def trainings(self):
        """Returns the CPU-seconds of loading for one training run alone, and for four runs on a ring with its
        server."""
        assert self.train("alone").wait() == 0
        name, server = self.serve(4)
        runs = [f"ring{number}" for number in range(4)]
        started = [self.train(run, f"--data.train_dataset=ring://{name}", f"--lr.lr={0.01 * (number + 1)}")
                   for number, run in enumerate(runs)]
        assert all(run.wait() == 0 for run in started)
        end = self.end_of(name, server)
        assert end["samples_delivered"] == 4 * end["samples_decoded"], end
        return self.decoding_seconds("alone"), end["cpu_seconds"] + sum(map(self.decoding_seconds, runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", metavar="FILE.beton")
    parser.add_argument("--build", default="build", help="build folder; default: %(default)s")
    for name, value, text in (("workers", 2, "loader threads"), ("batch-size", 64, "samples per batch"),
                              ("image-size", 160, "side of the images in px"), ("epochs", 10, "epochs to serve"),
                              ("repeats", 1, "how often each sample occurs in an epoch"),
                              ("rounds", 3, "number of rounds")):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{text}; default: %(default)s")
    parser.add_argument("--train", action="store_true", help="also measure training runs on a ring")
    arguments = parser.parse_args()
    arguments.file = Path(arguments.file).resolve()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, Path(folder))
        rows = []
        for number in range(arguments.rounds):
            private, one, four = bench.private(), bench.shared(1), bench.shared(4)
            rows.append({"private_images_per_second": private[0], "ring_images_per_second": one[0],
                         "throughput_ratio": one[0] / private[0], "private_cpu_us": private[1] * 1e6,
                         "four_consumers_cpu_us": four[1] * 1e6, "cpu_ratio": four[1] / private[1]})
            texts = [f"{key} {value:.4g}" for key, value in rows[-1].items()]
            print(f"round {number + 1}: {', '.join(texts)}", flush=True)
        result = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        if arguments.train:
            alone, four = bench.trainings()
            result |= {"one_training_alone_loader_cpu_seconds": alone, "four_trainings_loader_cpu_seconds": four,
                       "trainings_ratio": four / alone}
        print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
