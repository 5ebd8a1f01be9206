"""Reads a copy of custom_w1.beton.gz with FFCV 1.0.2 and the field classes of make_custom.py. precast wrote the copy.

usage: read_custom.py FILE.beton, which was written by
  precast write custom_w1.beton FILE.beton --field-layout boxes=10:1:0 --field-layout point=24:8
"""
import pathlib
import sys

from ffcv.reader import Reader

from make_custom import FIELDS, BoxesField, PointField, Samples

if __name__ == "__main__":
    reader = Reader(sys.argv[1], {"boxes": BoxesField, "point": PointField})
    assert reader.field_names == list(FIELDS), reader.field_names
    file = pathlib.Path(sys.argv[1]).read_bytes()
    sizes = {int(entry["ptr"]): int(entry["size"]) for entry in reader.alloc_table}
    for i, row in enumerate(reader.metadata):
        label, boxes, note, point, weight = Samples()[i]
        assert row["f0"] == label and row["f4"] == weight, i
        start = int(row["f1"]["ptr"])
        assert row["f1"]["rows"] == len(boxes) and file[start:start + sizes[start]] == boxes.tobytes(), i
        start = int(row["f2"]["ptr"])
        assert file[start:start + int(row["f2"]["size"])] == note.tobytes(), i
        assert (row["f3"]["x"], row["f3"]["y"], row["f3"]["tag"]) == point, i
    print("FFCV sees the values of", len(reader.metadata), "samples")
