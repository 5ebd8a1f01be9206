#!/usr/bin/env python3
"""Writes train.npz and val.npz: pictures of one to four garments, and which classes are in them.

    python3 make_data.py FOLDER [TRAIN_SAMPLES VAL_SAMPLES]

A picture has 2 x 2 places of 28 x 28 px, each with a photo of Fashion-MNIST or empty. `labels` has
a 1 for each of the 10 classes that is in the picture.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import fashion_arrays  # noqa: E402

SIDE = 2 * fashion_arrays.SIDE


def picture(images, labels, rng):
    """Grey pixels of SIDE x SIDE, and 10 bytes of 0 and 1."""
    pixels, present = bytearray(SIDE * SIDE), bytearray(10)
    for place in rng.sample(range(4), rng.randint(1, 4)):
        one = rng.randrange(len(images))
        present[labels[one]] = 1
        for y in range(28):
            begin = SIDE * (28 * (place // 2) + y) + 28 * (place % 2)
            pixels[begin : begin + 28] = images[one][28 * y : 28 * (y + 1)]
    return pixels, present


if __name__ == "__main__":
    fashion_arrays.write_pictures(sys.argv, [8000, 1000], SIDE, picture, labels=(10,))
