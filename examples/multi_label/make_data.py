#!/usr/bin/env python3
"""Writes train.npz and val.npz: images of one to four garments, and their classes.

    python3 make_data.py FOLDER [TRAIN_SAMPLES VAL_SAMPLES]

Each image has 2 x 2 cells of 28 x 28 px. A cell is empty or contains a garment of Fashion-MNIST.
`labels` has 10 values, one for each class: 1 if the class is in the image, otherwise 0.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import fashion_arrays  # noqa: E402

SIDE = 2 * fashion_arrays.SIDE


def make_image(images, labels, rng):
    """Returns SIDE x SIDE grey pixels, and 10 bytes of 0 or 1."""
    pixels, present = bytearray(SIDE * SIDE), bytearray(10)
    for place in rng.sample(range(4), rng.randint(1, 4)):
        one = rng.randrange(len(images))
        present[labels[one]] = 1
        for y in range(28):
            begin = SIDE * (28 * (place // 2) + y) + 28 * (place % 2)
            pixels[begin : begin + 28] = images[one][28 * y : 28 * (y + 1)]
    return pixels, present


if __name__ == "__main__":
    fashion_arrays.write_images(sys.argv, [8000, 1000], SIDE, make_image, labels=(10,))
