#!/usr/bin/env python3
"""Writes train.npz and val.npz: images with one garment, and the class of each pixel.

    python3 make_data.py FOLDER [TRAIN_SAMPLES VAL_SAMPLES]

A garment of Fashion-MNIST is pasted at a random position of an image of 40 x 40 px. `mask` is 1 + the class of the
garment where the pixels of the garment are brighter than 40, and 0 elsewhere.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import fashion_arrays  # noqa: E402

SIDE, BRIGHT = 40, 40


def make_image(images, labels, rng):
    """Returns SIDE x SIDE grey pixels and SIDE x SIDE classes."""
    pixels, mask = bytearray(SIDE * SIDE), bytearray(SIDE * SIDE)
    one = rng.randrange(len(images))
    left, top = rng.randint(0, SIDE - 28), rng.randint(0, SIDE - 28)
    for y in range(28):
        row = images[one][28 * y : 28 * (y + 1)]
        begin = SIDE * (top + y) + left
        pixels[begin : begin + 28] = row
        mask[begin : begin + 28] = bytes(1 + labels[one] if v > BRIGHT else 0 for v in row)
    return pixels, mask


if __name__ == "__main__":
    fashion_arrays.write_images(sys.argv, [6000, 1000], SIDE, make_image, mask=(SIDE, SIDE))
