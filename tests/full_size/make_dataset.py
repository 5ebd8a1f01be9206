#!/usr/bin/env python3
"""Writes a training and a validation set with as many samples and classes as ImageNet, and images of 10 px.

    make_dataset.py BUILD_DIR FOLDER [--train N] [--val N] [--classes N]

As in the download of ImageNet, FOLDER/train.tar contains a tar for each class, and FOLDER/val.tar contains images whose
classes are in FOLDER/LOC_val_solution.csv. `precast write --preset ffcv-imagenet:10,0.5,90` makes train.beton and
val.beton from them; half of the images are JPEGs. The tars are deleted. The same arguments give the same bytes.
"""
import argparse
import io
import random
import struct
import subprocess
import tarfile
import zlib
from pathlib import Path

SIDE_PX = 10
ROW_BYTES = 1 + 3 * SIDE_PX  # a filter byte before the pixels
TAR_BLOCK = 512


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


PNG_BEGIN = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", SIDE_PX, SIDE_PX, 8, 2, 0, 0, 0))
PNG_END = chunk(b"IEND", b"")


class Images:
    """Draws PNG images of a class: noise, whose brightness depends on the class."""

    def __init__(self, classes):
        self.random = random.Random(1)
        self.values = [bytes(label * 191 // classes + (i >> 2) for i in range(256)) for label in range(classes)]

    def draw(self, label):
        pixels = bytearray(self.random.randbytes(ROW_BYTES * SIDE_PX).translate(self.values[label]))
        pixels[::ROW_BYTES] = bytes(SIDE_PX)
        return PNG_BEGIN + chunk(b"IDAT", zlib.compress(bytes(pixels), 0)) + PNG_END


def member(name, content):
    header = tarfile.TarInfo(name)
    header.size = len(content)
    return header.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % TAR_BLOCK)


def class_name(label):
    return f"n{label:08}"


def write_train(path, samples, classes, images):
    with path.open("wb") as out:
        for label in range(classes):
            tar = io.BytesIO()
            for i in range(samples // classes + (label < samples % classes)):
                tar.write(member(f"{class_name(label)}_{i}.JPEG", images.draw(label)))
            tar.write(bytes(2 * TAR_BLOCK))
            out.write(member(f"{class_name(label)}.tar", tar.getvalue()))
        out.write(bytes(2 * TAR_BLOCK))


def write_val(path, labels, samples, classes, images):
    lines = ["ImageId,PredictionString"]
    with path.open("wb") as out:
        for i in range(samples):
            name = f"ILSVRC2012_val_{i + 1:08}"
            label = i * 7 % classes
            out.write(member(f"{name}.JPEG", images.draw(label)))
            lines.append(f"{name},{class_name(label)} 0 0 {SIDE_PX} {SIDE_PX} ")
        out.write(bytes(2 * TAR_BLOCK))
    labels.write_text("\n".join(lines) + "\n")


def make(build, folder, train=1_281_167, val=50_000, classes=1000):
    """Returns the paths of both datasets; writes nothing if both exist."""
    outs = folder / "train.beton", folder / "val.beton"
    if all(out.exists() for out in outs):
        return outs
    folder.mkdir(parents=True, exist_ok=True)
    images = Images(classes)
    labels = folder / "LOC_val_solution.csv"
    tars = folder / "train.tar", folder / "val.tar"
    write_val(tars[1], labels, val, classes, images)
    write_train(tars[0], train, classes, images)
    for tar, out, options in zip(tars, outs, ([], ["--labels", labels]), strict=True):
        subprocess.run([build / "bin/precast", "write", tar, out, "--preset", f"ffcv-imagenet:{SIDE_PX},0.5,90",
                        *options], check=True)
        tar.unlink()
    return outs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=1_281_167)
    parser.add_argument("--val", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1000)
    arguments = parser.parse_args()
    make(arguments.build.resolve(), arguments.folder, arguments.train, arguments.val, arguments.classes)


if __name__ == "__main__":
    main()
