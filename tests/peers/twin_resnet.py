#!/usr/bin/env python3
"""Checks that the twin's own ResNets equal torchvision's with the same seed, bit for bit.

    .venv-peers/bin/python tests/peers/twin_resnet.py

Compares the weights with their names and order, the state of the random generator afterwards, outputs and gradients.
Also compares the twin's interpolation and its reading of .npy files with numpy's, and checks how it reads recipes. Exit
code 77 (skipped) without torchvision.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/peers/torch_twin"))
sys.dont_write_bytecode = True
try:
    import numpy as np
    import torch
    import torchvision
except ImportError as error:
    print(f"skipped: {error}; tools/peers/setup creates .venv-peers with torchvision")
    sys.exit(77)

import recipe  # noqa: E402
import twin_train  # noqa: E402


def both(arch, classes=10):
    for make in [lambda: recipe.make_model(arch, classes, False),
                 lambda: torchvision.models.get_model(arch, weights=None, num_classes=classes)]:
        torch.manual_seed(0)
        yield make(), torch.rand(3)


class ResNets(unittest.TestCase):
    def test_weights_and_random_numbers_are_torchvisions(self):
        for arch in ["resnet18", "resnet34", "resnet50", "resnet101"]:
            (ours, after), (theirs, theirs_after) = both(arch)
            self.assertEqual(list(ours.state_dict()), list(theirs.state_dict()))
            for name, value in theirs.state_dict().items():
                self.assertTrue(torch.equal(ours.state_dict()[name], value), name)
            self.assertTrue(torch.equal(after, theirs_after))

    def test_outputs_and_gradients_are_torchvisions(self):
        for arch in ["resnet18", "resnet50"]:
            (ours, _), (theirs, _) = both(arch)
            images = torch.randn(2, 3, 64, 64)
            outputs = [model(images) for model in (ours, theirs)]
            self.assertTrue(torch.equal(*outputs))
            for output in outputs:
                output.sum().backward()
            for (name, value), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
                self.assertTrue(torch.equal(value.grad, other.grad), name)

    def test_blurpool_leaves_the_names_and_is_on_the_models_device(self):
        model = recipe.make_model("resnet50", 10, True)
        self.assertEqual(list(model.state_dict()), list(both("resnet50").__next__()[0].state_dict()))
        filters = [name for name, _ in model.named_buffers() if name.endswith("blur_filter")]
        self.assertEqual(len(filters), 6)  # three 3x3 convolutions of stride 2 and three downsamplings
        self.assertEqual({buffer.device.type for _, buffer in model.to("meta").named_buffers()}, {"meta"})


class Rates(unittest.TestCase):
    def test_are_numpys_to_the_last_bit(self):
        for epoch in range(16):
            ends = [float(np.interp(at, [0, 2, 16], [0.5e-4, 0.5, 0])) for at in (epoch, epoch + 1)]
            self.assertEqual(recipe.rates_of_epoch(epoch, 97, 0.5, 16, 2),
                             list(np.interp(np.arange(97), [0, 97], ends)))


class Files(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.file = pathlib.Path(scratch.name) / "a.npy"

    def test_arrays_are_numpys(self):
        array = np.arange(12, dtype="<i4").reshape(3, 4)
        np.save(self.file, array)
        self.assertTrue(np.array_equal(recipe.load_npy(self.file).numpy(), array))

    def test_another_file_is_an_error_that_names_it(self):
        for content in (b"", b"\x93NUMPX\x01\x00{", b"P6\n28 28\n255\n" + bytes(300)):
            self.file.write_bytes(content)
            with self.assertRaises(SystemExit) as raised:
                recipe.load_npy(self.file)
            self.assertIn(str(self.file), str(raised.exception))


class Recipes(unittest.TestCase):
    def test_a_schedule_that_the_twin_lacks_is_an_error(self):
        with tempfile.TemporaryDirectory() as scratch:
            file = pathlib.Path(scratch) / "r.json"
            for schedule in ({}, {"lr.lr_schedule_type": "cyclic"}):
                file.write_text(json.dumps({"config": {"lr.lr": 0.5, **schedule}}))
                self.assertEqual(twin_train.read_recipe(file)["lr"]["lr"], 0.5)
            for schedule in ("step", "poly"):
                file.write_text(json.dumps({"config": {"lr.lr": 0.5, "lr.lr_schedule_type": schedule}}))
                with self.assertRaises(SystemExit) as raised:
                    twin_train.read_recipe(file)
                for fact in ("lr.lr_schedule_type", schedule, str(file)):
                    self.assertIn(fact, str(raised.exception))

    def test_label_smoothing_that_is_left_out_is_the_default_of_ffcv_imagenet(self):
        args = argparse.Namespace(classes=10)
        for given, wanted in (({}, 0.1), ({"label_smoothing": 0}, 0)):
            config = {"model": {"arch": "resnet18"}, "training": given}
            training = twin_train.Training(config, args, torch.device("cpu"))
            self.assertEqual(training.loss_of.label_smoothing, wanted)


if __name__ == "__main__":
    unittest.main()
