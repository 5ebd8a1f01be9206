#!/usr/bin/env python3
"""Converts Parquet files like those of the Hugging Face Hub with examples/hugging_face, and reads the result.

    .venv-peers/bin/python tests/peers/hugging_face.py LIBRARY

LIBRARY is libprecast_data_c.so. In a Python without pyarrow or Pillow, the exit code is 77 (skipped).
"""
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
try:
    import numpy as np
    import pyarrow
    import pyarrow.parquet
    from PIL import Image
except ImportError as error:
    print(f"skipped: {error}; tools/peers/setup creates .venv-peers with pyarrow")
    sys.exit(SKIPPED)
if len(sys.argv) < 2:
    sys.exit(__doc__)
os.environ["PRECAST_DATA_LIBRARY"] = str(pathlib.Path(sys.argv.pop(1)).resolve())
os.environ["PYTHONPATH"] = str(ROOT / "data/python")
sys.path.insert(0, os.environ["PYTHONPATH"])
import precast  # noqa: E402

NAMES = ["tench, Tinca tinca", "goldfish", "great white shark"]
IMAGE = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
RANDOM = np.random.default_rng(0)


def image_file(format, mode="RGB"):
    file = io.BytesIO()
    pixels = RANDOM.integers(0, 255, (40, 50, 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(file, format)
    return file.getvalue()


class HuggingFaceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.output = self.folder / "out.beton"

    def parquet(self, name, rows, names=NAMES, columns=("image", "label")):
        """Writes a Parquet file as the library `datasets` does: class names are in the schema's metadata."""
        features = {columns[0]: {"_type": "Image"}, columns[1]: {"names": names, "_type": "ClassLabel"}}
        metadata = {"huggingface": json.dumps({"info": {"features": features}})} if names else None
        images = [None if image is None else {"bytes": image, "path": "a.jpg"} for image, _ in rows]
        table = pyarrow.table({columns[0]: pyarrow.array(images, IMAGE),
                               columns[1]: pyarrow.array([label for _, label in rows], pyarrow.int64())})
        pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), self.folder / name, row_group_size=2)
        return self.folder / name

    def convert(self, *arguments):
        script = ROOT / "examples/hugging_face/parquet_to_beton.py"
        return subprocess.run([sys.executable, script, *arguments, "-o", self.output], capture_output=True, text=True)

    def test_copies_images_labels_and_class_names(self):
        rows = [(image_file("JPEG"), 0), (image_file("JPEG", "L"), 2), (image_file("PNG"), 1),
                (image_file("WEBP"), 0), (image_file("JPEG", "CMYK"), 1)]
        done = self.convert(self.parquet("a.parquet", rows[:3]), self.parquet("b.parquet", rows[3:]))
        self.assertEqual(done.returncode, 0, done.stderr)
        dataset = precast.Dataset(self.output)
        self.assertEqual(dataset.classes, {"label": NAMES})
        self.assertEqual([sample["label"] for sample in dataset], [0, 2, 1, 0, 1])
        for index in (0, 1):  # stored without being encoded again
            self.assertIn(rows[index][0], self.output.read_bytes())

    def test_other_columns_without_class_names(self):
        rows = [(image_file("JPEG"), 5)]
        done = self.convert(self.parquet("a.parquet", rows, None, ("img", "fine_label")), "--image", "img",
                            "--label", "fine_label")
        self.assertEqual(done.returncode, 0, done.stderr)
        dataset = precast.Dataset(self.output)
        self.assertEqual((dataset.classes, dataset[0]["label"]), ({}, 5))

    def test_rows_that_cannot_be_converted_are_named(self):
        good = (image_file("JPEG"), 0)
        for row, facts in (((good[0], -1), "label -1"), ((None, 0), "no image"), ((good[0], None), "no label"),
                           ((b"hello", 0), "5 bytes"), ((good[0], 3), "0 to 2")):
            done = self.convert(self.parquet("a.parquet", [good, good, row]))
            self.assertEqual(done.returncode, 1, facts)
            self.assertRegex(done.stderr, f"a.parquet: row 2: .*{facts}")
            self.assertNotIn("Traceback", done.stderr)
            self.assertFalse(self.output.exists())

    def test_files_that_cannot_be_converted_are_named(self):
        rows = [(image_file("JPEG"), 0)]
        first = self.parquet("a.parquet", rows)
        text = self.folder / "text.parquet"
        text.write_text("hello")
        for file, facts in ((self.parquet("columns.parquet", rows, columns=("img", "label")), "'image'.*img"),
                            (self.parquet("names.parquet", rows, ["a", "b", "c"]), "a.parquet"),
                            (text, "Parquet"), (self.folder / "absent.parquet", "No such file")):
            done = self.convert(first, file)
            self.assertEqual(done.returncode, 1, facts)
            self.assertRegex(done.stderr, f"{file.name}: .*{facts}")
            self.assertNotIn("Traceback", done.stderr)

    def test_outputs_that_cannot_be_written_are_named(self):
        self.output = self.folder / "absent" / "out.beton"
        for rows, facts in (([(image_file("JPEG"), 0)], "absent"), ([], "samples")):
            done = self.convert(self.parquet("a.parquet", rows))
            self.assertEqual(done.returncode, 1, facts)
            self.assertIn(facts, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            self.output = self.folder / "out.beton"
        self.assertFalse(self.output.exists())


if __name__ == "__main__":
    unittest.main()
