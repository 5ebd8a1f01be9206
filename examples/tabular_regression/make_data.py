#!/usr/bin/env python3
"""Writes train.npz and val.npz: 28 numbers for the upper half of a garment, and 28 for its lower half.

    python3 make_data.py FOLDER [TRAIN_SAMPLES VAL_SAMPLES]

Each number is the mean brightness, from 0 to 1, of a block of an image of Fashion-MNIST, 4 x 3 or 4 x 4 pixels. `upper`
contains the 7 x 4 blocks of the upper half, `lower` those of the lower half.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import fashion_arrays  # noqa: E402

ROWS, COLUMNS, WIDTH = 4, 7, 4


def blocks(image, first_row):
    """Returns the mean brightness of each block in the half of the image that begins at pixel row `first_row`.

    A block is 4 pixels wide and 3 or 4 pixels high.
    """
    means = []
    for block in range(ROWS):
        begin = first_row + 14 * block // ROWS
        end = first_row + 14 * (block + 1) // ROWS
        for column in range(COLUMNS):
            values = [image[28 * y + x] for y in range(begin, end)
                      for x in range(WIDTH * column, WIDTH * (column + 1))]
            means.append(sum(values) / (255 * len(values)))
    return means


def main():
    folder = pathlib.Path(sys.argv[1])
    counts = [int(count) for count in sys.argv[2:]] or [10000, 2000]
    for split, count in zip(("train", "val"), counts, strict=False):
        images = fashion_arrays.read(split)[0][:count]
        shape = (count, ROWS * COLUMNS)
        fashion_arrays.save(folder / f"{split}.npz",
                            upper=("<f4", shape, [v for i in images for v in blocks(i, 0)]),
                            lower=("<f4", shape, [v for i in images for v in blocks(i, 14)]))


if __name__ == "__main__":
    main()
