#!/usr/bin/env python3
"""Tests the Python package with a library of the build.

    precast_test.py LIBRARY [TEST...]

Needs NumPy; without it, the exit code is 77 (skipped). Tests that need torch are skipped without torch.
"""
import gc
import gzip
import hashlib
import itertools
import json
import os
import pathlib
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

from library import ROOT, np, precast, torch

SAMPLES, SIDE = 60, 16
CLASSES = [f"class {number}" for number in range(SAMPLES)]


def pixels_of(number):
    return np.random.default_rng(number).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)


def write_images(path, samples=SAMPLES):
    with precast.Writer(path, {"image": {"image": {"mode": "raw"}}, "label": "int"}, samples,
                        classes={"label": CLASSES}) as writer:
        for number in range(samples):
            writer.add(image=pixels_of(number), label=number)


def hash_of(batch):
    digest = hashlib.sha256(repr(batch.sample_ids).encode())
    for tensor in batch:
        digest.update(np.asarray(tensor).tobytes())
    return digest.hexdigest()


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class FileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name) / "images.beton"
        write_images(cls.path)

    def loader(self, batch_size=8, **options):
        options.setdefault("image_size", SIDE)
        options.setdefault("pipeline", [{"center_crop": {"ratio": 1}}])
        return precast.Loader(options.pop("path", self.path), batch_size, **options)


