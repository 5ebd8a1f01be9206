#!/usr/bin/env python3
"""Checks that the real FFCV reads precast's files: from each kind of source except tar, with each kind of field and
each image mode of FFCV.

    .venv-peers/bin/python tests/peers/ffcv_reads_ours.py [--precast build/bin/precast]

Makes small datasets with known values, writes them with `precast write`, opens each file with FFCV's Reader and Loader,
and compares all values. Pixels stored raw must equal the original ones. A JPEG, decoded by FFCV, must equal the JPEG
that FFCV's writer makes from the same pixels. Downsized images may differ by 1 level (raw) or 16 levels (JPEG).
Prints a line per file; exit code 1 if a value is wrong.

Needs the Python of .venv-peers, which tools/peers/setup creates; in another Python without FFCV, the exit code is 77
(skipped).
"""
import argparse
import csv
import gzip
import importlib.metadata
import io
import json
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
try:
    import cv2
    import numpy as np
    from ffcv.fields import bytes as ffcv_bytes
    from ffcv.fields import rgb_image
    from ffcv.libffcv import imdecode
    from ffcv.loader import Loader, OrderOption
    from ffcv.memory_managers.os_cache import OSCacheManager
    from ffcv.reader import Reader
    from PIL import Image
except ImportError as error:
    if pathlib.Path(sys.prefix).name == ".venv-peers":
        sys.exit(f"expected FFCV in the Python of .venv-peers, got: {error}. tools/peers/setup installs it")
    print("skipped: FFCV is not installed; tools/peers/setup creates .venv-peers with it")
    sys.exit(SKIPPED)

PAGE = 1 << 21
KNOWN = ROOT / "tests/golden/beton"
sys.path.insert(0, str(KNOWN))
import make_custom  # noqa: E402


class Expected:
    """The values that a file must contain: {field: [a value per sample]}; an image is [H, W, 3] uint8."""

    def __init__(self, values, quality=90, max_resolution=None, stored=None):
        self.values, self.quality, self.max_resolution = values, quality, max_resolution
        self.stored = stored  # counts: {"jpg": N, "raw": N}


