"""Trains on the batches of examples/producers, stops and resumes: the weights must equal those of an uninterrupted run.

usage: producers_test.py BUILD_FOLDER. Exits with 77 (skipped) without NumPy; skips the tests with ZMQ without pyzmq.
"""
import importlib.util
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1))
SAMPLES, BATCH, EPOCHS, SIDE_PX = 40, 8, 2, 32
BATCHES = SAMPLES // BATCH
# Debian's python3-zmq, for a virtual environment of Debian's Python.
DEBIAN = pathlib.Path("/usr/lib/python3/dist-packages")
HAS_ZMQ = importlib.util.find_spec("zmq") is not None or (DEBIAN / "zmq").is_dir()

if importlib.util.find_spec("numpy") is None:
    sys.exit(77)
import numpy as np  # noqa: E402 imported after the check above


class ProducersTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        random = np.random.default_rng(0)
        np.savez(self.folder / "data.npz", image=random.integers(0, 256, (SAMPLES, SIDE_PX, SIDE_PX, 3), np.uint8),
                 label=np.arange(SAMPLES) % 3)
        self.precast("write", "data.npz", "data.beton", "--image.mode=raw")
        made = self.precast("preview", "data.beton", "--image-size", SIDE_PX, "--ratio", 1, "--positions", "all",
                            "-o", "images.npy", "--json")
        (self.folder / "samples.json").write_text(made.stdout)
        layers = "[conv: {out: 8, stride: 2}, relu, global_avg_pool, flatten, linear]"
        (self.folder / "r.yaml").write_text(
            f"data: {{val_dataset: data.beton, batches_per_epoch: {BATCHES}, producer_timeout_s: 60}}\n"
            f"model: {{arch: layers, params: {{layers: {layers}}}}}\n"
            f"resolution: {{min_res: {SIDE_PX}, max_res: {SIDE_PX}}}\nvalidation: {{resolution: {SIDE_PX}}}\n"
            f"training: {{batch_size: {BATCH}, epochs: {EPOCHS}, device: cpu}}\nlr: {{lr: 0.01}}\n")

    def precast(self, *arguments, code=0, **environment):
        done = subprocess.run([BUILD / "bin/precast", *map(str, arguments)], cwd=self.folder, text=True,
                              capture_output=True, env={**os.environ, **environment}, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def producer(self, script, place, *more):
        """Starts an unmodified example with the arrays of this test."""
        command = [sys.executable, "-B", ROOT / "examples/producers" / script, place, "images.npy", "samples.json",
                   BATCH, EPOCHS, *more]
        paths = [path for path in (*sys.path, str(DEBIAN)) if path]
        process = subprocess.Popen(list(map(str, command)), cwd=self.folder, stderr=subprocess.PIPE,
                                   env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def train(self, run, address, *more, **how):
        keys = [f"--data.train_dataset={address}", f"--logging.run_id={run}"]
        return self.precast("train", "r.yaml", *keys, *more, **how)

    def weights(self, run):
        return (self.folder / "runs" / run / "final_weights.safetensors").read_bytes()

    def check(self, script, place, address, more=(), at_end=()):
        """Kills one run and stops another, and resumes both: their weights must equal those of an uninterrupted run.

        more: the producer's further arguments when the killed run is resumed. at_end: the same for the stopped run."""
        producer = self.producer(script, place)
        self.train("whole", address)
        self.assertEqual(producer.wait(60), 0)
        killed = self.producer(script, place)
        self.train("resumed", address, "--checkpoint.every_steps=2", code=-9,
                   PRECAST_FAILPOINTS=f"trainer.before_step=kill@{BATCHES + 3}")
        killed.kill()
        killed.wait()
        resumed = self.producer(script, place, *more)
        self.train("resumed", address, "--checkpoint.every_steps=2", "--checkpoint.resume=auto")
        self.assertEqual(resumed.wait(60), 0)
        self.assertEqual(self.weights("resumed"), self.weights("whole"))
        # This run is stopped during the evaluation after the first epoch.
        stopped = self.producer(script, place)
        self.train("stopped", address, f"--validation.batch_size={BATCH}", code=85,
                   PRECAST_FAILPOINTS="evaluator.before_batch=term@1")
        stopped.kill()
        stopped.wait()
        last = self.producer(script, place, *at_end)
        self.train("stopped", address, f"--validation.batch_size={BATCH}", "--checkpoint.resume=auto")
        self.assertEqual(last.wait(60), 0)
        self.assertEqual(self.weights("stopped"), self.weights("whole"))

    def test_ring(self):
        name = f"producers-{os.getpid()}"
        self.check("ring_producer.py", name, f"ring://{name}")

    @unittest.skipUnless(HAS_ZMQ, "needs pyzmq")
    def test_zmq(self):
        path = self.folder / "socket"
        # The resumed run needs batch 1 of epoch 1, or an earlier batch if it was killed before its last checkpoint was
        # complete. The producer starts at a still earlier batch.
        self.check("zmq_producer.py", f"ipc://{path}", f"zmq://{path}", more=(0, 2), at_end=(0, BATCHES))

    @unittest.skipUnless(HAS_ZMQ, "needs pyzmq")
    def test_bench_step(self):
        path = self.folder / "socket"
        self.producer("zmq_producer.py", f"ipc://{path}")
        done = self.precast("bench", "step", "--model", "resnet18", "--image-size", SIDE_PX, "--batch-size", BATCH,
                            "--data", f"zmq://{path}", "--steps", 2, "--warmup", 1, "--runs", 2, "--device", "cpu",
                            "--json")
        self.assertGreater(json.loads(done.stdout)["images_per_second"], 0)

    @unittest.skipUnless(HAS_ZMQ, "needs pyzmq")
    def test_classes_of_masks_are_checked(self):
        sys.path.append(str(DEBIAN))
        import zmq
        images = np.zeros((BATCH, SIDE_PX, SIDE_PX, 3), np.uint8)
        masks = np.full((BATCH, SIDE_PX, SIDE_PX), 2, np.uint8)
        np.savez(self.folder / "masks.npz", image=images, mask=masks)
        self.precast("write", "masks.npz", "masks.beton", "--image.mode=raw")
        (self.folder / "m.yaml").write_text(
            f"data: {{val_dataset: masks.beton, inputs: image, targets: mask, batches_per_epoch: 2}}\n"
            f"model: {{arch: layers, num_classes: 3, params: {{layers: [conv: {{out: 0}}]}}}}\n"
            f"pipeline: {{val: {{image: [center_crop: {{ratio: 1}}], mask: {{geometry_of: image}}}}}}\n"
            f"resolution: {{min_res: {SIDE_PX}, max_res: {SIDE_PX}}}\nvalidation: {{resolution: {SIDE_PX}}}\n"
            f"training: {{batch_size: {BATCH}, epochs: 1, device: cpu, loss: pixel_cross_entropy}}\n")
        with zmq.Context() as context, context.socket(zmq.PUSH) as pushes:
            pushes.linger, pushes.sndtimeo = 0, 300_000
            pushes.bind(f"ipc://{self.folder / 'socket'}")
            run = subprocess.Popen([BUILD / "bin/precast", "train", "m.yaml", "--logging.run_id=masks",
                                    f"--data.train_dataset=zmq://{self.folder / 'socket'}"],
                                   cwd=self.folder, stderr=subprocess.PIPE, text=True)
            self.addCleanup(run.kill)
            for batch, value in ((0, 255), (1, 3)):  # 255: loss.ignore_index
                masks[-1, 0, 0] = value
                outputs = {"image": images, "mask": masks}
                header = {"epoch": 0, "batch": batch, "outputs": [
                    {"name": name, "dtype": a.dtype.str, "shape": a.shape} for name, a in outputs.items()]}
                text = json.dumps(header).encode()
                data = [array.tobytes() for array in outputs.values()]
                pushes.send(b"".join([struct.pack("<8sII", b"PCSTBTCH", 1, len(text)), text, *data]))
            errors = run.communicate(timeout=300)[1]
        self.assertEqual(run.returncode, 10, errors)
        for fact in ("message 2", "'mask'", "[0, 3)", "255", f"got 3 in sample {BATCH - 1}"):
            self.assertIn(fact, errors)

    def test_producers_are_short(self):
        for name, most in (("ring_producer.py", 80), ("zmq_producer.py", 40)):
            lines = (ROOT / "examples/producers" / name).read_text().splitlines()
            self.assertLessEqual(len(lines), most)


if __name__ == "__main__":
    unittest.main()