class TensorTest(FileTest):
    def test_batches_hold_the_files_values(self):
        loader = self.loader(workers=2)
        self.assertEqual((len(loader), loader.samples, loader.outputs), (8, SAMPLES, ["image", "label"]))
        seen = 0
        for batch in loader:
            image, label = batch
            self.assertEqual((image.shape[1:], image.dtype), ((SIDE, SIDE, 3), "uint8"))
            self.assertEqual((batch["label"].shape, label.dtype), (image.shape[:1], "int64"))
            self.assertEqual(batch.names, ["image", "label"])
            self.assertEqual(np.asarray(label).tolist(), batch.sample_ids)
            for row, number in zip(np.asarray(image), batch.sample_ids, strict=True):
                np.testing.assert_array_equal(row, pixels_of(number))
            seen += batch.samples
        self.assertEqual(seen, SAMPLES)

    def test_views_share_the_memory(self):
        batch = next(iter(self.loader()))
        image = batch["image"]
        array = np.asarray(image)
        self.assertTrue(np.shares_memory(array, np.asarray(batch[0])))
        self.assertTrue(np.shares_memory(array, np.from_dlpack(image)))
        view = memoryview(image.buffer)
        self.assertEqual((view.shape, view.format, view.nbytes), (image.shape, "B", image.nbytes))
        array[0, 0, 0, 0] ^= 255
        self.assertEqual(view[0, 0, 0, 0], array[0, 0, 0, 0])
        self.assertEqual(memoryview(batch["label"].buffer).tolist(), batch.sample_ids)
        with self.assertRaises(BufferError):
            image.__dlpack__(copy=True)
        with self.assertRaises(KeyError):
            batch["no_such"]

    @unittest.skipUnless(torch, "torch is not installed")
    def test_torch_takes_tensors_without_a_copy(self):
        def from_dlpack(tensor):
            made = torch.from_dlpack(tensor)
            self.assertEqual(made.data_ptr(), tensor.__array_interface__["data"][0])
            return made

        for image, label in self.loader(convert=from_dlpack):
            self.assertEqual((image.dtype, tuple(image.shape[1:])), (torch.uint8, (SIDE, SIDE, 3)))
            self.assertEqual(label.dtype, torch.int64)
        half = [{"center_crop": {"ratio": 1}}, {"convert": {"type": "bf16"}}, "normalize"]
        image = next(iter(self.loader(pipeline=half)))["image"]
        with self.assertRaises(TypeError):
            np.asarray(image).sum()
        self.assertEqual(torch.from_dlpack(image).dtype, torch.bfloat16)

    def test_legacy_and_versioned_capsules_are_freed(self):
        batch = next(iter(self.loader()))
        for _ in range(2000):
            batch[0].__dlpack__(), batch[0].__dlpack__(max_version=(1, 0))
        before = resident_bytes()
        for _ in range(20000):
            batch[0].__dlpack__(), batch[0].__dlpack__(max_version=(1, 0))
        self.assertLess(resident_bytes() - before, 1 << 20)

    def test_channels_of_an_output_leave_the_others(self):
        whole = ["whole_image"]
        grey = {"field": "image", "transforms": [*whole, {"channels": {"count": 1}}]}
        for pipeline in ({"image": whole, "grey": grey}, {"grey": grey, "image": whole}):
            batch = next(iter(self.loader(batch_size=2, pipeline=pipeline)))
            self.assertEqual((batch["image"].shape, batch["grey"].shape), ((2, SIDE, SIDE, 3), (2, SIDE, SIDE, 1)))
        one = {"normalize": {"mean": [1], "std": [1]}}
        with self.assertRaisesRegex(precast.ConfigError, "pipeline.image"):
            self.loader(pipeline={"grey": grey, "image": [*whole, {"convert": {"type": "f32"}}, one]})

    def test_floats_are_the_normalised_pixels(self):
        plain, floats = (next(iter(self.loader(normalize=normalize)))["image"] for normalize in (False, True))
        mean = np.array([0.485, 0.456, 0.406], np.float32) * 255
        std = np.array([0.229, 0.224, 0.225], np.float32) * 255
        self.assertEqual(floats.dtype, "float32")
        np.testing.assert_allclose(np.asarray(floats), (np.asarray(plain).astype(np.float32) - mean) / std, atol=1e-5)
        planes = [{"center_crop": {"ratio": 1}}, {"convert": {"type": "u8"}}, {"layout": {"order": "nchw"}}]
        image = next(iter(self.loader(pipeline=planes)))["image"]
        np.testing.assert_array_equal(np.asarray(image).transpose(0, 2, 3, 1), np.asarray(plain))


    def test_normalize_and_layout_need_a_type(self):
        planes = {"layout": {"order": "nchw"}}
        for items in (["normalize"], [planes], ["normalize", planes]):
            with self.assertRaisesRegex(precast.ConfigError, "pipeline: .*convert"):
                self.loader(pipeline=items)
            with self.assertRaisesRegex(precast.ConfigError, "pipeline.image: .*convert"):
                self.loader(pipeline={"image": items})
            shape = (2, 3, SIDE, SIDE) if planes in items else (2, SIDE, SIDE, 3)
            for options in ({"pipeline": [{"convert": {"type": "f32"}}, *items]},
                            {"pipeline": items, "normalize": True}):
                image = next(iter(self.loader(batch_size=2, **options)))["image"]
                self.assertEqual((image.shape, image.dtype), (shape, "float32"))

    def test_normalize_needs_the_item_for_converted_images(self):
        for kind in ("f16", "u8"):
            for pipeline in ([{"convert": {"type": kind}}], {"image": ["center_crop", {"convert": {"type": kind}}]}):
                with self.assertRaisesRegex(precast.ConfigError, "normalize.*'image'.*convert"):
                    self.loader(pipeline=pipeline, normalize=True)
        half = [{"center_crop": {"ratio": 1}}, {"convert": {"type": "f16"}}, "normalize"]
        images = [np.asarray(next(iter(self.loader(pipeline=half, normalize=normalize)))["image"])
                  for normalize in (True, False)]
        self.assertEqual(images[0].dtype, np.float16)
        np.testing.assert_array_equal(*images)

    def test_options_may_be_of_numpy(self):
        mean, std = np.array([1, 2, 3], np.float32), np.array([4, 5, 6.5])
        crop = {"center_crop": {"ratio": np.float32(1)}}
        loader = self.loader(batch_size=np.int64(2), subset=np.int64(3), seed=np.uint8(1), drop_last=np.bool_(True),
                             pipeline=[crop, {"convert": {"type": "f32"}}, {"normalize": {"mean": mean, "std": std}}])
        self.assertEqual((len(loader), loader.samples), (1, 2))
        image = np.asarray(next(iter(loader))["image"])
        np.testing.assert_allclose(image[1], (pixels_of(1) - mean) / std, rtol=1e-5)
        path = self.path.with_name("types.beton")
        for kind in (np.float32, np.dtype("<f4")):
            with precast.Writer(path, {"box": {"ndarray": {"dtype": kind, "shape": np.array([2])}}}, 1) as writer:
                writer.add(box=np.zeros(2, np.float32))
            self.assertEqual((precast.Dataset(path).fields[0].dtype, precast.Dataset(path).fields[0].shape),
                             ("<f4", (2,)))


