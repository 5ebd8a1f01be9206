#!/usr/bin/env python3
"""Writes images with the real FFCV, for a comparison with precast's file from the same source.

    ffcv_write.py SOURCE.tar OUT.beton --max_resolution 256 [--mode raw]

SOURCE.tar contains CLASS_NAME.JPEG files or class folders; order and labels are those of `precast write`.
Pillow decodes the images, and FFCV's DatasetWriter writes them with an RGBImageField and an IntField.
"""
import argparse
import io
import tarfile

from ffcv.fields import IntField, RGBImageField
from ffcv.writer import DatasetWriter
from PIL import Image


class Images:
    """Pairs (image, label) in the order of the names, as in torchvision's ImageFolder."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
        in_folders = all("/" in name for name in files)
        named = sorted((name.split("/")[-2] if in_folders else name.split("_")[0], name) for name in files)
        classes = sorted({c for c, _ in named})
        self.items = [(files[name], classes.index(c)) for c, name in named]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        content, label = self.items[index]
        return Image.open(io.BytesIO(content)).convert("RGB"), label


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--mode", default="raw", choices=("raw", "jpg", "smart", "proportion"))
    parser.add_argument("--max_resolution", type=int)
    arguments = parser.parse_args()
    fields = {"image": RGBImageField(write_mode=arguments.mode, max_resolution=arguments.max_resolution),
              "label": IntField()}
    DatasetWriter(arguments.out, fields, num_workers=1).from_indexed_dataset(Images(arguments.source))


if __name__ == "__main__":
    main()
