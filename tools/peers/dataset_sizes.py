#!/usr/bin/env python3
"""How large ImageNet becomes as .beton: FFCV's published table of dataset sizes, with precast's beside it.

    dataset_sizes.py PHOTOS.tar [--sides 256 384 512 1600] [--modes jpg proportion raw] [--json OUT.json]

`precast write` stores the photos in every way of the table; the mean bytes of an image times ImageNet's
1,281,167 training images are its size, in GB of 10^9 bytes.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = 1_281_167
SIDES = (256, 384, 512, 1600)
# Its "mix" is three quarters JPEG: each figure is 0.75 of the JPEG's and 0.25 of the raw one's.
COMPRESSED = 0.75
# FFCV's documentation, "ImageNet Benchmarks": GB at these sides.
PUBLISHED = {("jpg", 50): (9.23, 16.14, 26.35, 30.75), ("jpg", 90): (22.01, 40.31, 65.47, 74.98), ("jpg", 100): (57.00, 110.21, 176.65, 198.53),
             ("proportion", 50): (49.59, 102.29, 173.92, 221.76), ("proportion", 90): (58.36, 124.74, 202.04, 251.66),
             ("proportion", 100): (84.91, 176.43, 285.67, 350.72), ("raw", None): (169.79, 371.20, 616.18, 788.97)}


def call(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"dataset_sizes: expected success, got exit code {done.returncode} ({' '.join(map(str, command))}): {done.stderr[-1000:]}")
    return done.stdout


def scaled_gigabytes(precast, photos, file, mode, quality, side):
    command = [precast, "write", photos, file, "--image.mode", mode, "--image.max_resolution", side, "--image.compress_probability", COMPRESSED]
    call(*command, *(["--image.quality", quality] if quality else []))
    image = next(f for f in json.loads(call(precast, "inspect", file, "--json"))["fields"] if f["type"] == "image")
    return image["blob_bytes"]["mean"] * IMAGES / 1e9


def format_rows(rows, sides):
    """Markdown: ours (published)."""
    lines = ["| mode | quality | " + " | ".join(f"{side} px" for side in sides) + " |", "|" + " --- |" * (2 + len(sides))]
    for row in rows:
        figures = [f"{row['gigabytes'][str(side)]:.1f}" + (f" ({row['published'][str(side)]:.1f})" if str(side) in row["published"] else "")
                   for side in sides]
        lines.append(f"| {row['mode']} | {row['quality'] or '-'} | " + " | ".join(figures) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path, metavar="PHOTOS.tar")
    parser.add_argument("--sides", nargs="+", type=int, default=list(SIDES))
    parser.add_argument("--modes", nargs="+", choices=["jpg", "proportion", "raw"], default=["jpg", "proportion", "raw"])
    parser.add_argument("--json", type=pathlib.Path, metavar="OUT.json")
    parser.add_argument("--precast", default=ROOT / "build/bin/precast", type=pathlib.Path)
    args = parser.parse_args()
    for path in (args.photos, args.precast):
        if not path.exists():
            parser.error(f"expected an existing path, got {path}")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "sizes.beton"
        for (mode, quality), published in PUBLISHED.items():
            if mode not in args.modes:
                continue
            sizes = {}
            for side in args.sides:
                sizes[str(side)] = scaled_gigabytes(args.precast, args.photos, file, mode, quality, side)
                os.remove(file)
                print(f"{mode}, quality {quality or '-'}, {side} px: {sizes[str(side)]:.1f} GB", file=sys.stderr, flush=True)
            rows.append({"mode": mode, "quality": quality, "gigabytes": sizes,
                         "published": {str(side): size for side, size in zip(SIDES, published, strict=True)}})
    print(format_rows(rows, args.sides))
    if args.json:
        args.json.write_text(json.dumps({"images": IMAGES, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
