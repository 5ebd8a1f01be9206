"""Writes custom_w1.beton.gz, a dataset with custom fields, with FFCV 1.0.2.

Usage: .venv-peers/bin/python make_custom.py (tools/peers/setup creates .venv-peers)

The file has five samples. The fields of sample i are:
  label   int: 10 + i
  boxes   custom field whose record (pointer u64, rows u16; packed: 10 bytes, alignment 1) points to `i % 3 + 1` rows of
          4 float32; element k is 100 i + k
  note    bytes: `note 0`, `note 1` ...
  point   custom field without a large value (x f4, y f8, tag u1; aligned: 24 bytes, alignment 8): x = i / 2, y = -i,
          tag = i
  weight  float: i / 4
"""
import gzip
import pathlib
import tempfile

import numpy as np
from ffcv.fields import BytesField, FloatField, IntField
from ffcv.fields.base import ARG_TYPE, Field
from ffcv.writer import DatasetWriter


class Custom(Field):
    metadata_type = None

    @classmethod
    def from_binary(cls, binary):
        return cls()

    def to_binary(self):
        return np.zeros(1, dtype=ARG_TYPE)[0]

    def get_decoder_class(self):
        raise NotImplementedError


class BoxesField(Custom):
    metadata_type = np.dtype([("ptr", "<u8"), ("rows", "<u2")])

    def encode(self, destination, field, malloc):
        destination["ptr"], buffer = malloc(field.nbytes)
        destination["rows"] = len(field)
        buffer[:] = field.reshape(-1).view("<u1")


class PointField(Custom):
    metadata_type = np.dtype([("x", "<f4"), ("y", "<f8"), ("tag", "<u1")], align=True)

    def encode(self, destination, field, malloc):
        destination["x"], destination["y"], destination["tag"] = field


class Samples:
    def __len__(self):
        return 5

    def __getitem__(self, i):
        boxes = (100 * i + np.arange(4 * (i % 3 + 1))).astype("<f4").reshape(-1, 4)
        return 10 + i, boxes, np.frombuffer(f"note {i}".encode(), "<u1"), (i / 2, -i, i), i / 4


FIELDS = {"label": IntField, "boxes": BoxesField, "note": BytesField, "point": PointField, "weight": FloatField}
CLASSES = {"boxes": BoxesField(), "point": PointField()}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.beton"
        fields = {name: kind() for name, kind in FIELDS.items()}
        DatasetWriter(str(path), fields, page_size=1 << 21, num_workers=1).from_indexed_dataset(Samples(), chunksize=5)
        out = pathlib.Path(__file__).parent / "custom_w1.beton.gz"
        out.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        print(out, out.stat().st_size)
