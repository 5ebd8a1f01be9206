#!/usr/bin/env python3
"""Checks that the real FFCV reads files of precast, and that precast reads files of FFCV.

    ffcv_read.py FILE.beton [--expect EXPECTED]    FFCV reads a file of precast
    ffcv_read.py --golden [FOLDER]                 precast reads files of FFCV; default: $PRECAST_FFCV_GOLDENS

First form: labels, sizes and pixels stored raw must be equal. In files with 800 samples or more, sizes and raw pixels
are compared for only 400 to 600 samples. FFCV's centre crops must be within one level of those of `precast preview` at
every pixel. EXPECTED is the source of the file: an IDX images file (with its labels in the same folder), or a tar of
class folders or of CLASS_NAME.JPEG files. It can also be a .beton that FFCV wrote from the same images; pixels stored
raw are then compared too, and may differ by one level.

Second form: FOLDER contains NAME.beton.gz, NAME.json and NAME.npz: a file, the values that were written into it, and
the images as decoded by FFCV. Every value is compared: numbers as `precast inspect` prints them, other values at the
position in the file that it reports. This form needs only numpy; the first form needs tools/peers/setup. The exit code
is 77 if no folder is given or numpy is missing.

Prints a table; exit code 1 if a comparison in it fails.
"""
import argparse
import gzip
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77  # ctest counts this exit code as skipped
try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed; .venv-peers of tools/peers/setup has it")
    sys.exit(SKIPPED)
CROPS = ((1.0, 160), (0.875, 64), (0.875, 224))  # (ratio, side in px)
LEVELS = 1  # allowed difference between a resized pixel and FFCV's


class Table:
    """Prints one line for each comparison; `failed` is set if one of them fails."""

    def __init__(self):
        self.failed = False

    def line(self, file, what, count, right, note=""):
        self.failed |= not right
        print(f"{file:<22} {what:<34} {count:>9} {'ok' if right else 'WRONG':<6} {note}", flush=True)

    def equal(self, file, what, got, expected):
        got, expected = np.asarray(got), np.asarray(expected)
        if got.shape != expected.shape:
            self.line(file, what, got.size, False, f"shape {got.shape}, expected {expected.shape}")
            return
        wrong = np.flatnonzero(got != expected)
        self.line(file, what, got.size, not wrong.size,
                  "equal" if not wrong.size else f"{wrong.size} differ, the first at {wrong[0]}")

    def near(self, file, what, got, expected, levels=LEVELS):
        """Compares two arrays of pixels, or two lists of such arrays. Prints the number of bytes compared."""
        pairs = list(zip(got, expected, strict=True))
        if any(g.shape != e.shape for g, e in pairs):
            self.line(file, what, len(pairs), False, "sizes differ")
            return
        apart = [np.abs(g.astype(np.int16) - e) for g, e in pairs]
        count, worst = sum(a.size for a in apart), max(int(a.max()) for a in apart)
        differing = sum(np.count_nonzero(a) for a in apart)
        self.line(file, what, count, worst <= levels,
                  f"largest difference {worst}, {100 * differing / count:.3f} % differ")


