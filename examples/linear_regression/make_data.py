#!/usr/bin/env python3
"""Writes train.npz, val.npz, zeros.safetensors and truth.json for a linear regression.

    python3 make_data.py FOLDER [TRAIN_SAMPLES VAL_SAMPLES]

The data is that of the linear regression in FFCV's documentation: covariates and weights are
uniform in [0, 1); a label is their dot product plus an offset plus normal noise. Covariates are
standardised with the means and standard deviations of the training set. zeros.safetensors contains
the initial weights.
"""

import json
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import fashion_arrays  # noqa: E402

COVARIATES = 20


def draw(count, weights, offset, rng):
    rows = [[rng.random() for _ in weights] for _ in range(count)]
    labels = [sum(w * x for w, x in zip(weights, row, strict=True)) + offset + rng.gauss(0, 1)
              for row in rows]
    return rows, labels


def main():
    folder = pathlib.Path(sys.argv[1])
    counts = [int(count) for count in sys.argv[2:]] or [20480, 2048]
    rng = random.Random(0)
    weights, offset = [rng.random() for _ in range(COVARIATES)], rng.random()
    drawn = [draw(count, weights, offset, rng) for count in counts]
    means, deviations = [], []
    for column in zip(*drawn[0][0], strict=True):
        mean = sum(column) / counts[0]
        means.append(mean)
        deviations.append((sum(x * x for x in column) / counts[0] - mean * mean) ** 0.5)
    for split, count, (rows, labels) in zip(("train", "val"), counts, drawn, strict=True):
        values = [(x - m) / s for row in rows
                  for x, m, s in zip(row, means, deviations, strict=True)]
        fashion_arrays.save(folder / f"{split}.npz",
                            covariate=("<f4", (count, COVARIATES), values),
                            label=("<f4", (count, 1), labels))
    size = 4 * COVARIATES
    header = json.dumps({"0.weight": {"dtype": "F32", "shape": [1, COVARIATES],
                                      "data_offsets": [0, size]},
                         "0.bias": {"dtype": "F32", "shape": [1],
                                    "data_offsets": [size, size + 4]}}).encode()
    (folder / "zeros.safetensors").write_bytes(
        struct.pack("<Q", len(header)) + header + bytes(size + 4))
    (folder / "truth.json").write_text(json.dumps(
        {"weights": weights, "offset": offset, "means": means, "deviations": deviations}) + "\n")


if __name__ == "__main__":
    main()
