#!/usr/bin/env python3
"""Compares precast.Loader with FFCV's Loader and, in torchvision's training loop, with torch's DataLoader.

    .venv-peers/bin/python tests/peers/precast_loader.py LIBRARY

LIBRARY is libprecast_data_c.so. Needs the Python of .venv-peers, which tools/peers/setup creates. In a Python without
FFCV or torchvision, the exit code is 77 (skipped).
"""
import os
import pathlib
import statistics
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
try:
    import numpy as np
    import torch
    import torchvision.transforms.v2 as transforms
    from ffcv.fields import basics, rgb_image
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import ToTensor
    from ffcv.writer import DatasetWriter
except ImportError as error:
    print(f"skipped: {error}; tools/peers/setup creates .venv-peers with FFCV and torchvision")
    sys.exit(SKIPPED)
if len(sys.argv) < 2:
    sys.exit(__doc__)
os.environ["PRECAST_DATA_LIBRARY"] = str(pathlib.Path(sys.argv.pop(1)).resolve())
sys.path.insert(0, str(ROOT / "data/python"))
import precast  # noqa: E402

SAMPLES, BATCH = 48, 16


def picture(random, height, width):
    """A gradient with some noise, which JPEG compression changes little."""
    y, x = np.mgrid[0:height, 0:width]
    colours = np.stack([x * 255 // (width - 1), y * 255 // (height - 1), (x + y) % 256], axis=2)
    return np.clip(colours + random.integers(-9, 10, colours.shape), 0, 255).astype(np.uint8)


class Pictures:
    """Images of different sizes with labels, in the form that FFCV's writer expects."""

    def __init__(self):
        random = np.random.default_rng(0)
        self.images = [picture(random, *random.integers(40, 200, 2)) for _ in range(SAMPLES)]

    def __len__(self):
        return SAMPLES

    def __getitem__(self, number):
        return self.images[number], number * 7 % 10


class BesideFfcv(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def ffcv_epoch(self, path, side):
        decoder = rgb_image.CenterCropRGBImageDecoder((side, side), ratio=0.875)
        loader = Loader(str(path), batch_size=BATCH, num_workers=1, order=OrderOption.SEQUENTIAL, drop_last=False,
                        pipelines={"image": [decoder, ToTensor()], "label": [basics.IntDecoder(), ToTensor()]})
        return [(image.numpy().copy(), label.numpy().ravel().copy()) for image, label in loader]

    def compare(self, path):
        for side in (64, 160):
            ours = precast.Loader(path, BATCH, image_size=side, pipeline=[{"center_crop": {"ratio": 0.875}}],
                                  convert=torch.from_dlpack)
            theirs = self.ffcv_epoch(path, side)
            self.assertEqual(len(ours), len(theirs))
            for (image, label), (their_image, their_label) in zip(ours, theirs, strict=True):
                self.assertEqual(label.tolist(), their_label.tolist())
                difference = np.abs(image.numpy().astype(int) - their_image.astype(int))
                self.assertLessEqual(difference.max(), 1)

    def test_files_of_both_writers(self):
        pictures = Pictures()
        for mode in ("raw", "jpg"):
            theirs = self.folder / f"ffcv-{mode}.beton"
            DatasetWriter(str(theirs), {"image": rgb_image.RGBImageField(write_mode=mode),
                                        "label": basics.IntField()}, num_workers=1).from_indexed_dataset(pictures)
            self.compare(theirs)
            own = self.folder / f"precast-{mode}.beton"
            with precast.Writer(own, {"image": {"image": {"mode": mode}}, "label": "int"}, SAMPLES) as writer:
                for number in range(SAMPLES):
                    writer.add(pictures[number])
            self.compare(own)

    def test_orders_have_ffcvs_properties(self):
        path = self.folder / "numbers.beton"
        with precast.Writer(path, {"label": "int"}, SAMPLES) as writer:
            for number in range(SAMPLES):
                writer.add([number])

        def epochs(**options):
            loader = precast.Loader(path, BATCH, convert=torch.from_dlpack, **options)
            return [torch.cat([label for label, in loader]).tolist() for _ in range(2)]

        def ffcv_epochs(order):
            loader = Loader(str(path), batch_size=BATCH, num_workers=1, order=order, seed=1, drop_last=False,
                            pipelines={"label": [basics.IntDecoder(), ToTensor()]})
            return [torch.cat([label.clone() for label, in loader]).ravel().tolist() for _ in range(2)]

        self.assertEqual(epochs(order="sequential"), ffcv_epochs(OrderOption.SEQUENTIAL))
        for first, second in (epochs(order="random"), ffcv_epochs(OrderOption.RANDOM)):
            self.assertEqual(sorted(first), list(range(SAMPLES)))
            self.assertEqual(sorted(second), list(range(SAMPLES)))
            self.assertNotEqual(first, second)
        ranks = [epochs(order="random", distributed=(rank, 2))[0] for rank in range(2)]
        self.assertEqual(sorted(ranks[0] + ranks[1]), list(range(SAMPLES)))


def blobs(samples, seed):
    """Noise with a bright spot, whose half (upper or lower) and channel are the class. [samples, 16, 16, 3] uint8"""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, samples)
    images = random.integers(0, 140, (samples, 16, 16, 3))
    for image, label in zip(images, labels, strict=True):
        row, column = 8 * (label // 2) + random.integers(0, 5), 4 + random.integers(0, 5)
        image[row:row + 3, column:column + 3, label % 2] += 60
    return images.clip(0, 255).astype(np.uint8), labels


class InTorchvisionsLoop(unittest.TestCase):
    """The loop of torchvision's references/classification/train.py, with torch's DataLoader and with precast.Loader."""
    SAMPLES, BATCH, EPOCHS, SEEDS = 1024, 64, 6, 4
    MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.path = pathlib.Path(cls.scratch.name) / "blobs.beton"
        cls.images, cls.labels = blobs(cls.SAMPLES, 0)
        with precast.Writer(cls.path, {"image": {"image": {"mode": "raw"}}, "label": "int"}, cls.SAMPLES) as writer:
            for image, label in zip(cls.images, cls.labels, strict=True):
                writer.add([image, label])
        images, labels = blobs(512, 1)
        cls.evaluation = (cls.normalised(torch.from_numpy(images).permute(0, 3, 1, 2)), torch.from_numpy(labels))

    @classmethod
    def normalised(cls, images):
        return transforms.Normalize(cls.MEAN, cls.STD)(images.float() / 255)

    def torchvision_loader(self, seed, augment):
        steps = [transforms.ToImage(), *([transforms.RandomHorizontalFlip()] if augment else []),
                 transforms.ToDtype(torch.float32, scale=True), transforms.Normalize(self.MEAN, self.STD)]
        transform = transforms.Compose(steps)
        dataset = [(image, int(label)) for image, label in zip(self.images, self.labels, strict=True)]

        class Transformed(torch.utils.data.Dataset):
            def __len__(self):
                return len(dataset)

            def __getitem__(self, number):
                image, label = dataset[number]
                return transform(image), label

        torch.manual_seed(seed)
        return torch.utils.data.DataLoader(Transformed(), self.BATCH, shuffle=augment, drop_last=True)

    def precast_loader(self, seed, augment):
        loader = precast.Loader(self.path, self.BATCH, seed=seed, order="random" if augment else "sequential",
                                pipeline=["whole_image", *(["horizontal_flip"] if augment else [])], image_size=16,
                                normalize=True, drop_last=True, convert=torch.from_dlpack)

        class Permuted:
            def __iter__(self):
                return ((image.permute(0, 3, 1, 2).contiguous(), label) for image, label in loader)

        return Permuted()

    def train(self, make_loader, seed, augment):
        """@return the loss of each step, and the accuracy on the evaluation images."""
        loader = make_loader(seed, augment)
        torch.manual_seed(100 + seed)
        conv = torch.nn.Conv2d
        model = torch.nn.Sequential(conv(3, 16, 3, 2, 1), torch.nn.ReLU(), conv(16, 32, 3, 2, 1), torch.nn.ReLU(),
                                    torch.nn.Flatten(), torch.nn.Linear(512, 4))
        criterion = torch.nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
        losses = []
        for _ in range(self.EPOCHS):
            for image, target in loader:
                output = model(image)
                loss = criterion(output, target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        images, labels = self.evaluation
        with torch.inference_mode():
            accuracy = (model(images).argmax(1) == labels).float().mean().item()
        return losses, accuracy

    def test_without_augmentation_the_losses_are_equal(self):
        theirs, their_accuracy = self.train(self.torchvision_loader, 0, augment=False)
        ours, accuracy = self.train(self.precast_loader, 0, augment=False)
        self.assertEqual(len(ours), self.EPOCHS * self.SAMPLES // self.BATCH)
        # The normalisation is rounded differently, and the difference grows during training.
        difference = np.abs(np.subtract(ours, theirs))
        self.assertLess(difference[:32].max(), 1e-4)
        self.assertLess(difference.max(), 1e-2)
        self.assertLess(abs(accuracy - their_accuracy), 0.01)
        self.assertLess(ours[-1], 0.9 * ours[0])

    def test_with_augmentation_accuracy_and_loss_are_within_noise(self):
        results = {}
        for make in (self.torchvision_loader, self.precast_loader):
            runs = [self.train(make, seed, augment=True) for seed in range(self.SEEDS)]
            epoch = self.SAMPLES // self.BATCH
            results[make.__name__] = [[statistics.fmean(losses[-epoch:]) for losses, _ in runs],
                                      [accuracy for _, accuracy in runs]]
        for name, theirs, ours in zip(("loss", "accuracy"), results["torchvision_loader"], results["precast_loader"],
                                      strict=True):
            noise = (statistics.variance(theirs) / self.SEEDS + statistics.variance(ours) / self.SEEDS) ** 0.5
            difference = abs(statistics.fmean(ours) - statistics.fmean(theirs))
            print(f"{name}: torchvision {theirs}, precast {ours}, difference {difference:.4f}, noise {noise:.4f}")
            self.assertLess(difference, 4 * noise + 0.01)


if __name__ == "__main__":
    unittest.main()
