#!/usr/bin/env python3
"""Copies the images, labels and class names of Parquet files from the Hugging Face Hub into a .beton file.

Needs pyarrow and the package in data/python. JPEGs are copied without being encoded again.
"""

import argparse
import json
import sys

import precast
import pyarrow
import pyarrow.parquet

ROWS_IN_MEMORY = 64


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.parquet", help="the Parquet files of one split")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.beton", help="the file to write")
    parser.add_argument("--image", default="image", metavar="COLUMN", help="the images (default: %(default)s)")
    parser.add_argument("--label", default="label", metavar="COLUMN", help="the labels (default: %(default)s)")
    return parser.parse_args()


class Parquet:
    """One of the files."""

    def __init__(self, path, image, label):
        """Exits with a message unless the columns `image`, of {bytes, path}, and `label`, of integers, exist."""
        self.path, self.columns = path, [image, label]
        try:
            self.file = pyarrow.parquet.ParquetFile(path)
        except (OSError, pyarrow.ArrowInvalid) as error:
            sys.exit(f"{path}: {error}")
        schema = self.file.schema_arrow
        for column in self.columns:
            if column not in schema.names:
                sys.exit(f"{path}: expected a column '{column}', got {', '.join(schema.names)}. "
                         "Use --image and --label to select the columns")
        images, labels = (schema.field(column).type for column in self.columns)
        if not pyarrow.types.is_struct(images) or images.get_field_index("bytes") < 0:
            sys.exit(f"{path}: column '{image}': expected images as {{bytes, path}}, got {images}")
        if not pyarrow.types.is_integer(labels):
            sys.exit(f"{path}: column '{label}': expected integers, got {labels}")
        # The library `datasets` stores class names in the metadata, as JSON.
        metadata = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        self.names = metadata.get("info", {}).get("features", {}).get(label, {}).get("names", [])

    def copy_to(self, writer):
        """Adds every row to `writer`."""
        row = 0
        for batch in self.file.iter_batches(ROWS_IN_MEMORY, columns=self.columns):
            images, labels = (batch.column(name).to_pylist() for name in self.columns)
            for image, label in zip(images, labels, strict=True):
                if image is None or image["bytes"] is None:
                    sys.exit(f"{self.path}: row {row}: expected the bytes of an image, got no image")
                if label is None or label < 0:
                    sys.exit(f"{self.path}: row {row}: expected a label >= 0, got "
                             f"{'no label' if label is None else f'label {label}'}. "
                             "Splits without labels cannot be used for training")
                try:
                    writer.add(image=image["bytes"], label=label)
                except precast.DataError as error:
                    sys.exit(f"{self.path}: row {row}: {error}")
                row += 1


def main():
    given = arguments()
    files = [Parquet(path, given.image, given.label) for path in given.files]
    for file in files[1:]:
        if file.names != files[0].names:
            sys.exit(f"{file.path}: expected the class names of {files[0].path}, got different ones")

    classes = {"label": files[0].names} if files[0].names else None
    fields = {"image": {"image": {"mode": "jpg", "passthrough": True}}, "label": "int"}
    samples = sum(file.file.metadata.num_rows for file in files)
    try:
        with precast.Writer(given.output, fields, samples, classes=classes) as writer:
            for number, file in enumerate(files, 1):
                file.copy_to(writer)
                print(f"{number} of {len(files)} files", file=sys.stderr)
    except precast.Error as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
