#!/usr/bin/env python3
"""Compares 20 steps of configs/cifar10/rn9.yaml with those of tools/peers/torch_twin/twin_cifar.py.

    .venv-peers/bin/python tests/peers/twin_cifar.py --precast build/bin/precast

Both start from the weights that precast drew and use the same batches of 16 images, without
augmentation, at a learning rate of 3e-4. The losses may differ by at most 1e-4 of their values. The initial weights
must equal those that torch draws after torch.manual_seed. Exit code 77 (skipped) without numpy or torch.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TWIN = ROOT / "tools/peers/torch_twin"
sys.path.insert(0, str(TWIN))
sys.dont_write_bytecode = True
try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"skipped: {error}; tools/peers/setup creates .venv-peers with numpy and torch")
    sys.exit(77)

import twin_cifar  # noqa: E402

import recipe  # noqa: E402

STEPS, BATCH, RATE, SEED = 20, 16, 3e-4, 5
PLAIN = "[whole_image, normalize: {mean: [125.307, 122.961, 113.8575], std: [51.5865, 50.847, 51.255]}]"


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{words} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


class Steps(unittest.TestCase):
    precast = ROOT / "build/bin/precast"

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        draw = np.random.default_rng(0)
        count = STEPS * BATCH
        np.savez(self.folder / "d.npz",
                 image=draw.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8),
                 label=np.arange(count) % 10)
        run(self.precast, "write", self.folder / "d.npz", self.folder / "d.beton",
            "--image.mode", "raw")

    def train(self, name, epochs):
        """Trains the recipe on the images of d.beton, in the order of the file. @return the run folder"""
        data = self.folder / "d.beton"
        run(self.precast, "train", ROOT / "configs/cifar10/rn9.yaml", f"--data.train_dataset={data}",
            f"--data.val_dataset={data}", "--data.order=sequential", f"--pipeline.train={PLAIN}",
            f"--training.epochs={epochs}", f"--training.batch_size={BATCH}",
            f"--training.seed={SEED}", "--training.device=cpu", f"--lr.lr={RATE}",
            "--lr.lr_schedule_type=constant", "--lr.warmup_epochs=0", "--warn-unread",
            "--logging.every=1", "--checkpoint.every_epochs=0", f"--logging.folder={self.folder}",
            f"--logging.run_id={name}")
        return self.folder / name

    def test_losses_are_the_twins(self):
        weights = self.train("start", 0) / "final_weights.safetensors"
        torch.manual_seed(SEED)
        drawn, ours = twin_cifar.make_model(10).state_dict(), recipe.load_weights(weights)
        self.assertEqual(list(drawn), list(ours))
        for name, value in drawn.items():
            self.assertTrue(torch.equal(value, ours[name]), name)
        theirs = json.loads(run(sys.executable, TWIN / "twin_cifar.py", self.folder / "d.npz",
                                "--steps", STEPS, "--batch", BATCH, "--lr", RATE,
                                "--weights", weights))["losses"]
        with open(self.train("run", 1) / "log") as log:
            rows = [json.loads(line) for line in log]
        losses = [row["loss"] for row in rows if "epoch_step" in row]
        self.assertEqual(len(losses), STEPS)
        self.assertAlmostEqual(losses[0], theirs[0], 5)
        worst = max(abs(a - b) / b for a, b in zip(losses, theirs, strict=True))
        print(f"losses {losses[0]:.6f} to {losses[-1]:.6f}; largest relative difference {worst:.2g}")
        self.assertLess(worst, 1e-4)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--precast", default=Steps.precast)
    known, rest = options.parse_known_args()
    Steps.precast = known.precast
    unittest.main(argv=[sys.argv[0], *rest])
