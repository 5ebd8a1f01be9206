#!/usr/bin/env python3
"""Writes arrays with NumPy, for tests of the source that reads .npy and .npz files.

    make_numpy_goldens.py

Writes stored.npz (np.savez), packed.npz (np.savez_compressed), splits.npz, .npy files that precast must reject, and
expected.json. This file contains the values of the arrays in stored.npz; for arrays that become ndarray fields, it
contains the bytes of each row.
"""
import json
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
N = 5
rng = np.random.default_rng(0)

ARRAYS = {
    "u16": rng.integers(0, 65536, N, dtype=np.uint16),
    "u32": rng.integers(0, 2**32, N, dtype=np.uint32),
    "u64": rng.integers(0, 2**63, N, dtype=np.uint64),
    "i8": rng.integers(-128, 128, N, dtype=np.int8),
    "i16": rng.integers(-2**15, 2**15, N, dtype=np.int16),
    "i64": rng.integers(-2**63, 2**63 - 1, N, dtype=np.int64),
    "flags": rng.integers(0, 2, N).astype(bool),
    "column": rng.integers(-9, 9, (N, 1), dtype=np.int32),
    "train_images": rng.integers(0, 256, (N, 4, 6, 3), dtype=np.uint8),
    "train_labels": rng.integers(0, 256, (N, 1), dtype=np.uint8),
    "f16": np.array([1.5, -65504, 6e-8, np.inf, 0.1], np.float16),
    "f32": rng.normal(size=N).astype(np.float32),
    "f64": rng.normal(size=N),
    "texts": np.array([b"one", b"", b"three", b"seven77", b"x"]),
    "boxes": rng.normal(size=(N, 2, 3)).astype(np.float32),
    "u64_rows": rng.integers(0, 2**64 - 1, (N, 3), dtype=np.uint64),
    "bool_rows": rng.integers(0, 2, (N, 3)).astype(bool),
    "f16_rows": rng.normal(size=(N, 3)).astype(np.float16),
    "masks": rng.integers(0, 256, (N, 4, 6), dtype=np.uint8),
    "complex": np.arange(N) * (1 + 2j),
}


def expected(array):
    if array.dtype.kind in "iub" and array.size == N:
        return [int(value) for value in array.reshape(-1)]
    if array.dtype.kind == "f" and array.ndim == 1:
        return [repr(float(value)) for value in array]
    if array.dtype.kind == "S":
        return [value.decode() for value in array]
    rows = {"dtype": array.dtype.str, "rows": [np.ascontiguousarray(row).tobytes().hex() for row in array]}
    return rows | {"shape": list(array.shape[1:])}


def main():
    np.savez(HERE / "stored.npz", **ARRAYS)
    np.savez_compressed(HERE / "packed.npz", **ARRAYS)
    np.save(HERE / "fortran.npy", np.asfortranarray(rng.normal(size=(N, 3))))
    np.save(HERE / "big_endian.npy", np.arange(N, dtype=">i4"))
    np.save(HERE / "objects.npy", np.array([{}] * N, dtype=object), allow_pickle=True)
    np.save(HERE / "unicode.npy", np.array(["text"] * N))
    np.save(HERE / "record.npy", np.zeros(N, [("a", "<i4"), ("b", "<f4")]))
    np.savez(HERE / "splits.npz", x_train=np.zeros((3, 4, 4), np.uint8), x_test=np.zeros((2, 4, 4), np.uint8))
    text = {name: expected(array) for name, array in ARRAYS.items()}
    (HERE / "expected.json").write_text(json.dumps({"numpy": np.__version__, "arrays": text}, indent=1) + "\n")


if __name__ == "__main__":
    main()
