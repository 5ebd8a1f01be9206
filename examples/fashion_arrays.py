"""Reads Fashion-MNIST as Debian installs it (`apt install dataset-fashion-mnist`) and writes NumPy archives.

Used by the examples' make_data.py. Needs only Python's standard library.
"""

import functools
import gzip
import pathlib
import random
import struct
import zipfile

FOLDER = pathlib.Path("/usr/share/datasets/fashion-mnist")
FILES = {"train": "train", "val": "t10k"}
SIDE = 28


def read(split):
    """Returns the images (28 * 28 bytes each) and their labels."""
    name = FILES[split]
    with gzip.open(FOLDER / f"{name}-images-idx3-ubyte.gz") as file:
        pixels = file.read()[16:]
    with gzip.open(FOLDER / f"{name}-labels-idx1-ubyte.gz") as file:
        labels = file.read()[8:]
    size = SIDE * SIDE
    return [pixels[i * size : (i + 1) * size] for i in range(len(labels))], list(labels)


read_once = functools.cache(read)


def rgb(grey):
    """Returns RGB pixels: each grey value three times."""
    three = bytearray(3 * len(grey))
    for channel in range(3):
        three[channel::3] = grey
    return three


def save(path, **arrays):
    """Writes a .npz archive; each array is given as (dtype, shape, bytes or iterable of values)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (dtype, shape, values) in arrays.items():
            if not isinstance(values, (bytes, bytearray)):
                code = {"<f4": "f", "<i8": "q"}[dtype]
                values = list(values)
                values = struct.pack(f"<{len(values)}{code}", *values)
            header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
            header += " " * (-(len(header) + 11) % 64) + "\n"
            head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            archive.writestr(f"{name}.npy", head + values)


def write_images(arguments, counts, side, make_image, **second):
    """Writes train.npz and val.npz for the command line FOLDER [TRAIN_SAMPLES VAL_SAMPLES].

    make_image(images, labels, rng) returns one sample: side x side grey pixels, and the bytes for a second array of
    uint8. The keyword argument NAME=SHAPE is the name of the second array and the shape of a sample in it.
    """
    ((name, shape),) = second.items()
    counts = [int(count) for count in arguments[2:]] or counts
    for split, count in zip(("train", "val"), counts, strict=False):
        rng = random.Random(split)
        made = [make_image(*read_once(split), rng) for _ in range(count)]
        grey, others = (b"".join(parts) for parts in zip(*made, strict=True))
        save(pathlib.Path(arguments[1]) / f"{split}.npz",
             image=("|u1", (count, side, side, 3), rgb(grey)),
             **{name: ("|u1", (count, *shape), others)})
