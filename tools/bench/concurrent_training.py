#!/usr/bin/env python3
"""Trains 1, 2, ... models at the same time on one host, from one dataset file (figure 5b of FFCV's paper).

    concurrent_training.py [--models 1,2,4] [--rounds 3] [--recipe R.yaml] [--json F] [--svg F] [-- KEYS of the recipe]

Each model is trained by a separate `precast train`. K models share the cores: each has cores / K threads for computing
and the same number for loading; with G GPUs, model i uses GPU i modulo G. Each round measures each number of models
once; figures are medians over the rounds. Without a recipe, `precast new recipe` writes one for a small network and a
dataset of noise (--samples, --px). Prints a Markdown table:

  seconds     from the start of the first process to the end of the last
  img/s each  images per second of a model in its training epochs, without evaluation and start-up; median over models
  img/s all   the sum over the models
  vs first    img/s all, divided by img/s all of the first row
  memory      the peak of the summed proportional set sizes (PSS) of the processes. A memory page of the dataset's file
              that several processes map counts once. Pages of the page cache that no process maps do not count
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

from figures import add_arguments, line_chart, markdown, run, write_noise, write_results


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--models", default="1,2,4", help="numbers of models that train at the same time; "
                        "default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds; default: %(default)s")
    parser.add_argument("--recipe", type=pathlib.Path, help="default: a recipe for a generated dataset of noise")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs of this host; 0: train on the CPU")
    parser.add_argument("--samples", type=int, default=512,
                        help="samples in the generated dataset; default: %(default)s")
    parser.add_argument("--px", type=int, default=64, help="side of the generated images in px; default: %(default)s")
    parser.add_argument("--epochs", type=int, default=2,
                        help="epochs of each model, without --recipe; default: %(default)s")
    parser.add_argument("keys", nargs="*", help="after --: keys of the recipe to override")
    return parser.parse_args()


def proportional_bytes(process):
    """Returns the PSS of a process in bytes, or 0 if the process has ended."""
    try:
        lines = pathlib.Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def start(args, recipe, folder, number, models):
    threads = max(1, len(os.sched_getaffinity(0)) // models)
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    device = "cpu"
    if args.gpus:
        device = "cuda"
        environment["CUDA_VISIBLE_DEVICES"] = str(number % args.gpus)
    command = [args.precast, "train", recipe, f"--data.num_workers={threads}", f"--training.device={device}",
               f"--training.seed={number}", f"--logging.folder={folder}", f"--logging.run_id={number}",
               "--logging.log_level=0", *args.keys]
    with open(folder / f"{number}.log", "w") as log:
        return subprocess.Popen(list(map(str, command)), env=environment, stdout=log, stderr=log)


def train_together(args, recipe, models):
    """Trains `models` models at the same time and returns the measurements."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        begin = time.monotonic()
        processes = [start(args, recipe, folder, i, models) for i in range(models)]
        memory = 0
        while any(process.poll() is None for process in processes):
            memory = max(memory, sum(map(proportional_bytes, processes)))
            time.sleep(0.2)
        seconds = time.monotonic() - begin
        for i, process in enumerate(processes):
            if process.returncode != 0:
                sys.exit(f"concurrent_training: expected exit code 0 of model {i}, got {process.returncode}: "
                         f"{(folder / f'{i}.log').read_text()[-2000:]}")
        rates = [json.loads((folder / str(i) / "summary.json").read_text())["images_per_second"] for i in range(models)]
    return {"seconds": seconds, "images_per_second": rates, "proportional_bytes": memory}


def figures_of(models, rounds):
    def median(value):
        return statistics.median(map(value, rounds))

    return {"models": models, "seconds": median(lambda r: r["seconds"]),
            "images_per_second_each": median(lambda r: statistics.median(r["images_per_second"])),
            "images_per_second_all": median(lambda r: sum(r["images_per_second"])),
            "proportional_bytes": median(lambda r: r["proportional_bytes"]), "rounds": rounds}


def main():
    args = arguments()
    counts = [int(count) for count in args.models.split(",")]
    with tempfile.TemporaryDirectory() as name:
        recipe = args.recipe
        if recipe is None:
            data = pathlib.Path(name) / "noise.beton"
            write_noise(args.precast, data, args.samples, args.px)
            recipe = pathlib.Path(name) / "recipe.yaml"
            run([args.precast, "new", "recipe", recipe, "--train-dataset", data, "--val-dataset", data])
            args.keys = [f"--training.epochs={args.epochs}", *args.keys]
        measured = {count: [] for count in counts}
        for _ in range(args.rounds):
            for count in counts:
                measured[count].append(train_together(args, recipe, count))
    points = [figures_of(count, rounds) for count, rounds in measured.items()]
    head = ["models", "seconds", "img/s each", "img/s all", "vs first", "memory"]
    first = points[0]["images_per_second_all"]
    rows = [[p["models"], f"{p['seconds']:.1f}", f"{p['images_per_second_each']:.0f}",
             f"{p['images_per_second_all']:.0f}", f"{p['images_per_second_all'] / first:.2f}",
             f"{p['proportional_bytes'] / 1e6:.0f} MB"] for p in points]
    chart = line_chart("Models trained at the same time", "models", "images per second",
                       {"all models": [(p["models"], p["images_per_second_all"]) for p in points],
                        "each": [(p["models"], p["images_per_second_each"]) for p in points]})
    write_results(args, {"cores": len(os.sched_getaffinity(0)), "gpus": args.gpus, "points": points},
                  markdown([head, *rows]), chart)


if __name__ == "__main__":
    main()