class LifetimeTest(FileTest):
    def test_held_batches_are_not_overwritten(self):
        loader = self.loader(batch_size=4, batches_ahead=1, workers=2)
        held = [np.asarray(batch["image"]) for batch in loader]
        ids = list(range(0, SAMPLES, 4))
        del loader
        gc.collect()
        for first, array in zip(ids, held, strict=True):
            np.testing.assert_array_equal(array[1], pixels_of(first + 1))

    def test_memory_returns_when_the_last_view_is_gone(self):
        loader = self.loader(batch_size=4, batches_ahead=1)
        place = None
        places = set()
        for _ in range(3):
            for batch in loader:
                places.add(batch[0].__array_interface__["data"][0])
                del batch
        self.assertLessEqual(len(places), 3)
        batches = iter(loader)
        first = next(batches)
        view = memoryview(first["image"].buffer)[1:]
        place, content = first[0].__array_interface__["data"][0], bytes(view)
        del first
        for batch in batches:
            self.assertNotEqual(batch[0].__array_interface__["data"][0], place)
        self.assertEqual(bytes(view), content)

    def test_ten_thousand_loaders_need_constant_memory(self):
        def cycle(number):
            loader = self.loader(batch_size=SAMPLES, workers=1, batches_ahead=1)
            batches = iter(loader)
            if number % 100 == 0:
                self.assertEqual(next(batches).samples, SAMPLES)

        for number in range(1000):
            cycle(number)
        before = resident_bytes()
        for number in range(1000, 10000):
            cycle(number)
        self.assertLess(resident_bytes() - before, 8 << 20)