class Precast:
    """A file as reported by precast."""

    def __init__(self, program, file):
        self.program, self.file = program, file
        self.scratch = tempfile.TemporaryDirectory()

    def run(self, command, *arguments):
        done = subprocess.run([self.program, command, self.file, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"ffcv_read: expected exit code 0 of precast {command}, got {done.returncode} "
                     f"({self.file}): {done.stderr.strip()}")
        return done.stdout

    def sizes(self, which):
        samples = [json.loads(self.run("inspect", "--sample", i, "--json")) for i in which]
        images = [s["image"] for s in samples]
        return [[i["height"], i["width"]] for i in images], [i["mode"] == "raw" for i in images]

    def labels(self):
        fields = json.loads(self.run("inspect", "--json", "--label-values"))["fields"]
        return next(f["labels"] for f in fields if "labels" in f)

    def preview(self, *arguments):
        out = pathlib.Path(self.scratch.name) / "preview.npy"
        self.run("preview", "-o", out, *arguments)
        return np.load(out)

    def center_crops(self, ratio, side, samples="all"):
        return self.preview("--val", "--ratio", ratio, "--image-size", side, "--positions", samples)

    def image(self, sample):
        out = pathlib.Path(self.scratch.name) / "image.npy"
        self.run("inspect", "--sample", sample, "--output", out)
        return np.load(out)


class Ffcv:
    """A file as reported by FFCV."""

    def __init__(self, file):
        from ffcv.fields.rgb_image import IMAGE_MODES
        from ffcv.reader import Reader

        self.file = str(file)
        reader = Reader(self.file)
        columns = dict(zip(reader.field_names, reader.metadata.dtype.names, strict=True))
        image = reader.metadata[columns["image"]]
        self.samples = len(reader.metadata)
        self.labels_read = reader.metadata[columns["label"]].reshape(-1)
        self.sizes = np.stack([image["height"], image["width"]], axis=1).astype(np.int64)
        self.raw = image["mode"] == IMAGE_MODES["raw"]
        self.pointers = image["data_ptr"]

    def load(self, decoder):
        """Labels and images [n, H, W, 3] from FFCV's Loader."""
        from ffcv.fields.basics import IntDecoder
        from ffcv.loader import Loader, OrderOption

        loader = Loader(self.file, batch_size=100, num_workers=1, os_cache=True, order=OrderOption.SEQUENTIAL,
                        drop_last=False, pipelines={"image": [decoder], "label": [IntDecoder()]})
        labels, images = [], []
        for image, label in loader:  # copies, because FFCV overwrites the batch with the next one
            images.append(np.array(image))
            labels.append(np.array(label).reshape(-1))
        return np.concatenate(labels), np.concatenate(images)

    def stored_pixels(self):
        """The images stored raw, at the positions that FFCV's Reader reports: {sample: [H, W, 3]}."""
        data = np.memmap(self.file, np.uint8, "r")
        found = {}
        for sample in np.flatnonzero(self.raw):
            height, width = self.sizes[sample]
            start = int(self.pointers[sample])
            found[int(sample)] = data[start:start + 3 * height * width].reshape(height, width, 3)
        return found


def read_idx(path):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        content = file.read()
    shape = struct.unpack_from(f">{content[3]}I", content, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)


def tar_labels(path):
    """The labels of a tar: classes and files in the order of their names, as in torchvision's ImageFolder."""
    with tarfile.open(path) as tar:
        names = sorted(m.name for m in tar if m.isfile())
    if all("/" in name for name in names):
        files = [(name.split("/")[-2], name) for name in names]
    else:
        files = [(name.split("_")[0], name) for name in names]
    classes = sorted({c for c, _ in files})
    return [classes.index(c) for c, _ in sorted(files)]


def compare_with_source(table, name, ffcv, loaded_labels, simple, expected):
    if expected.suffix == ".beton":
        other = Ffcv(expected)
        table.equal(name, "labels: Loader, FFCV's own file", loaded_labels, other.labels_read)
        table.equal(name, "sizes: Reader, FFCV's own file", ffcv.sizes, other.sizes)
        ours, theirs = ffcv.stored_pixels(), other.stored_pixels()
        both = sorted(ours.keys() & theirs.keys())
        table.near(name, f"raw pixels of {len(both)}, FFCV's own file", [ours[i] for i in both],
                   [theirs[i] for i in both])
        return
    if expected.suffix == ".tar":
        table.equal(name, "labels: Loader, the tar", loaded_labels, tar_labels(expected))
        return
    images = read_idx(expected)
    labels = read_idx(expected.with_name(expected.name.replace("images-idx3", "labels-idx1")))
    table.equal(name, "labels: Loader, the IDX file", loaded_labels, labels)
    table.equal(name, "pixels: Loader, the IDX file", simple, np.repeat(images[..., None], 3, axis=3))


def check_file(file, expected, program, table):
    """FFCV reads a file that precast wrote."""
    from ffcv.fields.rgb_image import CenterCropRGBImageDecoder, SimpleRGBImageDecoder

    ffcv, precast, name = Ffcv(file), Precast(program, file), file.name
    table.equal(name, "labels: Reader, precast inspect", ffcv.labels_read, precast.labels())
    some = range(0, ffcv.samples, max(1, ffcv.samples // 400))  # fewer than 800, because each needs a process
    sizes, raw = precast.sizes(some)
    table.equal(name, "sizes: Reader, precast inspect", ffcv.sizes[some], sizes)
    table.equal(name, "raw or jpg: Reader, precast", ffcv.raw[some], raw)
    simple = None
    height, width = ffcv.sizes[0]
    if (ffcv.sizes == height).all():
        loaded_labels, simple = ffcv.load(SimpleRGBImageDecoder())
        # Complete images, not resized.
        ours = precast.preview("--crop", f"0:{height},0:{width}", "--image-size", height, "--positions", "all")
        table.near(name, "whole images: Loader, preview", simple, ours, levels=0 if ffcv.raw.all() else LEVELS)
    for ratio, side in CROPS:
        loaded_labels, theirs = ffcv.load(CenterCropRGBImageDecoder((side, side), ratio))
        table.near(name, f"centre crop ratio {ratio:g}, {side} px", precast.center_crops(ratio, side), theirs)
    table.equal(name, "labels: Loader, Reader", loaded_labels, ffcv.labels_read)
    if ffcv.raw.any():
        stored = {i: pixels for i, pixels in ffcv.stored_pixels().items() if i in some}
        table.near(name, f"raw pixels of {len(stored)}, inspect", [precast.image(i) for i in stored],
                   list(stored.values()), levels=0)
    if expected:
        compare_with_source(table, name, ffcv, loaded_labels, simple, expected)


def check_golden(folder, program, table):
    """precast reads files that FFCV wrote."""
    with tempfile.TemporaryDirectory() as scratch:
        for facts_file in sorted(folder.glob("*.json")):
            name = facts_file.stem
            facts, arrays = json.loads(facts_file.read_text()), np.load(folder / f"{name}.npz")
            file = pathlib.Path(scratch) / f"{name}.beton"
            with gzip.open(folder / f"{name}.beton.gz") as packed, open(file, "wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
            precast = Precast(program, file)
            check_golden_values(name, precast, facts, arrays, table)
            if "center_64_r0875" not in arrays:
                continue  # no images
            table.equal(name, "labels", precast.labels(),
                        arrays["field_label"].reshape(-1) if "field_label" in arrays else facts["expected_labels"])
            sizes, _ = precast.sizes(range(len(arrays["height"])))
            table.equal(name, "sizes", sizes, np.stack([arrays["height"], arrays["width"]], axis=1))
            check_golden_pixels(name, precast, arrays, table)


def golden_column(field, facts, arrays):
    """Returns the values that FFCV wrote to a field: a list of numbers, of arrays, of bytes, or of the CRC-32 of each
    sample's bytes. None for images."""
    name = field["name"]
    if field["type_id"] == 5:
        texts = facts.get("expected_json_text") or list(map(json.dumps, facts["expected_json"]))
        return [text.encode() + b"\0" for text in texts]
    if name in arrays:
        return list(arrays[name])
    for prefix in ("field_" + name, name + "_crc32"):
        if prefix in arrays:
            return arrays[prefix].reshape(-1).tolist()
    sizes, content = (("sizes", "concat") if "sizes" in arrays else (f"{name}_sizes", f"{name}_concat"))
    if sizes in arrays:
        ends = np.cumsum(arrays[sizes])
        return [arrays[content][end - size:end].tobytes() for size, end in zip(arrays[sizes], ends, strict=True)]
    if field["type_id"] == 2:
        return None
    column = facts["metadata"]["columns"].index(name)
    return [row[column] for row in facts["metadata"]["rows"]]


def check_golden_values(name, precast, facts, arrays, table):
    data = np.memmap(precast.file, np.uint8, "r")
    samples = [json.loads(precast.run("inspect", "--sample", i, "--json"))
               for i in range(facts["header"]["num_samples"])]
    for field in facts["fields"]:
        column = golden_column(field, facts, arrays)
        if column is None:
            continue
        pairs = zip(samples, column, strict=True)
        wrong = [i for i, (sample, given) in enumerate(pairs) if not same_value(sample[field["name"]], given, data)]
        table.line(name, f"{field['name']}: every value", len(column), not wrong,
                   f"{len(wrong)} differ, the first at {wrong[0]}" if wrong else "equal")


def same_value(read, given, data):
    """Whether precast's report of a value matches what was written; `data` is the file."""
    if not isinstance(read, dict):
        return read == (given.item() if hasattr(given, "item") else given)
    stored = data[read["offset"]:read["offset"] + read["bytes"]].tobytes()
    if isinstance(given, int):
        return zlib.crc32(stored) == given
    return stored == (given if isinstance(given, bytes) else given.tobytes())


def check_golden_pixels(name, precast, arrays, table):
    raw = arrays["mode"] == 1
    ids, offsets = arrays["full_ids"], arrays["full_offsets"]
    stored = [(i, arrays["full_pixels"][offsets[k]:offsets[k + 1]]) for k, i in enumerate(ids) if raw[i]]
    if stored:
        table.near(name, f"raw pixels of {len(stored)}", [precast.image(i).reshape(-1) for i, _ in stored],
                   [p for _, p in stored], levels=0)
    table.near(name, "centre crop ratio 0.875, 64 px", precast.center_crops(0.875, 64), arrays["center_64_r0875"])
    kept = ",".join(map(str, arrays["center_160_ids"]))
    for key, ratio in (("center_160_r0875", 0.875), ("center_160_r1", 1)):
        table.near(name, f"centre crop ratio {ratio:g}, 160 px", precast.center_crops(ratio, 160, kept), arrays[key])
    windows = [precast.preview("--crop", f"{r0}:{r1},{c0}:{c1}", "--image-size", 96, "--positions", sample)[0]
               for sample, r0, r1, c0, c1 in arrays["windows"]]
    table.near(name, f"{len(windows)} windows, 96 px", windows, arrays["windows_96"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=pathlib.Path, metavar="FILE.beton")
    parser.add_argument("--expect", type=pathlib.Path, metavar="EXPECTED")
    parser.add_argument("--golden", nargs="?", const=os.environ.get("PRECAST_FFCV_GOLDENS", ""), metavar="FOLDER")
    parser.add_argument("--precast", default=ROOT / "build/bin/precast", type=pathlib.Path)
    arguments = parser.parse_args()
    if (arguments.file is None) == (arguments.golden is None):
        parser.error("expected FILE.beton or --golden FOLDER")
    if arguments.golden == "":
        print("skipped: expected a folder in --golden or PRECAST_FFCV_GOLDENS, got none")
        return SKIPPED
    if arguments.golden is not None and not list(pathlib.Path(arguments.golden).glob("*.json")):
        parser.error(f"expected a folder with files of FFCV, got {arguments.golden}")
    for path in filter(None, (arguments.file, arguments.expect, arguments.precast)):
        if not path.exists():
            parser.error(f"expected an existing path, got {path}")
    table = Table()
    if arguments.golden:
        check_golden(pathlib.Path(arguments.golden), arguments.precast, table)
    else:
        check_file(arguments.file, arguments.expect, arguments.precast, table)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