def picture(random, height, width):
    """A gradient with some noise, which JPEG compression changes little."""
    y, x = np.mgrid[0:height, 0:width]
    colours = np.stack([x * 255 // max(1, width - 1), y * 255 // max(1, height - 1), (x + y) % 256], axis=2)
    return np.clip(colours + random.integers(-9, 10, colours.shape), 0, 255).astype(np.uint8)


def pictures(random, count, sizes=None):
    sizes = sizes or [(int(h), int(w)) for h, w in random.integers(9, 130, (count, 2))]
    return [picture(random, *sizes[i % len(sizes)]) for i in range(count)]


def encoded(pixels, kind="PNG"):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def write_tar(path, members):
    with tarfile.open(path, "w") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


# --- Sources ---------------------------------------------------------------------------------------------------------


def class_folders(folder, random, count=24, sizes=None, jpeg=False):
    """A folder per class, as torchvision's ImageFolder expects; on request, some files are JPEGs."""
    images, labels = pictures(random, count, sizes), [i * 3 // count for i in range(count)]
    for i, (pixels, label) in enumerate(zip(images, labels, strict=True)):
        file = folder / f"tree/class{label}/{i:03}.{'JPEG' if jpeg and i % 2 else 'png'}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(pixels, "JPEG" if jpeg and i % 2 else "PNG"))
        images[i] = np.array(Image.open(file).convert("RGB"))
    return folder / "tree", {"image": images, "label": labels}


def shards(folder, random, count=12, text=lambda i: b"x" * (i % 4), array_shape=(2, 3)):
    """WebDataset shards with a member of every kind; some values are empty."""
    images = pictures(random, count, [(40, 56)])
    arrays = [random.standard_normal(array_shape).astype(np.float32) for _ in range(count)]
    documents = [{"index": i, "name": f"sämple {i}", "tags": list(range(i % 3))} for i in range(count)]
    (folder / "shards").mkdir()
    for shard in range(3):
        members = []
        for i in range(shard * count // 3, (shard + 1) * count // 3):
            members += [(f"{i:05}.png", encoded(images[i])), (f"{i:05}.cls", str(i % 5).encode()),
                        (f"{i:05}.json", json.dumps(documents[i]).encode()), (f"{i:05}.npy", npy(arrays[i])),
                        (f"{i:05}.txt", text(i))]
        write_tar(folder / f"shards/part{shard}.tar", members)
    values = {"image": images, "label": [i % 5 for i in range(count)], "json": documents, "npy": arrays,
              "txt": [text(i) for i in range(count)]}
    return folder / "shards", values


def list_of_rows(folder, random, ending, count=300):
    rows = {"id": [int(v) for v in random.integers(-2**62, 2**62, count)],
            "weight": [float(v) for v in random.standard_normal(count)],
            "text": [f'say "{i}", é' + "!" * (i % 7) for i in range(count)],
            "exactly16letters": [i % 10 for i in range(count)]}
    if ending == "jsonl":
        rows["box"] = [{"at": [i, i + 1], "none": None} for i in range(count)]
    file = folder / f"list.{ending}"
    with open(file, "w", newline="", encoding="utf-8") as out:
        if ending == "jsonl":
            for i in range(count):
                out.write(json.dumps({name: column[i] for name, column in rows.items()}) + "\n")
        else:
            writer = csv.writer(out, delimiter="\t" if ending == "tsv" else ",")
            writer.writerow(rows)
            writer.writerows(zip(*([repr(v) if isinstance(v, float) else v for v in column]
                                   for column in rows.values()), strict=True))
    rows["text"] = [text.encode() for text in rows["text"]]
    return file, rows


def numbers_only(folder, random, count=1000):
    rows = {"a": [int(v) for v in random.integers(-9, 9, count)],
            "b": [float(v) for v in random.standard_normal(count)]}
    file = folder / "numbers.csv"
    file.write_text("a,b\n" + "".join(f"{a},{b!r}\n" for a, b in zip(rows["a"], rows["b"], strict=True)))
    return file, rows


def idx_pair(folder, random, count=50):
    grey, labels = random.integers(0, 256, (count, 28, 28), np.uint8), random.integers(0, 10, count, np.uint8)
    (folder / "x-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, count, 28, 28) + grey.tobytes())
    (folder / "x-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + labels.tobytes())
    return folder / "x-images-idx3-ubyte", {"image": [np.repeat(g[..., None], 3, axis=2) for g in grey],
                                            "label": labels.tolist()}


def cifar_batch(folder, random, count=50):
    planes, labels = random.integers(0, 256, (count, 3, 32, 32), np.uint8), random.integers(0, 10, count, np.uint8)
    content = b"".join(bytes([label]) + image.tobytes() for label, image in zip(labels, planes, strict=True))
    (folder / "data_batch_1.bin").write_bytes(content)
    return folder / "data_batch_1.bin", {"image": [p.transpose(1, 2, 0) for p in planes], "label": labels.tolist()}


def arrays_of_numpy(folder, random, count=30):
    columns = {"image": random.integers(0, 256, (count, 20, 30, 3), np.uint8), "label": random.integers(-9, 9, count),
               "weight": random.standard_normal(count).astype(np.float32),
               "half": random.standard_normal((count, 2, 3)).astype(np.float16)}
    np.savez(folder / "x.npz", **columns)
    return folder / "x.npz", {n: c.tolist() if c.ndim == 1 else list(c) for n, c in columns.items()}


def deep_pictures(folder, random, count=12):
    """16-bit grey PNGs in class folders. FFCV reads bytes: height and width (u32), then the pixels (u16)."""
    values = {"image": [], "label": [i * 2 // count for i in range(count)]}
    for i in range(count):
        pixels = random.integers(0, 65536, (5 + i, 9), np.uint16)
        (folder / f"class{i * 2 // count}").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(folder / f"class{i * 2 // count}/{i:02}.png")
        values["image"].append(struct.pack("<2I", *pixels.shape) + pixels.tobytes())
    return folder, values


def arrays_of_any_shape(folder, random, count=9):
    """Ragged arrays, which FFCV reads as bytes: the extents (u64), then the elements."""
    arrays = random.standard_normal((count, 2, 5)).astype(np.float32)
    np.savez(folder / "x.npz", points=arrays)
    return folder / "x.npz", {"points": [struct.pack("<2Q", 2, 5) + a.tobytes() for a in arrays]}


def custom_fields_of_ffcv(folder):
    """A file of FFCV with fields of user-defined classes; FFCV needs these classes to read the copy."""
    file = folder / "custom.beton"
    file.write_bytes(gzip.decompress((KNOWN / "custom_w1.beton.gz").read_bytes()))
    columns = zip(*(make_custom.Samples()[i] for i in range(len(make_custom.Samples()))), strict=True)
    values = dict(zip(make_custom.FIELDS, map(list, columns), strict=True))
    points = [np.array(point, make_custom.PointField.metadata_type) for point in values["point"]]
    return file, values | {"note": [note.tobytes() for note in values["note"]], "point": points}


def file_of_ffcv(folder, name):
    """A file that FFCV wrote, which precast copies; large values are identified by length and CRC-32."""
    file = folder / f"{name}.beton"
    file.write_bytes(gzip.decompress((KNOWN / f"{name}.beton.gz").read_bytes()))
    facts = json.loads((KNOWN / "expected.json").read_text())[name]
    columns = [[row[i] for row in facts["rows"]] for i in range(len(facts["fields"]))]
    return file, {field[0]: [(v[-2], v[-1]) if isinstance(v, list) else v for v in column]
                  for field, column in zip(facts["fields"], columns, strict=True)}


# --- FFCV ------------------------------------------------------------------------------------------------------------


class Ffcv:
    """A file as read by FFCV."""

    def __init__(self, file):
        self.file, self.reader = str(file), Reader(str(file), custom_handlers=make_custom.CLASSES)
        self.columns = dict(zip(self.reader.field_names, self.reader.metadata.dtype.names, strict=True))
        self.memory, self.data = OSCacheManager(self.reader), np.memmap(self.file, np.uint8, "r")

    def blob(self, pointer):
        """The bytes at a pointer; FFCV's memory manager gives their size."""
        size = int(self.memory.sizes[np.searchsorted(self.memory.ptrs, pointer)])
        return self.data[int(pointer):int(pointer) + size]

    def image(self, metadata):
        stored, (height, width) = self.blob(metadata["data_ptr"]), (int(metadata["height"]), int(metadata["width"]))
        if metadata["mode"] == rgb_image.IMAGE_MODES["raw"]:
            return stored.reshape(height, width, 3)
        return decode_by_ffcv(np.array(stored), height, width)

    def value(self, name, sample):
        """One value of one sample, as read by FFCV's Reader."""
        metadata, handler = self.reader.metadata[self.columns[name]][sample], self.reader.handlers[name]
        if isinstance(handler, rgb_image.RGBImageField):
            return self.image(metadata)
        if isinstance(handler, ffcv_bytes.BytesField):  # also the class of JSONField
            stored = self.blob(metadata["ptr"])
            if stored.size != metadata["size"]:
                raise ValueError(f"expected {metadata['size']} bytes as in the record, got {stored.size} from FFCV")
            return stored.tobytes()
        if isinstance(handler, make_custom.BoxesField):
            return self.blob(metadata["ptr"]).view("<f4").reshape(metadata["rows"], 4)
        if isinstance(handler, make_custom.PointField):
            return np.array(metadata)
        if hasattr(handler, "shape"):
            return self.blob(metadata).view(handler.dtype).reshape(handler.shape)
        return metadata.item()

    def loaded(self, names):
        """Complete columns from FFCV's Loader, compiled by numba."""
        pipelines = {n: [self.reader.handlers[n].get_decoder_class()()] if n in names else None for n in self.columns}
        loader = Loader(self.file, batch_size=64, num_workers=1, os_cache=True, order=OrderOption.SEQUENTIAL,
                        drop_last=False, pipelines=pipelines, custom_fields=make_custom.CLASSES)
        batches = [[np.array(column) for column in batch] for batch in loader]  # the next batch overwrites this one
        return {n: np.concatenate([b[i] for b in batches]) for i, n in enumerate(n for n in self.columns if n in names)}


def decode_by_ffcv(jpeg, height, width):
    out = np.zeros((height, width, 3), np.uint8)
    imdecode(jpeg, out, height, width, height, width, 0, 0, 1, 1, False, False)
    return out


def loadable(ffcv, name):
    """Whether the Loader can read this field: numba has no float16, and all images must have the same size."""
    handler, metadata = ffcv.reader.handlers[name], ffcv.reader.metadata[ffcv.columns[name]]
    if isinstance(handler, rgb_image.RGBImageField):
        return len(np.unique(metadata[["height", "width"]])) == 1
    return getattr(handler, "dtype", None) != np.float16 and not isinstance(handler, make_custom.Custom)


# --- Comparing -------------------------------------------------------------------------------------------------------


def image_differs(ours, given, raw, expected):
    """None, or how the image that FFCV reads differs from the one that FFCV's writer makes from the pixels."""
    wanted = rgb_image.resizer(given, expected.max_resolution)
    if ours.shape != wanted.shape:
        return f"is {ours.shape}, expected {wanted.shape}"
    levels = int(wanted is not given)  # OpenCV rounds its sums differently
    if not raw:
        if levels:
            levels = 16  # a difference of one level before encoding can become a step of quantisation
        wanted = decode_by_ffcv(rgb_image.encode_jpeg(wanted, expected.quality), *wanted.shape[:2])
    apart = int(np.abs(ours.astype(int) - wanted).max())
    return None if apart <= levels else f"differs by {apart} levels"


def value_differs(ours, given):
    if isinstance(given, tuple):  # length and CRC-32
        stored = ours if isinstance(ours, bytes) else ours.tobytes()
        same = (len(stored), zlib.crc32(stored) if stored else 0) == given
    elif isinstance(given, bytes):
        same = ours == given
    elif isinstance(given, (dict, list)):
        same = ours[-1:] == b"\0" and json.loads(ours[:-1]) == given
    elif isinstance(given, np.ndarray):
        same = ours.dtype == given.dtype and np.array_equal(ours, given)
    else:
        same = ours == given
    return None if same else f"is {str(ours)[:60]}, expected {str(given)[:60]}"


def first_difference(ffcv, expected):
    """None, or the first value that the Reader reads differently from the written value, or the Loader differently from
    the Reader."""
    if sorted(ffcv.columns) != sorted(expected.values):
        return f"fields {sorted(ffcv.columns)}, expected {sorted(expected.values)}"
    loaded = ffcv.loaded([n for n in ffcv.columns if loadable(ffcv, n)])
    for name, column in expected.values.items():
        if len(column) != len(ffcv.reader.metadata):
            return f"{len(ffcv.reader.metadata)} samples, expected {len(column)}"
        for i, given in enumerate(column):
            read = ffcv.value(name, i)
            if isinstance(given, np.ndarray) and given.ndim == 3 and given.dtype == np.uint8:
                raw = ffcv.reader.metadata[ffcv.columns[name]][i]["mode"] == rgb_image.IMAGE_MODES["raw"]
                wrong = image_differs(read, given, raw, expected)
            else:
                wrong = value_differs(read, given)
            if not wrong and name in loaded:
                wrong = loader_differs(loaded[name][i], read)
            if wrong:
                return f"{name} of sample {i} {wrong}"
    return None


def loader_differs(row, read):
    if isinstance(read, bytes):  # rows are as long as the longest value; the bytes after a shorter value are undefined
        same = row[:len(read)].tobytes() == read
    else:
        same = np.array_equal(row.reshape(np.shape(read)), read)
    return None if same else "differs between Loader and Reader"


def stored_counts(ffcv):
    counts = {"jpg": 0, "raw": 0}
    for name, handler in ffcv.reader.handlers.items():
        if isinstance(handler, rgb_image.RGBImageField):
            modes = ffcv.reader.metadata[ffcv.columns[name]]["mode"]
            counts["raw"] += int((modes == rgb_image.IMAGE_MODES["raw"]).sum())
            counts["jpg"] += int((modes == rgb_image.IMAGE_MODES["jpg"]).sum())
    return counts


class Check:
    def __init__(self, precast, folder):
        self.precast, self.folder, self.failed, self.random = precast, folder, False, np.random.default_rng(7)

    def file(self, what, made, *options, page=PAGE, **known):
        """Writes a file from the source, compares its values, and prints a line."""
        source, values = made
        out = self.folder / "ours.beton"
        command = [self.precast, "write", source, out, "--page-size", page, *options]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        wrong, notes = f"precast write ended with {done.returncode}: {done.stderr.strip()}", ""
        if done.returncode == 0:
            ffcv, expected = Ffcv(out), Expected(values, **known)
            wrong, counts = first_difference(ffcv, expected), stored_counts(ffcv)
            if not wrong and expected.stored and counts != expected.stored:
                wrong = f"stored {counts}, expected {expected.stored}"
            notes = ", ".join(f"{v} {k}" for k, v in counts.items() if v)
        samples = len(next(iter(values.values())))
        self.failed |= bool(wrong)
        print(f"{what:<46} {samples:>5} samples  {'WRONG: ' + wrong if wrong else 'equal'}  {notes}", flush=True)

    def scratch(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder


def check_images(check):
    tree = class_folders(check.scratch("mixed"), check.random, jpeg=True)
    same = class_folders(check.scratch("same"), check.random, sizes=[(48, 64)])
    count = len(tree[1]["label"])
    check.file("folder, raw, all sizes, 3 workers", tree, "--image.mode", "raw", "--workers", 3,
               stored={"jpg": 0, "raw": count})
    check.file("folder, raw, one size", same, "--image.mode", "raw")
    check.file("folder, raw, max_resolution 50", tree, "--image.mode", "raw", "--image.max_resolution", 50,
               max_resolution=50)
    check.file("folder, jpg, all sizes", tree, "--image.mode", "jpg", stored={"jpg": count, "raw": 0})
    check.file("folder, jpg q50, one size, 2 workers", same, "--image.mode", "jpg", "--image.quality", 50,
               "--workers", 2, quality=50)
    check.file("folder, jpg, max_resolution 50", tree, "--image.mode", "jpg", "--image.max_resolution", 50,
               max_resolution=50)
    large = sum(v.nbytes > 15000 for v in tree[1]["image"])
    check.file("folder, smart, above 15,000 bytes", tree, "--image.mode", "smart", "--image.smart_threshold", 15000,
               stored={"jpg": large, "raw": count - large})
    check.file("folder, proportion .5", same, "--image.mode", "proportion", "--image.compress_probability", .5)
    check.file("IDX pair, raw", idx_pair(check.scratch("idx"), check.random), "--image.mode", "raw")
    check.file("CIFAR batch, raw", cifar_batch(check.scratch("cifar"), check.random), "--image.mode", "raw",
               "--source-kind", "cifar")


def check_other_fields(check):
    check.file("WebDataset: image int json ndarray bytes", shards(check.scratch("wds"), check.random),
               "--image.mode", "raw", "--workers", 3)
    large = shards(check.scratch("large"), check.random, text=lambda i: bytes([i]) * 900_001, array_shape=(150_000,))
    check.file("WebDataset, 1.5 MB a sample: page overflow", large, "--image.mode", "jpg", "--workers", 2)
    check.file("WebDataset, pages of 8 MiB", large, "--image.mode", "jpg", page=1 << 23)
    for ending in ("csv", "tsv", "jsonl"):
        fields = "int float bytes int" + (" json" if ending == "jsonl" else "")
        check.file(f"{ending}: {fields}", list_of_rows(check.scratch(ending), check.random, ending), "--workers", 2)
    check.file("csv: numbers only, no pages", numbers_only(check.scratch("numbers"), check.random))
    check.file("npz: image int float ndarray of float16", arrays_of_numpy(check.scratch("npz"), check.random),
               "--image.mode", "raw")
    check.file("pixels of 16-bit grey PNGs, as bytes", deep_pictures(check.scratch("pixels"), check.random),
               "--field-kind", "image=pixels")
    check.file("ragged arrays, as bytes", arrays_of_any_shape(check.scratch("ragged"), check.random),
               "--field-kind", "points=ragged")
    check.file("custom fields of a class of FFCV", custom_fields_of_ffcv(check.scratch("custom")),
               "--field-layout", "boxes=10:1:0", "--field-layout", "point=24:8")
    for name in ("allfields_w1", "allfields_w3_empty", "bytes_first_empty", "scalars_only"):
        check.file(f"FFCV's {name}, stored again", file_of_ffcv(check.scratch(name), name), "--workers", 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precast", default=ROOT / "build/bin/precast", type=pathlib.Path)
    arguments = parser.parse_args()
    if not arguments.precast.exists():
        parser.error(f"--precast: expected a program, got {arguments.precast}, which does not exist")
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as scratch:
        check = Check(arguments.precast, pathlib.Path(scratch))
        check_images(check)
        check_other_fields(check)
    print(f"FFCV {importlib.metadata.version('ffcv')}: {'some values differ' if check.failed else 'all values equal'}")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