class OrderTest(FileTest):
    def test_epochs_follow_seed_and_number(self):
        def epochs(seed, workers):
            loader = self.loader(order="random", seed=seed, workers=workers,
                                 pipeline=["random_resized_crop", "horizontal_flip"])
            return [[hash_of(batch) for batch in loader] for _ in range(2)]

        once = epochs(3, 1)
        self.assertEqual(once, epochs(3, 2))
        self.assertNotEqual(once, epochs(4, 1))
        self.assertNotEqual(once[0], once[1])

    def test_ranks_share_an_epoch(self):
        def ids(distributed, **options):
            loader = self.loader(order="random", distributed=distributed, **options)
            return list(itertools.chain.from_iterable(batch.sample_ids for batch in loader))

        whole = ids((0, 1))
        self.assertEqual(sorted(whole), list(range(SAMPLES)))
        for rank in range(3):
            self.assertEqual(ids((rank, 3)), whole[rank::3])
        self.assertEqual(len(ids((1, 7), drop_last=True)), SAMPLES // 7 // 8 * 8)

    def test_options_choose_samples(self):
        loader = self.loader(subset="10:20", filter="label >= 14")
        self.assertEqual(next(iter(loader)).sample_ids, list(range(14, 20)))
        weights = [1.0] + [0.0] * (SAMPLES - 1)
        loader = self.loader(order={"weighted": {"weights": weights}})
        self.assertEqual(set(next(iter(loader)).sample_ids), {0})

    def test_image_size_changes_between_epochs(self):
        loader = self.loader()
        self.assertEqual(next(iter(loader))[0].shape[1:3], (SIDE, SIDE))
        loader.image_size = 8
        self.assertEqual(next(iter(loader))[0].shape[1:3], (8, 8))


class ResumeTest(FileTest):
    OPTIONS = {"order": "random", "seed": 5, "workers": 2, "pipeline": ["random_resized_crop", "horizontal_flip"]}

    def run_from(self, state, epochs):
        loader = self.loader(**self.OPTIONS)
        if state is not None:
            loader.load_state_dict(json.loads(json.dumps(state)))
        hashes, states = [], []
        while loader.epoch < epochs:
            for batch in loader:
                hashes.append(hash_of(batch))
                states.append(loader.state_dict())
            states[-1] = loader.state_dict()
        return hashes, states

    def test_a_resumed_loader_gives_the_same_batches(self):
        hashes, states = self.run_from(None, 3)
        self.assertEqual(len(hashes), 24)
        for after in (0, 2, 6, 7, 8, 12, 22):
            resumed, _ = self.run_from(states[after], 3)
            self.assertEqual(resumed, hashes[after + 1:], states[after])

    def test_another_loader_is_refused(self):
        state = self.loader(**self.OPTIONS).state_dict()
        for change in ({"seed": 6}, {"batch_size": 9}, {"order": "sequential"}, {"distributed": (0, 2)},
                       {"subset": "8"}):
            with self.assertRaises(precast.ConfigError):
                self.loader(**{**self.OPTIONS, **change}).load_state_dict(state)
        other = self.path.with_name("other.beton")
        write_images(other, SAMPLES - 1)
        with self.assertRaisesRegex(precast.ConfigError, "fingerprint"):
            self.loader(path=other, **self.OPTIONS).load_state_dict(state)

    def test_a_list_of_samples_may_be_moved_but_not_changed(self):
        def listed(name, text):
            path = self.path.with_name(name)
            path.write_text(text)
            return self.loader(**self.OPTIONS, subset=f"@{path}")

        state = listed("list.txt", "0:8\n9\n").state_dict()
        listed("moved.txt", "# the same\n9\n0:8\n").load_state_dict(json.loads(json.dumps(state)))
        for text in ("0:9\n", "0:8\n"):
            with self.assertRaisesRegex(precast.ConfigError, "subset"):
                listed("list.txt", text).load_state_dict(state)

    def test_an_epoch_that_was_left_is_not_repeated(self):
        loader = self.loader(order="random")
        first = next(iter(loader)).sample_ids
        self.assertEqual((loader.epoch, loader.state_dict()["batch"]), (0, 1))
        self.assertNotEqual(next(iter(loader)).sample_ids, first)
        self.assertEqual(loader.epoch, 1)
        old, new = iter(loader), iter(loader)
        next(new)
        with self.assertRaises(RuntimeError):
            next(old)

    def test_an_epoch_that_cannot_begin_is_not_skipped(self):
        loader = self.loader()
        next(iter(loader))
        for _ in range(2):
            loader.image_size = -1
            with self.assertRaises(precast.ConfigError):
                iter(loader)
            self.assertEqual((loader.epoch, loader.state_dict()["batch"]), (0, 1))
        loader.image_size = SIDE
        self.assertEqual(next(iter(loader)).sample_ids[0], 0)
        self.assertEqual(loader.epoch, 1)


class ErrorTest(FileTest):
    def test_wrong_options(self):
        with self.assertRaises(precast.ConfigError) as raised:
            self.loader(batch_size=0, pipeline=["no_such"], no_such_option=1)
        for name in ("batch_size", "'no_such'", "no_such_option"):
            self.assertIn(name, str(raised.exception))
        # The options are not parsed from YAML text, so the message must not contain a line and a column.
        self.assertNotRegex(str(raised.exception), r":\d+:")
        self.assertIsInstance(raised.exception, ValueError)
        with self.assertRaises(precast.ConfigError):
            self.loader(distributed=(2, 2))

    def test_options_without_effect(self):
        for options in ({"cache_mb": 64}, {"shuffle_window_mb": 64}, {"shuffle_window_mb": 64, "order": "random"},
                        {"label_field": "label"}, {"label_field": "label", "order": "random"}):
            with self.assertRaisesRegex(precast.ConfigError, next(iter(options))):
                self.loader(**options)
        with self.assertRaisesRegex(precast.ConfigError, "cache_mb.*in_memory"):
            self.loader(cache_mb=64)
        for in_memory in (1, 2):
            with self.assertRaisesRegex(precast.ConfigError, "direct_io"):
                precast.Dataset(self.path, in_memory=in_memory, direct_io=True)
        dataset = precast.Dataset(self.path, in_memory=0)
        loader = self.loader(path=dataset, cache_mb=64, order="quasi_random", shuffle_window_mb=64)
        self.assertEqual(sum(batch.samples for batch in loader), SAMPLES)

    def test_options_of_the_dataset_are_given_to_dataset(self):
        for options in ({"in_memory": 0, "cache_mb": 64}, {"direct_io": True}, {"fields": ["boxes=10:1"]},
                        {"cache_dir": "."}, {"http_retry_s": 1}):
            name, value = next(iter(options.items()))
            with self.assertRaises(precast.ConfigError) as raised:
                self.loader(**options)
            self.assertIn(f"Dataset(path, {name}={value!r})", str(raised.exception))

    def test_rank_and_world_are_given_as_distributed(self):
        for options in ({"rank": 1}, {"world": 2}, {"rank": 1, "world": 2}):
            with self.assertRaisesRegex(precast.ConfigError, f"{next(iter(options))}.*distributed"):
                self.loader(**options)

    def test_values_that_are_no_options_name_their_option(self):
        for name, value in (("subset", object()), ("pipeline", ["center_crop", {1, 2}]), ("filter", float)):
            with self.assertRaisesRegex(precast.ConfigError, f"^{name}: "):
                self.loader(**{name: value})

    def test_images_are_not_converted_to_integers(self):
        for kind in ("i32", "i64", "f64"):
            with self.assertRaisesRegex(precast.ConfigError, "pipeline: image: convert"):
                self.loader(pipeline=[{"convert": {"type": kind}}])

    def test_files(self):
        with self.assertRaisesRegex(precast.IoError, "missing.beton") as raised:
            precast.Loader("missing.beton", 8)
        self.assertIsInstance(raised.exception, OSError)
        damaged = self.path.with_name("damaged.beton")
        damaged.write_bytes(self.path.read_bytes()[:1000])
        with self.assertRaisesRegex(precast.DataError, str(damaged)):
            precast.Dataset(damaged)

    def test_a_damaged_sample_is_named(self):
        damaged = self.path.with_name("flipped.beton")
        content = bytearray(self.path.read_bytes())
        content[content.index(pixels_of(21).tobytes())] ^= 1
        damaged.write_bytes(content)
        loader = self.loader(path=damaged, verify=True)
        batches = iter(loader)
        self.assertEqual([next(batches).sample_ids[0] for _ in range(2)], [0, 8])
        with self.assertRaisesRegex(precast.DataError, f"{damaged}.*sample 21"):
            next(batches)
        loader = self.loader(path=damaged, verify=True, on_corrupt="replace")
        self.assertEqual([batch.sample_ids for batch in loader][2][5], 22)
        self.assertEqual(loader.statistics()["replaced"][0]["sample"], 21)

    def test_a_closed_loader_is_an_error(self):
        loader = self.loader()
        batches = iter(loader)
        batch = next(batches)
        loader.close()
        with self.assertRaises(RuntimeError):
            next(batches)
        with self.assertRaises(precast.ConfigError):
            iter(loader)
        np.testing.assert_array_equal(np.asarray(batch[0])[3], pixels_of(3))


class ProcessTest(FileTest):
    def test_interrupts_end_a_wait(self):
        script = textwrap.dedent(f"""
            import sys, precast
            loader = precast.Loader({str(self.path)!r}, 8)
            try:
                print("waits", flush=True)
                next(iter(loader))
            except KeyboardInterrupt:
                print("interrupted", flush=True)
        """)
        # The failpoint delays the first sample by a minute.
        environment = {**os.environ, "PRECAST_FAILPOINTS": "loader.before_sample=sleep:60000@1"}
        with subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as process:
            self.assertEqual(process.stdout.readline(), "waits\n")
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            self.assertEqual(process.stdout.readline(), "interrupted\n")
            self.assertLess(time.monotonic() - start, 30)
            process.kill()

    def test_a_forked_process_is_refused(self):
        loader = self.loader()
        batches = iter(loader)
        batch = next(batches)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                next(batches)
            except precast.ResourceError:
                code = 0
            # The loader's threads do not exist in this process, so nothing may wait for them.
            del loader, batches, batch
            gc.collect()
            os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(sum(batch.samples for batch in batches), SAMPLES - 8)

    def test_a_forked_process_can_make_its_own(self):
        next(iter(self.loader()))
        child = os.fork()
        if child == 0:
            os._exit(0 if sum(batch.samples for batch in self.loader()) == SAMPLES else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_loaders_are_not_pickled(self):
        loader = self.loader()
        for value in (loader, loader.dataset):
            with self.assertRaises(TypeError):
                pickle.dumps(value)

    def test_the_gil_is_free_during_a_wait(self):
        loader = self.loader(batch_size=SAMPLES, image_size=1024, workers=1)
        turns, done = 0, threading.Event()

        def read():
            next(iter(loader))
            done.set()

        thread = threading.Thread(target=read)
        thread.start()
        while not done.is_set():
            turns += 1
        thread.join()
        self.assertGreater(turns, 1000)

    def test_a_program_may_end_during_an_epoch(self):
        script = f"import precast\nfor batch in precast.Loader({str(self.path)!r}, 2, workers=2): break"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class FieldTest(FileTest):
    FIELDS = {"image": {"image": {"mode": "raw"}}, "label": "int", "weight": "float", "text": "bytes", "meta": "json",
              "box": {"ndarray": {"dtype": "<f4", "shape": [2, 2]}}, "code": {"tensor": {"dtype": "<f2", "shape": [3]}},
              "depth": {"pixels": {"dtype": "<u2", "channels": 1}}, "words": {"ragged": {"dtype": "<i4", "dims": 1}}}

    def sample(self, number):
        random = np.random.default_rng(number)
        return {"image": pixels_of(number), "label": number - 2, "weight": number / 4, "text": b"abc"[:number % 4],
                "meta": {"number": number, "name": "\u00e9\U0001F600"}, "box": random.random((2, 2), np.float32),
                "code": random.random(3).astype(np.float16), "depth": random.integers(0, 65536, (3, 4), np.uint16),
                "words": np.arange(number % 5, dtype=np.int32)}

    def write(self):
        path = self.path.with_name("all.beton")
        with precast.Writer(path, self.FIELDS, 10) as writer:
            for number in range(10):
                # The writer copies an array that is not in C order.
                sample = self.sample(number)
                sample["box"] = np.asfortranarray(sample["box"])
                writer.add(sample)
        return path

    def test_stored_values(self):
        dataset = precast.Dataset(self.write())
        self.assertEqual(len(dataset), 10)
        self.assertEqual([field.type for field in dataset.fields],
                         ["image", "int", "float", "bytes", "json", "ndarray", "tensor", "pixels", "ragged"])
        self.assertTrue(dataset.checksums)
        for number, stored in enumerate(dataset):
            for name, value in self.sample(number).items():
                if isinstance(value, np.ndarray):
                    np.testing.assert_array_equal(np.asarray(stored[name]).reshape(value.shape), value)
                else:
                    self.assertEqual(json.loads(stored[name]) if name == "meta" else stored[name], value)
        self.assertEqual(dataset.read(np.int64(3), np.int64(1)), 1)
        for sample, field, wrong in ((10, 0, 10), (-1, 0, -1), (0, 9, 9), (0, -1, -1)):
            with self.assertRaisesRegex(IndexError, rf"all\.beton.* {wrong}$"):
                dataset.read(sample, field)
        with self.assertRaises(KeyError):
            dataset.read(0, "no_such")

    def test_batches_of_every_kind(self):
        pipeline = {"image": [{"center_crop": {"ratio": 1}}], "label": None, "weight": None, "text": None, "meta": None,
                    "box": None, "code": None, "depth": None, "words": None, "ids": "sample_id"}
        loader = self.loader(path=self.write(), pipeline=pipeline, batch_size=10)
        batch = next(iter(loader))
        values = {tensor.name: np.asarray(tensor) for tensor in batch}
        self.assertEqual(batch.names, loader.outputs)
        for number in range(10):
            sample = self.sample(number)
            np.testing.assert_array_equal(values["image"][number], sample["image"])
            self.assertEqual((values["label"][number], values["weight"][number]), (sample["label"], sample["weight"]))
            text = values["text"][number][:values["text.lengths"][number]].tobytes()
            self.assertEqual(text, sample["text"])
            meta = values["meta"][number][:values["meta.lengths"][number]].tobytes()
            self.assertEqual(json.loads(meta), sample["meta"])
            np.testing.assert_array_equal(values["box"][number], sample["box"])
            np.testing.assert_array_equal(values["code"][number], sample["code"])
            np.testing.assert_array_equal(values["depth"][number].reshape(3, 4), sample["depth"])
            np.testing.assert_array_equal(values["words"][number][:values["words.extents"][number][0]], sample["words"])
            self.assertEqual(values["ids"][number], number)

    def test_writer_errors(self):
        path = self.path.with_name("wrong.beton")
        with self.assertRaisesRegex(ZeroDivisionError, ""), precast.Writer(path, {"label": "int"}, 2) as writer:
            writer.add([1])
            _ = 1 / 0
        self.assertFalse(path.exists())
        with precast.Writer(path, {"label": "int", "image": "image"}, 4) as writer:
            with self.assertRaisesRegex(precast.DataError, "sample 0, field 'image'"):
                writer.add(label=1, image=b"no image")
            with self.assertRaises(precast.ConfigError):
                writer.add(label=1)
            with self.assertRaises(precast.ConfigError):
                writer.add([1])
            with self.assertRaises(TypeError):
                writer.add([1, object()])
            writer.add([1, pixels_of(0)])
        self.assertEqual(len(precast.Dataset(path)), 1)
        for fields in ({"label": "no_such"}, {"box": "ndarray"}, {"label": ["int"]}, {}):
            with self.assertRaises(precast.ConfigError):
                precast.Writer(path, fields, 1)

    def test_values_are_given_in_one_way(self):
        path = self.path.with_name("twice.beton")
        with precast.Writer(path, {"label": "int", "weight": "float"}, 2) as writer:
            for sample, values in (([1, 2], {"label": 3}), ([1], {"weight": 3}), ((), {"label": 1, "weight": 2})):
                with self.assertRaisesRegex(precast.ConfigError, f"{path}.*{', '.join(values)}"):
                    writer.add(sample, **values)
            writer.add([1, 2])
            writer.add({"label": 1}, weight=2)
        self.assertEqual(list(precast.Dataset(path)), [{"label": 1, "weight": 2}] * 2)

    def test_a_finished_writer_says_so(self):
        path = self.path.with_name("finished.beton")
        writer = precast.Writer(path, {"label": "int"}, 2)
        writer.add([1])
        writer.finish()
        for call in (lambda: writer.add([1]), writer.finish):
            with self.assertRaisesRegex(precast.ConfigError, f"{path}.*finished"):
                call()
        writer.close()
        self.assertEqual(len(precast.Dataset(path)), 1)

    def test_image_options_without_effect(self):
        path = self.path.with_name("unread.beton")
        for options, place in (({"mode": "raw", "quality": 80}, "image.quality"),
                               ({"mode": "raw", "passthrough": True}, "image.passthrough"),
                               ({"compress_probability": 0.5}, "image.compress_probability"),
                               ({"smart_threshold": 9}, "image.smart_threshold")):
            with self.assertRaisesRegex(precast.ConfigError, f"{place}.*image.mode"):
                precast.Writer(path, {"image": {"image": options}}, 1)

    def test_an_empty_image_file_is_named_as_such(self):
        with precast.Writer(self.path.with_name("empty.beton"), {"image": "image"}, 1) as writer:
            with self.assertRaisesRegex(precast.DataError, "sample 0, field 'image'.*empty file"):
                writer.add(image=b"")
            writer.add(image=pixels_of(0))

    def test_classes_that_cannot_be_stored(self):
        path = self.path.with_name("classes.beton")
        for classes, place in ((["cat"], "classes"), ([], "classes"), ("cat", "classes"),
                               ({"lable": ["cat"]}, r"classes\.lable.*'label'"), ({"label": "cat"}, r"classes\.label"),
                               ({"label": [["cat"]]}, r"classes\.label"), ({"label": [None]}, r"classes\.label")):
            with self.assertRaisesRegex(precast.ConfigError, place):
                precast.Writer(path, {"label": "int"}, 1, classes=classes)
        with self.assertRaisesRegex(precast.ConfigError, "classes.*checksums"):
            precast.Writer(path, {"label": "int"}, 1, classes={"label": ["cat"]}, checksums=False)
        precast.Writer(path, {"label": "int"}, 1, classes={}, checksums=False).discard()

    def test_integers_beyond_64_bits_do_not_wrap(self):
        path = self.path.with_name("large.beton")
        with precast.Writer(path, {"label": "int", "weight": "float"}, 3) as writer:
            for number in (2**63, -2**63 - 1, np.uint64(2**64 - 1)):
                with self.assertRaisesRegex(precast.DataError, "sample 0, field 'label'"):
                    writer.add(label=number, weight=0)
            writer.add(label=2**63 - 1, weight=10**20)
            writer.add(label=-2**63, weight=np.uint64(2**64 - 1))
            writer.add(label=np.array(3), weight=np.array(1.5))
        self.assertEqual(list(precast.Dataset(path)), [{"label": 2**63 - 1, "weight": 1e20},
                                                       {"label": -2**63, "weight": 2.0**64},
                                                       {"label": 3, "weight": 1.5}])

    def test_arrays_of_times_and_text(self):
        path = self.path.with_name("times.beton")
        sample = {"time": np.array(["2020-01-01", "2021-02-03T04:05:06"], "<M8[ns]"),
                  "span": np.array([1, -2], "<m8[25s]"), "name": np.array(["ab", "\u00e4\u00f6\U0001F600"], "<U5")}
        fields = {name: {"ndarray": {"dtype": array.dtype.str, "shape": [2]}} for name, array in sample.items()}
        with precast.Writer(path, fields, 1) as writer:
            for wrong in (np.array([None, "a"]), np.array(["2020", "2021"], "<M8[D]")):
                with self.assertRaisesRegex((TypeError, precast.DataError), r"\|O|M8\[D\]"):
                    writer.add({**sample, "time": wrong})
            writer.add(sample)
        stored = precast.Dataset(path)[0]
        for name, array in sample.items():
            np.testing.assert_array_equal(np.asarray(stored[name]), array)

    def test_arrays_may_be_buffers(self):
        class Picture:
            """Like an image of Pillow: `data` contains the pixels, not their address."""
            mode = "RGB"

            def __init__(self, data, **more):
                self.__array_interface__ = {"version": 3, "shape": (8, 8, 3), "typestr": "|u1", "data": data, **more}

        path = self.path.with_name("pictures.beton")
        pixels = [bytes([first]) + bytes(range(191)) for first in (0, 7)]
        with precast.Writer(path, {"image": {"image": {"mode": "raw"}}}, 3) as writer:
            for content in pixels:
                writer.add(image=Picture(content))
            writer.add(image=Picture(bytearray(b"abc" + pixels[1] + b"d"), offset=3))
            with self.assertRaisesRegex(TypeError, "192.*191"):
                writer.add(image=Picture(pixels[0][1:]))
            other = Picture(pixels[0])
            for mode in ("YCbCr", "HSV"):
                other.mode = mode
                with self.assertRaisesRegex(precast.DataError, f"{path}.*sample 3, field 'image'.*RGB.*{mode}"):
                    writer.add(image=other)
        stored = [sample["image"].tobytes() for sample in precast.Dataset(path)]
        self.assertEqual(stored, [*pixels, pixels[1]])

    def test_pixels_are_u8(self):
        path = self.path.with_name("pixels.beton")
        with precast.Writer(path, {"image": {"image": {"mode": "raw"}}}, 2) as writer:
            for kind in (bool, np.int8):
                with self.assertRaisesRegex(precast.DataError, f"field 'image'.*{np.dtype(kind).str[1:]}"):
                    writer.add(image=np.zeros((8, 8, 3), kind))
            writer.add(image=np.zeros((8, 8, 3), np.uint8))
        self.assertEqual(len(precast.Dataset(path)), 1)

    def test_several_files_are_one_dataset(self):
        loader = self.loader(path=[self.path, self.path], batch_size=7)
        self.assertEqual(loader.samples, 2 * SAMPLES)
        self.assertEqual(loader.dataset.classes, {"label": CLASSES})

    def test_files_of_ffcv(self):
        known = ROOT / "tests/golden/beton"
        facts = json.loads((known / "expected.json").read_text())
        path = self.path.with_name("ffcv.beton")
        path.write_bytes(gzip.decompress((known / "scalars_only.beton.gz").read_bytes()))
        dataset = precast.Dataset(path)
        self.assertEqual(len(dataset), 50)
        self.assertIn("scalars_only", facts)
        loader = self.loader(path=path, pipeline=None, batch_size=50)
        batch = next(iter(loader))
        for tensor, field in zip(batch, dataset.fields, strict=True):
            self.assertEqual(np.asarray(tensor).tolist(), [dataset.read(i, field.name) for i in range(50)])


if __name__ == "__main__":
    unittest.main()
