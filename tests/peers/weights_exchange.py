#!/usr/bin/env python3
"""Loads precast's weights in Python and Python's weights in precast, with and without BlurPool.

    .venv-peers/bin/python tests/peers/weights_exchange.py [--precast build/bin/precast]

Each network computes the logits of the same images in both programs; they may differ by at most 1e-4 of the largest
logit. A network with BlurPool must reject the weights of one without it, and the other way round: in Python by
load_state_dict, in precast with exit code 4. The Python networks are those of docs/weights.md and, if timm is
installed, timm's. Exit code 77 (skipped) without torchvision.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
try:
    import numpy as np
    import torch
    import torchvision
except ImportError as error:
    print(f"skipped: {error}; tools/peers/setup creates .venv-peers with torchvision")
    sys.exit(77)
try:
    import timm
except ImportError:
    timm = None

CLASSES, SIDE = 10, 64
MOST_ERROR = 1e-4
# The code of docs/weights.md: torchvision's network, the network with BlurPool, and the model spec.
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/weights.md").read_text(), re.DOTALL)
PLAIN, BLURRED, SPEC = [block for block in BLOCKS if "final_weights.pt" in block]
precast = ROOT / "build/bin/precast"


def network(code):
    """The model that the code of a document creates, before it loads weights."""
    names = {}
    exec("\n".join(line for line in code.splitlines() if "load_state_dict" not in line), names)
    return names["model"]


def randomise(model):
    """Adds noise to biases, running statistics and some weights, because new batch norms are equal in all layers."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if name.endswith(("running_var", "running_mean")) or name.endswith(("bn1.weight", "bias")):
                tensor.add_(0.3 * torch.rand(tensor.shape, generator=generator))
    return model


class Exchange(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.pixels = np.random.default_rng(1).integers(0, 256, (12, SIDE, SIDE, 3), np.uint8)
        labels = np.arange(12) % CLASSES
        np.savez(cls.folder / "x.npz", image=cls.pixels, label=labels)
        cls.run_precast("write", cls.folder / "x.npz", cls.folder / "x.beton", "--image.mode", "raw")
        for name, blurpool in [("plain", 0), ("blurred", 1)]:
            cls.run_precast("train", *cls.keys(blurpool), f"--logging.run_id={name}", "--training.epochs=2",
                            "--training.batch_size=4", "--lr.lr=0.01", f"--resolution.min_res={SIDE}",
                            f"--resolution.max_res={SIDE}", f"--logging.folder={cls.folder}",
                            f"--data.train_dataset={cls.folder / 'x.beton'}")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def run_precast(cls, *args, code=0):
        done = subprocess.run([str(arg) for arg in (precast, *args)], capture_output=True, text=True, check=False)
        if done.returncode != code:
            raise AssertionError(f"precast {args}: exit code {done.returncode}: {done.stderr}")
        return done.stderr

    @classmethod
    def keys(cls, blurpool, arch="resnet18"):
        return [f"--model.arch={arch}", f"--training.use_blurpool={blurpool}",
                f"--data.val_dataset={cls.folder / 'x.beton'}", f"--validation.resolution={SIDE}",
                "--validation.lr_tta=0", "--training.device=cpu", "--pipeline.val=[center_crop: {ratio: 1}]"]

    def assert_same(self, model, file, *network):
        """Compares Python's logits with those of `precast predict`."""
        out = self.folder / "logits.npy"
        self.run_precast("predict", *self.keys(*network), f"--model.weights={file}", "-o", out)
        mean, std = (np.array(values, np.float64) * 255 for values in
                     [(0.485, 0.456, 0.406), (0.229, 0.224, 0.225)])
        images = torch.from_numpy(((self.pixels - mean) / std).astype(np.float32)).permute(0, 3, 1, 2)
        with torch.no_grad():
            expected = model.eval()(images).numpy()
        error = np.abs(np.load(out) - expected).max() / np.abs(expected).max()
        self.assertLessEqual(error, MOST_ERROR, file)

    def assert_refused(self, file, *network):
        stderr = self.run_precast("predict", *self.keys(*network), f"--model.weights={file}", "-o",
                                  self.folder / "none.npy", code=4)
        self.assertIn(str(file), stderr)

    def test_the_documents_networks_take_the_files_that_belong_to_them(self):
        for name, code, blurpool in [("plain", PLAIN, 0), ("blurred", BLURRED, 1)]:
            os.chdir(self.folder / name)
            names = {}
            exec(code, names)
            for file in ["final_weights.pt", "final_weights.safetensors"]:
                self.assert_same(names["model"], self.folder / name / file, blurpool)
                self.assert_refused(self.folder / name / file, 1 - blurpool)
            exec(SPEC, names)
            self.assertEqual((names["spec"]["blurpool"], names["spec"]["num_classes"]), (bool(blurpool), CLASSES))

    def test_other_networks_refuse_them(self):
        state = {name: torch.load(self.folder / name / "final_weights.pt") for name in ["plain", "blurred"]}
        for model, other in [(network(PLAIN), "blurred"), (network(BLURRED), "plain")]:
            with self.assertRaises(RuntimeError):
                model.load_state_dict(state[other])
        if timm is not None:
            timm.create_model("resnet18", num_classes=CLASSES).load_state_dict(state["plain"])
            for name, other in [("resnet18", "blurred"), ("resnetblur18", "blurred")]:
                with self.assertRaises(RuntimeError):
                    timm.create_model(name, num_classes=CLASSES).load_state_dict(state[other])

    def test_pythons_weights_give_its_logits(self):
        torch.manual_seed(1)
        for arch in ["resnet18", "resnet50"]:
            torchvisions = torchvision.models.get_model(arch, num_classes=CLASSES)
            models = {"torchvision": (randomise(torchvisions), 0)}
            if timm is not None:
                models["timm"] = (randomise(timm.create_model(arch, num_classes=CLASSES)), 0)
            names = {}
            exec(BLURRED.replace("resnet18", arch).rsplit("model.load_state_dict", 1)[0], names)
            row = torch.tensor([1.0, 2.0, 1.0])
            for module in names["model"].modules():
                if hasattr(module, "blur_filter"):
                    module.blur_filter.copy_((torch.outer(row, row) / 16).expand_as(module.blur_filter))
            models["ffcv"] = (randomise(names["model"]), 1)
            for name, (model, blurpool) in models.items():
                file = self.folder / f"{name}_{arch}.pt"
                torch.save(model.state_dict(), file)
                self.assert_same(model, file, blurpool, arch)
                self.assert_refused(file, 1 - blurpool, arch)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--precast", type=pathlib.Path, default=precast)
    options, rest = parser.parse_known_args()
    precast = options.precast.resolve()
    print(json.dumps({"torch": torch.__version__, "torchvision": torchvision.__version__,
                      "timm": timm.__version__ if timm else None}))
    unittest.main(argv=[sys.argv[0], *rest])
