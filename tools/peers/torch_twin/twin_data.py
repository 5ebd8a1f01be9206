"""Datasets of twin_train.py. Each yields batches on the device: normalised images [N, 3, H, W], and labels [N]."""

import math
import random

import torch
import torch.nn.functional as F

import recipe


def resize(images, size):
    """Resizes with antialiased bilinear filtering, as torchvision's Resize does."""
    return F.interpolate(images, (size, size), mode="bilinear", antialias=True)


def random_box(height, width, scale=(0.08, 1), ratio=(3 / 4, 4 / 3)):
    """Draws a box as torchvision's RandomResizedCrop does. Returns its top, left, height and width."""
    for _ in range(10):
        area = height * width * random.uniform(*scale)
        aspect = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, height - h), random.randint(0, width - w), h, w
    h, w = min(height, round(width / ratio[0])), min(width, round(height * ratio[1]))
    return (height - h) // 2, (width - w) // 2, h, w


class Arrays:
    """PREFIX_images.npy and PREFIX_labels.npy. All images stay on the device, as uint8; a batch is
    cropped, flipped and resized there."""

    def __init__(self, prefix, device):
        images = recipe.load_npy(f"{prefix}_images.npy").permute(0, 3, 1, 2)
        self.images = images.contiguous(memory_format=torch.channels_last).to(device)
        self.labels = recipe.load_npy(f"{prefix}_labels.npy").reshape(-1).long().to(device)
        self.mean, self.std = recipe.MEAN.to(device), recipe.STD.to(device)

    def __len__(self):
        return len(self.images)

    def close(self):
        pass

    def normalised(self, images):
        return ((images - self.mean) / self.std).contiguous(memory_format=torch.channels_last)

    def train(self, size, batch, crop):
        device = self.images.device
        order = torch.randperm(len(self)).to(device)
        for first in range(0, len(self) - batch + 1, batch):
            chosen = order[first:first + batch]
            images = self.images[chosen].float()
            if crop == "random":
                boxes = [random_box(*images.shape[2:]) for _ in chosen]
                images = torch.cat([resize(image[None, :, y:y + h, x:x + w], size)
                                    for image, (y, x, h, w) in zip(images, boxes, strict=True)])
            else:
                images = resize(images, size)
            mirrored = (torch.rand(batch) < 0.5).to(device)[:, None, None, None]
            yield self.normalised(torch.where(mirrored, images.flip(3), images)), self.labels[chosen]

    def val(self, size, batch, ratio):
        side = int(ratio * min(self.images.shape[2:]))
        y, x = [(whole - side) // 2 for whole in self.images.shape[2:]]
        for first in range(0, len(self), batch):
            square = self.images[first:first + batch, :, y:y + side, x:x + side].float()
            yield self.normalised(resize(square, size)), self.labels[first:first + batch]


class Folder:
    """A folder of class folders, read by torchvision and torch's DataLoader."""

    def __init__(self, path, device, workers):
        from torchvision.datasets import ImageFolder
        from torchvision.transforms import v2
        self.open = lambda transform: ImageFolder(path, v2.Compose([v2.PILToTensor(), transform]))
        self.v2, self.device, self.workers = v2, device, workers
        self.size = len(self.open(v2.Identity()))
        # The workers stay alive between epochs. A new image size needs a new loader.
        self.loader, self.loader_px = None, None

    def __len__(self):
        return self.size

    def close(self):
        """Ends the workers. Python can hang at exit if they are still alive."""
        self.loader = None

    def batches(self, transform, size, batch, shuffle):
        if self.loader_px != size:
            self.close()
            self.loader_px = size
            self.loader = torch.utils.data.DataLoader(
                self.open(transform), batch_size=batch, shuffle=shuffle, drop_last=shuffle, num_workers=self.workers,
                persistent_workers=self.workers > 0, pin_memory=self.device.type == "cuda")
        mean, std = recipe.MEAN.to(self.device), recipe.STD.to(self.device)
        for pixels, labels in self.loader:
            images = (pixels.to(self.device, non_blocking=True).float() - mean) / std
            yield images.contiguous(memory_format=torch.channels_last), labels.to(self.device, non_blocking=True)

    def train(self, size, batch, crop):
        crops = {"random": self.v2.RandomResizedCrop(size, scale=(0.08, 1), ratio=(3 / 4, 4 / 3)),
                 "whole": self.v2.Resize([size, size])}
        return self.batches(self.v2.Compose([crops[crop], self.v2.RandomHorizontalFlip()]), size, batch, True)

    def val(self, size, batch, ratio):
        """Yields the central square of each image, `ratio` times as long as the shorter side, resized."""
        def square(pixels):
            side = int(ratio * min(pixels.shape[-2:]))
            return self.v2.functional.resize(self.v2.functional.center_crop(pixels, [side, side]),
                                             [size, size])
        return self.batches(square, size, batch, False)
