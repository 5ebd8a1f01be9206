#!/usr/bin/env python3
"""Creates small datasets from Fashion-MNIST's IDX files.

    datasets.py arrays IDX_FOLDER OUT_FOLDER      train_images.npy ...: RGB, for the Python twin
    datasets.py mosaics IDX_FOLDER OUT_FOLDER     400 large images, each composed of many small ones
"""

import gzip
import pathlib
import struct
import sys

STEMS = {"train": "train", "val": "t10k"}
# 18 x 18 images of 28 px: 504 px, the size of photographs in a training set.
MOSAIC_SIDE, MOSAICS = 18, 400


def idx_paths(folder, stem, suffix=".gz"):
    return [pathlib.Path(folder) / f"{stem}-{kind}-ubyte{suffix}"
            for kind in ("images-idx3", "labels-idx1")]


def read_idx(path):
    """Returns the shape and the values of a gzipped IDX file of uint8."""
    with gzip.open(path) as file:
        raw = file.read()
    shape = struct.unpack(f">{raw[3]}I", raw[4:4 + 4 * raw[3]])
    return shape, raw[4 + 4 * raw[3]:]


def write_idx(path, shape, data):
    """Writes an IDX file of uint8. If the path ends in .gz, it is gzipped without a time stamp, so that equal data
    gives equal files."""
    data = bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + data
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def write_npy(path, kind, shape, data):
    head = str({"descr": kind, "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def write_subset(source, target, counts):
    """Writes the first images and labels of each split. @param counts such as {"train": 8000, "val": 2000}."""
    for split, count in counts.items():
        stem = STEMS[split]
        for old, new in zip(idx_paths(source, stem), idx_paths(target, stem), strict=True):
            shape, data = read_idx(old)
            count = min(count, shape[0])
            write_idx(new, (count, *shape[1:]), data[:count * (len(data) // shape[0])])


def write_arrays(source, target):
    for split, stem in STEMS.items():
        images, labels = idx_paths(source, stem)
        shape, pixels = read_idx(images)
        rgb = bytearray(3 * len(pixels))
        for channel in range(3):
            rgb[channel::3] = pixels
        write_npy(target / f"{split}_images.npy", "|u1", (*shape, 3), bytes(rgb))
        shape, values = read_idx(labels)
        write_npy(target / f"{split}_labels.npy", "|u1", shape, values)


def write_mosaics(source, target, count=MOSAICS):
    """Writes mosaics as IDX files; mosaic i begins with sample i and has the label of sample i."""
    images, labels = idx_paths(source, "train")
    (samples, height, width), pixels = read_idx(images)
    rows = [pixels[i:i + width] for i in range(0, len(pixels), width)]
    parts = []
    for mosaic in range(count):
        for line in range(MOSAIC_SIDE):
            chosen = [(mosaic + 37 * (line * MOSAIC_SIDE + column)) % samples
                      for column in range(MOSAIC_SIDE)]
            parts += [rows[sample * height + row] for row in range(height) for sample in chosen]
    out_images, out_labels = idx_paths(target, "mosaics", suffix="")
    write_idx(out_images, (count, MOSAIC_SIDE * height, MOSAIC_SIDE * width), b"".join(parts))
    write_idx(out_labels, (count,), read_idx(labels)[1][:count])


def main():
    actions = {"arrays": write_arrays, "mosaics": write_mosaics}
    if len(sys.argv) != 4 or sys.argv[1] not in actions:
        print(__doc__, file=sys.stderr)
        return 2
    target = pathlib.Path(sys.argv[3])
    target.mkdir(parents=True, exist_ok=True)
    actions[sys.argv[1]](sys.argv[2], target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
