#!/usr/bin/env python3
"""Compares the images per CPU-second of precast.Loader and `precast bench loader` in alternating rounds.

    bench.py FILE.beton [--precast build/bin/precast] [--rounds 7] [--seconds 1] [--workers 1] [--json OUT.json]

Both read random crops of 176 px as uint8, in batches of 256, in random order, after a first epoch. The CPU time
includes all threads. Prints the median of each program, and the median of the rounds' ratios.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

SIDE, BATCH = 176, 256


def measure(options):
    """Runs in a separate process in each round. Prints the number of images, and images per CPU-second, as JSON."""
    import precast

    loader = precast.Loader(options.file, BATCH, order="random", workers=options.workers, image_size=SIDE,
                            pipeline=["random_resized_crop", "horizontal_flip"])
    for _ in loader:
        pass
    images, cpu, start = 0, time.process_time(), time.monotonic()
    while images == 0 or time.monotonic() - start < options.seconds:
        for batch in loader:
            images += batch.samples
    cpu = time.process_time() - cpu
    print(json.dumps({"images": images, "images_per_cpu_second": images / cpu}))


def run(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{words} exited with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--precast", type=pathlib.Path, default="build/bin/precast")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options)
    shared = ["--workers", options.workers, "--seconds", options.seconds]
    rounds = []
    for _ in range(options.rounds):
        own = run([sys.executable, __file__, options.file, "--measure", *shared])
        program = run([options.precast, "bench", "loader", options.file, *shared, "--runs", 1, "--batch-size", BATCH,
                       "--image-size", SIDE, "--json"])
        point = program["points"][0]
        rounds.append({"python": own["images_per_cpu_second"], "precast": point["images_per_cpu_second"]})
    ratio = statistics.median(each["python"] / each["precast"] for each in rounds)
    medians = {name: statistics.median(each[name] for each in rounds) for name in ("python", "precast")}
    if options.json:
        options.json.write_text(json.dumps({"rounds": rounds, "ratio": ratio, **medians}, indent=1))
    print(f"images per CPU-second: precast.Loader {medians['python']:,.0f}, precast bench loader "
          f"{medians['precast']:,.0f}, ratio {ratio:.3f} (median of {options.rounds} rounds)")
    return None


if __name__ == "__main__":
    main()
