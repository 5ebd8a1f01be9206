#!/usr/bin/env python3
"""Compares the training speed of precast with plain Python torch, measured alternately.

    bench_step.py [--pairs 7] [--json OUT.json] [--sizes 32:64 64:64 128:32] [-- options for both]

Each measurement is a separate process of `precast bench step --data device` or torch_twin/twin_step.py,
with the same model, batch, image size, layout, precision, threads and, on a CPU, cores (taskset). The two run in
pairs, and every second pair begins with the other program, so that other load on the machine affects
both. The ratio is the median over the pairs of precast's figure divided by Python's. While the machine's
load is above --most_load, the script waits before the next pair, for at most five minutes. The losses of
the last step are compared: with --threads 1 and without --blurpool they are bitwise identical.

All arguments after -- are passed to both programs, as in: bench_step.py -- --blurpool --layout nchw
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TWIN = pathlib.Path(__file__).resolve().parent / "torch_twin" / "twin_step.py"


def call(command, environment):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"bench_step: expected exit code 0, got {done.returncode} ({' '.join(map(str, command))}): "
                 f"{done.stderr[-2000:]}")
    return json.loads(done.stdout)


class Bench:
    def __init__(self, args):
        self.args = args
        cores = sorted(os.sched_getaffinity(0))[:args.threads]
        self.pinned = ["taskset", "-c", ",".join(map(str, cores))] if args.device == "cpu" else []

    def measure(self, peer, size, batch):
        options = ["--image-size", size, "--batch-size", batch, "--threads", self.args.threads,
                   "--device", self.args.device, "--steps", self.args.steps, "--warmup", self.args.warmup,
                   "--runs", self.args.windows, *self.args.both]
        environment = os.environ | dict(setting.split("=", 1) for setting in self.args.env)
        if peer == "precast":
            environment |= dict(setting.split("=", 1) for setting in self.args.precast_env)
            return call([*self.pinned, self.args.precast, "bench", "step", "--data", "device", "--json", *options],
                        environment)
        environment |= dict(setting.split("=", 1) for setting in self.args.python_env)
        return call([*self.pinned, sys.executable, TWIN, *options], environment)

    def wait_for_quiet(self):
        for _ in range(30):
            if os.getloadavg()[0] <= self.args.most_load:
                return
            time.sleep(10)

    def pairs(self, size, batch):
        runs = []
        for number in range(self.args.pairs):
            self.wait_for_quiet()
            load = os.getloadavg()[0]
            order = ("precast", "python") if number % 2 == 0 else ("python", "precast")
            pair = {peer: self.measure(peer, size, batch) for peer in order}
            runs.append(pair | {"load": load})
            rates = ", ".join(f"{peer} {pair[peer]['images_per_second']:.1f}" for peer in ("precast", "python"))
            print(f"{size} px, pair {number + 1}: {rates} img/s, ratio {ratio(pair, 'images_per_second'):.3f} "
                  f"(img/CPU-s {ratio(pair, 'images_per_cpu_second'):.3f}), load {load:.1f}",
                  file=sys.stderr, flush=True)
        return runs


def ratio(pair, figure):
    return pair["precast"][figure] / pair["python"][figure]


def summarise(size, batch, runs):
    row = {"image_size": size, "batch_size": batch,
           "losses_equal": all(r["precast"]["loss"] == r["python"]["loss"] for r in runs)}
    for figure in ("images_per_second", "images_per_cpu_second"):
        row[f"ratio_{figure}"] = statistics.median(ratio(r, figure) for r in runs)
        for peer in ("precast", "python"):
            row[f"{peer}_{figure}"] = statistics.median(r[peer][figure] for r in runs)
    return row | {"ratio_min": min(ratio(r, "images_per_second") for r in runs),
                  "ratio_max": max(ratio(r, "images_per_second") for r in runs),
                  "load_max": max(r["load"] for r in runs), "runs": runs}


def print_table(rows):
    print(f"{'px':>5} {'batch':>6} {'precast img/s':>14} {'python img/s':>13} {'ratio (min - max)':>24} "
          f"{'ratio img/CPU-s':>16}   losses")
    for r in rows:
        ratios = f"{r['ratio_images_per_second']:.3f} ({r['ratio_min']:.2f} - {r['ratio_max']:.2f})"
        print(f"{r['image_size']:>5} {r['batch_size']:>6} {r['precast_images_per_second']:>14.1f} "
              f"{r['python_images_per_second']:>13.1f} {ratios:>24} "
              f"{r['ratio_images_per_cpu_second']:>16.3f}   {'equal' if r['losses_equal'] else 'differ'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--sizes", nargs="+", default=["32:64", "64:64", "128:32"], metavar="PX:BATCH")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=4, help="steps per window")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--most_load", type=float, default=float("inf"), help="wait while the machine's load is higher")
    for whose in ("", "precast_", "python_"):
        parser.add_argument(f"--{whose}env", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", type=pathlib.Path, metavar="OUT.json", help="write every measurement")
    parser.add_argument("--precast", default=ROOT / "build/bin/precast", type=pathlib.Path)
    own = sys.argv[1:]
    split = own.index("--") if "--" in own else len(own)
    args = parser.parse_args(own[:split])
    args.both = own[split + 1:]
    bench = Bench(args)
    rows = []
    for entry in args.sizes:
        size, batch = map(int, entry.split(":"))
        rows.append(summarise(size, batch, bench.pairs(size, batch)))
    print_table(rows)
    if args.json:
        args.json.write_text(json.dumps({"pairs": args.pairs, "threads": args.threads, "both": args.both, "rows": rows},
                                        indent=1))


if __name__ == "__main__":
    main()
