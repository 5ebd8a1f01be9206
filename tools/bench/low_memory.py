#!/usr/bin/env python3
"""Measures how fast a dataset is read under memory limits below and above its size (figure 5c of FFCV's paper).

    low_memory.py [--limits 0.25,0.5,0.75,1.5] [--rounds 3] [--dataset F.beton [--recipe R.yaml]] [--read-limit MB/s]
                  [--json F] [--svg F] [-- more arguments of the command]

Each measurement runs a process in a separate memory control group, whose limit is a share of the file's size (at least
48 MiB); before the start, the file is dropped from the page cache. The page cache counts as memory of the group, so it
can use only what the process itself does not need. Without --recipe, the process makes --passes passes; after the first
one, the part of the file that fits is in memory. Each round measures each of these ways to read once under each limit;
figures are medians over the rounds:

  random         the page cache, order random
  quasi_random   the page cache, order quasi_random
  own cache      the process bypasses the page cache and keeps pages in its own memory, at most a third of the limit;
                 order quasi_random: FFCV's `os_cache=False` and `QUASI_RANDOM`

`precast bench loader` reads --dataset or, by default, a file of noise (--samples, --px). With --recipe, `precast train`
trains on --dataset with this recipe; the limit must leave about 400 MB for libtorch, which requires a larger file. With
--read-limit, a second control group limits the bytes per second read from the disk, like a slow disk or network.
Control groups need root. If they cannot be created, the script prints the reason and exits with code 77 (skipped).
"""
import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from figures import ROOT, add_arguments, line_chart, markdown, write_noise, write_results

sys.path.insert(0, str(ROOT / "tools/peers"))
from read_limit import ControlGroup, ReadLimit, forget  # noqa: E402

SKIPPED = 77
WAYS = ("random", "quasi_random", "own cache")
# With less memory, a process cannot start.
MIN_BYTES = 48 << 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--limits", default="0.25,0.5,0.75,1.5", help="memory limits, as fractions of the file's size; "
                        "default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds; default: %(default)s")
    parser.add_argument("--passes", type=int, default=3,
                        help="passes over the file, without --recipe; default: %(default)s")
    parser.add_argument("--dataset", type=pathlib.Path,
                        help="the .beton file to read; default: a generated file of noise")
    parser.add_argument("--recipe", type=pathlib.Path, help="train with this recipe; default: only load")
    parser.add_argument("--read-limit", type=float, metavar="MB/s", help="limit on reads from the disk")
    parser.add_argument("--samples", type=int, default=2048, help="samples in the generated file; default: %(default)s")
    parser.add_argument("--px", type=int, default=224, help="side of the generated images in px; default: %(default)s")
    parser.add_argument("--folder", type=pathlib.Path, help="folder for the generated file; default: TMPDIR")
    parser.add_argument("more", nargs="*", help="after --: additional arguments of the precast command")
    return parser.parse_args()


class MemoryLimit(ControlGroup):
    def __init__(self, limit):
        super().__init__("precast_low_memory", {1: ("memory", "memory.limit_in_bytes", str(limit)),
                                                2: ("memory", "memory.max", str(limit))})


def skip(reason):
    print(f"low_memory: skipped: {reason}", file=sys.stderr)
    sys.exit(SKIPPED)


def own_cache_mb(limit):
    """Returns the size of the own cache in MiB: a third of the limit. The other two thirds are for batches, reads and
    the program."""
    return max(1, limit // 3 >> 20)


def loader_command(args, data, way, limit):
    command = [args.precast, "bench", "loader", data, "--json", "--cold", "--runs", "1", "--passes", args.passes,
               "--batch-size", "32",
               "--order", "random" if way == "random" else "quasi_random"]
    if way == "own cache":
        command += ["--in-memory", "0", "--cache-mb", own_cache_mb(limit)]
    return command


def train_command(args, data, way, limit, folder):
    command = [args.precast, "train", args.recipe, f"--data.train_dataset={data}", f"--logging.folder={folder}",
               "--logging.run_id=r", "--logging.log_level=0", "--training.epochs=1",
               f"--data.order={'random' if way == 'random' else 'quasi_random'}"]
    if way == "own cache":
        command += ["--data.in_memory=0", f"--data.cache_mb={own_cache_mb(limit)}"]
    return command


def images_per_second(args, data, way, limit):
    """Returns the images per second of one measurement, or None if the command failed, usually because it needed more
    memory."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as groups:
        memory = groups.enter_context(MemoryLimit(limit))
        reads = groups.enter_context(ReadLimit(data, int(1e6 * args.read_limit), memory)) if args.read_limit else None
        for group in (memory, reads):
            if group is not None and group.reason is not None:
                skip(group.reason)
        command = loader_command(args, data, way, limit) if args.recipe is None else \
            train_command(args, data, way, limit, folder)

        def enter():
            memory.enter()
            if reads is not None:
                reads.enter()

        forget(data)
        done = subprocess.run([*map(str, command), *args.more], capture_output=True, text=True, preexec_fn=enter)
        if done.returncode != 0:
            print(f"low_memory: {way}, {limit >> 20} MiB: exit code {done.returncode}: {done.stderr[-300:]}",
                  file=sys.stderr)
            return None
        if args.recipe is None:
            return json.loads(done.stdout)["points"][0]["images_per_second"]
        return json.loads((pathlib.Path(folder) / "r/summary.json").read_text())["images_per_second"]


def measure(args, data, limits):
    """Returns [{limit_bytes, way, images_per_second, rounds}]."""
    points = [{"limit_bytes": limit, "way": way, "rounds": []} for limit in limits for way in WAYS]
    for _ in range(args.rounds):
        for point in points:
            point["rounds"].append(images_per_second(args, data, point["way"], point["limit_bytes"]))
    for point in points:
        fitted = None not in point["rounds"]
        point["images_per_second"] = statistics.median(point["rounds"]) if fitted else None
    return points


def report(args, data, points):
    size = data.stat().st_size
    rows = [["memory", "memory / file", *(f"{way}, img/s" for way in WAYS)]]
    for limit in dict.fromkeys(p["limit_bytes"] for p in points):
        rates = [p["images_per_second"] for p in points if p["limit_bytes"] == limit]
        rows.append([f"{limit / 1e6:.0f} MB", f"{limit / size:.2f}",
                     *("failed" if rate is None else f"{rate:.0f}" for rate in rates)])
    series = {way: [(p["limit_bytes"] / 1e6, p["images_per_second"]) for p in points
                    if p["way"] == way and p["images_per_second"] is not None] for way in WAYS}
    chart = line_chart(f"A file of {size / 1e6:.0f} MB under a memory limit", "memory, MB", "images per second",
                       {way: line for way, line in series.items() if line})
    write_results(args, {"file_bytes": size, "read_limit_mb": args.read_limit, "recipe": str(args.recipe or ""),
                         "points": points}, markdown(rows), chart)


def main():
    args = arguments()
    if args.recipe and args.dataset is None:
        sys.exit("low_memory: expected --dataset FILE.beton with --recipe, got none")
    with MemoryLimit(MIN_BYTES) as probe:
        if probe.reason is not None:
            skip(probe.reason)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        data = args.dataset
        if data is None:
            data = pathlib.Path(folder) / "noise.beton"
            write_noise(args.precast, data, args.samples, args.px)
        limits = [max(MIN_BYTES, int(float(share) * data.stat().st_size)) for share in args.limits.split(",")]
        report(args, data, measure(args, data, limits))


if __name__ == "__main__":
    main()
