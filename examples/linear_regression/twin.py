#!/usr/bin/env python3
"""Compares a run of recipe.yaml with the same gradient descent in plain Python.

    python3 twin.py train.npz truth.json runs/linear

Each step is that of the linear regression in FFCV's documentation: it computes the residuals of a
batch and their mean products with the covariates, and subtracts 0.05 times these means from the
weights.
Prints the largest difference between the weights of both programs, and the distance between the
run's weights and the true weights. The exit code is 1 if the difference is above 1e-4.
"""

import array
import json
import pathlib
import struct
import sys
import zipfile

BATCH, EPOCHS, RATE = 2048, 10, 0.05
MAX_DIFFERENCE = 1e-4


def read_floats(archive, name):
    """Returns the values of an array that make_data.py wrote."""
    data = archive.read(f"{name}.npy")
    return array.array("f", data[10 + struct.unpack("<H", data[8:10])[0]:])


def descend(rows, labels):
    """Returns the weights and the offset after all epochs."""
    weights, offset = [0.0] * len(rows[0]), 0.0
    for _ in range(EPOCHS):
        for begin in range(0, len(rows) - BATCH + 1, BATCH):
            batch = rows[begin : begin + BATCH]
            residuals = [sum(w * x for w, x in zip(weights, row, strict=True)) + offset - label
                         for row, label in zip(batch, labels[begin : begin + BATCH], strict=True)]
            for i, column in enumerate(zip(*batch, strict=True)):
                products = sum(x * r for x, r in zip(column, residuals, strict=True))
                weights[i] -= RATE * products / BATCH
            offset -= RATE * sum(residuals) / BATCH
    return weights, offset


def trained(run):
    """Returns the weights and the offset of a run."""
    data = (pathlib.Path(run) / "final_weights.safetensors").read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    values = {}
    for name in ("0.weight", "0.bias"):
        begin, end = header[name]["data_offsets"]
        values[name] = array.array("f", data[8 + size + begin : 8 + size + end])
    return list(values["0.weight"]), values["0.bias"][0]


def main():
    with zipfile.ZipFile(sys.argv[1]) as archive:
        values, labels = read_floats(archive, "covariate"), read_floats(archive, "label")
    truth = json.loads(pathlib.Path(sys.argv[2]).read_text())
    width = len(truth["weights"])
    rows = [values[i : i + width] for i in range(0, len(values), width)]
    twin, offset = descend(rows, labels)
    weights, bias = trained(sys.argv[3])
    difference = max(abs(a - b) for a, b in zip([*twin, offset], [*weights, bias], strict=True))
    distance = sum((w / s - true) ** 2 for w, s, true in
                   zip(weights, truth["deviations"], truth["weights"], strict=True)) ** 0.5
    print(json.dumps({"difference": difference, "distance_to_truth": distance}))
    sys.exit(difference > MAX_DIFFERENCE)


if __name__ == "__main__":
    main()
