"""Writes masks_w1.beton.gz, a dataset of images with masks of the same size, with FFCV 1.0.2.

Usage: .venv-peers/bin/python make_masks.py (tools/peers/setup creates .venv-peers)

The file has six samples. The fields of sample i are:
  image                         raw, 40 x 52; red is 4 x column, green is 6 x row, blue is i
  mask                          [40, 52] uint8: 4 x column
  mask_image                    raw; the mask in all three channels, but only 30 x 52 for sample 3
  label, weight, vector, flags  int, float, int16 [3], bool [2]
"""
import gzip
import pathlib
import tempfile

import numpy as np
from ffcv.fields import FloatField, IntField, NDArrayField, RGBImageField
from ffcv.writer import DatasetWriter

y, x = np.mgrid[0:40, 0:52]


class Samples:
    def __len__(self):
        return 6

    def __getitem__(self, i):
        image = np.stack([4 * x, 6 * y, np.full_like(x, i)], -1).astype(np.uint8)
        mask = (4 * x).astype(np.uint8)
        big = np.repeat(mask[:30 if i == 3 else 40, :, None], 3, axis=2)
        return (image, mask, np.ascontiguousarray(big), i % 3, i / 4, np.array([i, -i, 300 + i], np.int16),
                np.array([i % 2 == 0, True]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.beton"
        fields = {"image": RGBImageField(write_mode="raw"), "mask": NDArrayField(np.dtype("u1"), (40, 52)),
                  "mask_image": RGBImageField(write_mode="raw"), "label": IntField(), "weight": FloatField(),
                  "vector": NDArrayField(np.dtype("<i2"), (3,)), "flags": NDArrayField(np.dtype("?"), (2,))}
        DatasetWriter(str(path), fields, page_size=1 << 21, num_workers=1).from_indexed_dataset(Samples(), chunksize=6)
        out = pathlib.Path(__file__).parent / "masks_w1.beton.gz"
        out.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        print(out, out.stat().st_size)
