#!/usr/bin/env python3
"""Tests which values the Python package accepts and rejects, with a library of the build.

    values_test.py LIBRARY [TEST...]

Needs NumPy; without it, the exit code is 77 (skipped). Values of torch are tested if torch is installed.
"""
import contextlib
import copy
import gc
import gzip
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings

from library import ROOT, np, precast, torch


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, fields, samples, **options):
        path = self.folder / name
        with precast.Writer(path, fields, len(samples), **options) as writer:
            for sample in samples:
                writer.add(sample)
        return path


class CopyTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.path = self.write("labels.beton", {"label": "int"}, [[number] for number in range(8)])

    def test_copies_of_a_batch_share_its_memory(self):
        for made in (copy.copy, copy.deepcopy):
            loader = precast.Loader(self.path, 4)
            batch = next(iter(loader))
            copies = made(batch), made(batch[0])
            self.assertEqual(np.asarray(copies[0]["label"]).__array_interface__["data"],
                             np.asarray(batch["label"]).__array_interface__["data"])
            del batch
            gc.collect()
            # The loader must not write a later batch into the memory that the copies use.
            later = list(loader)
            self.assertEqual(np.asarray(copies[0]["label"]).tolist(), [0, 1, 2, 3])
            self.assertEqual(np.asarray(copies[1]).tolist(), [0, 1, 2, 3])
            self.assertEqual(copies[0].sample_ids, [0, 1, 2, 3])
            del later

    def test_batches_are_not_pickled(self):
        batch = next(iter(precast.Loader(self.path, 4)))
        for value in (batch, batch[0], {"batch": batch}):
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                with self.assertRaises(TypeError):
                    pickle.dumps(value, protocol)


class WriterTest(FolderTest):
    def stored(self, kind, values):
        path = self.write("values.beton", {"value": kind}, [[value] for value in values])
        return [sample["value"] for sample in precast.Dataset(path)]

    def test_json_is_what_json_dumps_makes(self):
        values = ["12", "null", "{}", "", 12, None, [1, "a"], {"a": 1.5}, True]
        self.assertEqual([json.loads(text) for text in self.stored("json", values)], values)
        # Bytes are JSON text, which is stored unchanged.
        self.assertEqual(self.stored("json", [b'{"a":  1}', b"12"]), ['{"a":  1}', "12"])

    def test_bytes_are_arrays_too(self):
        content = bytes(range(5))
        array = np.frombuffer(content, np.uint8)
        values = [content, bytearray(content), memoryview(content), array, np.repeat(array, 2)[::2], array[:0]]
        expected = [content] * 5 + [b""]
        if torch:
            values.append(torch.arange(5, dtype=torch.uint8))
            expected.append(content)
        self.assertEqual(self.stored("bytes", values), expected)

    def test_scalars_of_other_libraries(self):
        values = [True, np.bool_(True), np.array(True), np.int8(1), np.uint64(1), np.array(1)]
        self.assertEqual(self.stored("int", values), [1] * len(values))
        self.assertEqual(self.stored("float", [np.float16(1.5), np.array(1.5), np.longdouble(1.5), 2]),
                         [1.5, 1.5, 1.5, 2])
        if torch:
            self.assertEqual(self.stored("int", [torch.tensor(3), torch.tensor(True)]), [3, 1])
            self.assertEqual(self.stored("float", [torch.tensor(1.5, dtype=torch.bfloat16)]), [1.5])

    def test_errors_name_file_sample_and_field(self):
        path = self.folder / "wrong.beton"
        fields = {"label": "int", "weight": "float", "text": "bytes", "meta": "json"}
        good = {"label": 1, "weight": 1.5, "text": b"a", "meta": {}}
        with precast.Writer(path, fields, 2) as writer:
            writer.add(good)
            for field, values in {
                    "label": [1j, None, object(), 1.5, "1", np.complex64(1), int],
                    "weight": [np.complex128(1 + 2j), 10**400, None, np.float32, [1.0]],
                    "text": [np.zeros(2, np.float32), np.zeros((2, 2), np.uint8), 3, "\ud800"],
                    "meta": [{1, 2}, np.zeros(2), b"{"]}.items():
                for value in values:
                    with self.assertRaisesRegex((TypeError, precast.DataError), f"{path}: sample 1, field '{field}'"):
                        writer.add({**good, field: value})
            for sample in ({"label": 1}, [1, 2], {}):
                with self.assertRaisesRegex(precast.ConfigError, f"{path}: sample 1"):
                    writer.add(sample)
            writer.add(good)
        self.assertEqual(len(precast.Dataset(path)), 2)

    def test_a_sample_that_is_too_large_names_the_option(self):
        path = self.folder / "large.beton"
        with precast.Writer(path, {"text": "bytes"}, 2, page_size=1 << 21) as writer:
            with self.assertRaisesRegex(precast.DataError, r"sample 0.*\bpage_size=4194304\b"):
                writer.add([bytes(3 << 20)])
            writer.add([b""])

    def test_a_field_may_have_many_classes(self):
        names = [f"class {number}" for number in range(110_000)]
        path = self.write("many.beton", {"label": "int"}, [[0]], classes={"label": names})
        self.assertEqual(precast.Dataset(path).classes, {"label": names})


class ClosingTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "labels.beton"

    def writer(self, labels=()):
        writer = precast.Writer(self.path, {"label": "int"}, 8)
        for label in labels:
            writer.add(label=label)
        return writer

    def labels(self):
        """The labels in the file; None if there is no file. Fails if the folder has other files."""
        files = list(self.folder.iterdir())
        self.assertIn(files, ([], [self.path]))
        return [sample["label"] for sample in precast.Dataset(self.path)] if files else None

    def run_program(self, text):
        text = "import os, sys, precast\n" + textwrap.dedent(text)
        done = subprocess.run([sys.executable, "-c", text, str(self.path)], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    def test_close_completes_the_file(self):
        writer = self.writer([1, 2])
        self.assertFalse(self.path.exists())
        writer.close()
        self.assertEqual(self.labels(), [1, 2])
        writer.close()
        with self.assertRaises(precast.ConfigError):
            writer.add(label=3)
        with self.writer([4]) as writer:
            writer.close()
        self.assertEqual(self.labels(), [4])

    def test_close_during_an_exception_discards_the_file_and_warns(self):
        self.writer([1]).close()
        with self.assertRaises(KeyboardInterrupt), \
                self.assertWarnsRegex(RuntimeWarning, f"{self.path}.*Keyboard"), contextlib.closing(self.writer([2])):
            raise KeyboardInterrupt
        self.assertEqual(self.labels(), [1])
        try:
            next(iter([]))
        except StopIteration:
            self.writer([3]).close()
        self.assertEqual(self.labels(), [3])

    def test_close_without_samples_warns(self):
        with self.assertWarnsRegex(RuntimeWarning, str(self.path)):
            self.writer().close()
        self.assertIsNone(self.labels())

    def test_a_file_is_discarded_on_request_and_by_exceptions(self):
        self.writer([1]).close()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            writer = self.writer([2])
            writer.discard()
            writer.close()
            del writer
            with self.assertRaises(ZeroDivisionError), self.writer([3]):
                _ = 1 / 0
            with self.assertRaises(precast.DataError):
                self.writer().finish()
            gc.collect()
        self.assertEqual(self.labels(), [1])

    def test_a_writer_that_is_not_closed_warns(self):
        writer = self.writer([1])
        with self.assertWarnsRegex(RuntimeWarning, str(self.path)):
            del writer
            gc.collect()
        self.assertIsNone(self.labels())

    def test_a_program_that_does_not_close_its_writer_warns(self):
        code, errors = self.run_program("""
            writer = precast.Writer(sys.argv[1], {"label": "int"}, 1)
            writer.add(label=1)
            """)
        self.assertEqual(code, 0)
        self.assertRegex(errors, f"RuntimeWarning: {self.path}")
        self.assertIsNone(self.labels())

    def test_a_forked_process_leaves_the_file_to_its_parent(self):
        done = self.run_program("""
            writer = precast.Writer(sys.argv[1], {"label": "int"}, 1)
            writer.add(label=1)
            child = os.fork()
            if child == 0:
                sys.exit(0)
            os.waitpid(child, 0)
            writer.close()
            """)
        self.assertEqual(done, (0, ""))
        self.assertEqual(self.labels(), [1])


class LibraryTest(unittest.TestCase):
    def test_a_missing_library_names_its_target(self):
        done = subprocess.run([sys.executable, "-c", "import precast"], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PRECAST_DATA_LIBRARY": "/no/such"})
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"ImportError.*/no/such.*ninja -C build precast_data_c\b")


class FileTest(FolderTest):
    def test_files_whose_classes_conflict_are_refused(self):
        names = {"dogs": ["husky", "pug"], "cats": ["siam", "tabby"], "some": ["husky"]}
        paths = {name: self.write(name, {"label": "int", "age": "int"},
                                  [[label, label + 1] for label in range(len(classes))], classes={"label": classes})
                 for name, classes in names.items()}
        with self.assertRaisesRegex(precast.ConfigError, "cats.*label 0.*'husky'.*dogs.*'siam'"):
            precast.Loader([paths["dogs"], paths["cats"]], 4)
        self.assertEqual(precast.Loader([paths["dogs"], paths["some"]], 4).samples, 3)
        # A field whose classes do not conflict can be read.
        self.assertEqual(precast.Loader([paths["dogs"], paths["cats"]], 4, pipeline={"age": None}).outputs, ["age"])

    def test_fields_that_a_batch_cannot_hold(self):
        fields = {"time": {"ndarray": {"dtype": "<M8[s]", "shape": [1]}},
                  "big": {"ndarray": {"dtype": ">f4", "shape": [1]}}}
        sample = {"time": np.array(["2020-01-01"], "<M8[s]"), "big": np.ones(1, ">f4")}
        path = self.write("only.beton", fields, [sample])
        with self.assertRaisesRegex(precast.ConfigError, r"only\.beton.*time.*<M8\[s\].*big.*>f4"):
            precast.Loader(path, 1)
        path = self.write("some.beton", {**fields, "label": "int"}, [{**sample, "label": 3}])
        loader = precast.Loader(path, 1)
        self.assertEqual(loader.outputs, ["label"])
        self.assertEqual(np.asarray(next(iter(loader))[0]).tolist(), [3])

    def test_custom_fields_of_ffcv_need_a_layout(self):
        path = self.folder / "custom.beton"
        path.write_bytes(gzip.decompress((ROOT / "tests/golden/beton/custom_w1.beton.gz").read_bytes()))
        with self.assertRaisesRegex(precast.DataError, r'fields=\["boxes=BYTES:ALIGNMENT"\]'):
            precast.Dataset(path)
        layouts = ["boxes=10:1:0", "point=24:8"]
        dataset = precast.Dataset(path, fields=layouts)
        sizes = {field.name: len(dataset.read(0, field.name)) for field in dataset.fields if field.type == "custom"}
        self.assertEqual(sizes, {"boxes": 10, "point": 24})
        self.assertGreater(precast.Loader(dataset, 2).samples, 0)
        for wrong in (["boxes=10"], ["boxes"], ["boxes=10:3", "point=24:8"], layouts + ["point=24:8"],
                      layouts + ["other=8:8"]):
            with self.assertRaisesRegex(precast.ConfigError, "fields"):
                precast.Dataset(path, fields=wrong)

    def test_a_batch_larger_than_the_dataset_has_all_its_samples(self):
        path = self.write("few.beton", {"box": {"ndarray": {"dtype": "<f8", "shape": [1 << 10]}}},
                          [[np.full(1 << 10, float(number))] for number in range(3)])
        # With room for 2^24 samples, a batch would need 128 GiB.
        batches = list(precast.Loader(path, 1 << 24, workers=1))
        self.assertEqual([batch.sample_ids for batch in batches], [[0, 1, 2]])
        self.assertEqual(np.asarray(batches[0]["box"])[:, 0].tolist(), [0, 1, 2])


if __name__ == "__main__":
    unittest.main()
