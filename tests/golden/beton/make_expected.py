"""Writes expected.json from .beton files that the real FFCV wrote.

usage: make_expected.py FOLDER     (FOLDER contains NAME.beton.gz and NAME.json, which were written with FFCV)

NAME.json was written with FFCV 1.0.2 (libffcv/ffcv 3a12966b). It contains the header, the field descriptors, the
records and the allocation table as FFCV's own code reads them, and the sha256 of each blob. This script copies the
files, compares files and blobs with the recorded sha256, and writes what the C++ tests compare: the records, with each
blob as [pointer, size, crc32]. It needs only the standard library.
"""

import gzip
import hashlib
import json
import pathlib
import sys
import zlib

NAMES = ["img_raw_w1", "img_jpg_w3", "img_smart_w3", "img_prop_nette_w1", "scalars_only", "wds_w2",
         "allfields_w1", "allfields_w3_empty", "bytes_first_empty", "overflow_w1"]


def expected(folder, name):
    facts = json.loads((folder / f"{name}.json").read_text())
    data = gzip.decompress((folder / f"{name}.beton.gz").read_bytes())
    assert hashlib.sha256(data).hexdigest() == facts["beton_sha256"], name
    blobs = {}
    for (_, pointer, size), digest in zip(facts["alloc_table"], facts["blob_sha256"], strict=True):
        blob = data[pointer:pointer + size]
        assert hashlib.sha256(blob).hexdigest() == digest, (name, pointer)
        if size > 0:
            blobs[pointer] = [pointer, size, zlib.crc32(blob)]

    def value(cell, type_id):
        if type_id in (0, 1):
            return cell
        if type_id == 2:
            return [cell["mode"], cell["width"], cell["height"]] + blobs[cell["data_ptr"]]
        if type_id in (3, 5):
            return blobs[cell["ptr"]] if cell["size"] > 0 else [0, 0, 0]
        return blobs[cell]

    types = [field["type_id"] for field in facts["fields"]]
    layout = facts["metadata"]["layout"]
    return {
        "bytes": len(data),
        "page_size": facts["header"]["page_size"],
        "table_offset": facts["header"]["alloc_table_ptr"],
        "record_bytes": facts["metadata"]["itemsize"],
        "fields": [[field["name"], field["type_id"], place["offset"], field.get("dtype", ""),
                    field.get("shape", [])] for field, place in zip(facts["fields"], layout, strict=True)],
        "rows": [[value(cell, type_id) for cell, type_id in zip(row, types, strict=True)]
                 for row in facts["metadata"]["rows"]],
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).parent
    for name in NAMES:
        (here / f"{name}.beton.gz").write_bytes((folder / f"{name}.beton.gz").read_bytes())
    report = {name: expected(folder, name) for name in NAMES}
    lines = [f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}"
             for name, value in report.items()]
    (here / "expected.json").write_text("{" + ",\n".join(lines) + "}\n")


main()
