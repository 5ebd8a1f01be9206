"""Writes the goldens of tests/data/resample with the real OpenCV, Pillow and torch.

    pip install opencv-python-headless==4.14.0 pillow==13.0.0 torch==2.11.0 numpy==2.4.6
    python tests/golden/resize/make_resize_goldens.py

Writes to the folder of this script cases.npy, rows of (height, width, resized height, resized width), and for each peer
an array with the pixels [resized height, resized width, 3] of all cases, one after another. The input images are noise
that depends on the number of the case and the position, so that no image needs to be stored. OpenCV 4.6.0, with which
FFCV's own goldens were made, gives the same results.
"""
import pathlib

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

HERE = pathlib.Path(__file__).parent
CASES = [
    (40, 52, 16, 20), (40, 40, 20, 20), (32, 48, 16, 16), (19, 27, 18, 25),  # shrink
    (170, 150, 24, 21), (100, 90, 3, 4), (200, 210, 3, 2), (30, 40, 1, 1),
    (20, 30, 32, 32), (9, 5, 31, 37), (1, 1, 5, 7),  # grow
    (20, 60, 32, 24), (60, 20, 24, 32), (300, 7, 5, 20), (7, 300, 20, 5), (17, 40, 17, 50),  # both
    (1, 40, 1, 7), (40, 2, 9, 2),  # torch takes an image of one column for channels_last
]


def noise_image(case, height, width):
    """Returns an image with the numbers of `noise` in ../toy_model.py."""
    x = np.arange(height * width * 3, dtype=np.uint32) * np.uint32(2654435761)
    x += np.uint32(case * 40503)
    x ^= x >> np.uint32(15)
    x *= np.uint32(2246822519)
    x ^= x >> np.uint32(13)
    return (x >> np.uint32(24)).astype(np.uint8).reshape(height, width, 3)


def with_torch(image, height, width, antialias):
    planes = torch.from_numpy(image).permute(2, 0, 1)[None].float()
    resized = F.interpolate(planes, (height, width), mode="bilinear", antialias=antialias)
    return resized[0].permute(1, 2, 0).round().clamp(0, 255).byte().numpy()


def with_opencv(image, height, width, interpolation):
    return cv2.resize(image, (width, height), interpolation=interpolation)


PEERS = {
    "opencv_area": lambda *case: with_opencv(*case, cv2.INTER_AREA),
    "opencv_linear": lambda *case: with_opencv(*case, cv2.INTER_LINEAR),
    "torch_bilinear": lambda *case: with_torch(*case, False),
    "torch_antialias": lambda *case: with_torch(*case, True),
    "pillow_bilinear": lambda image, height, width: np.asarray(
        Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)),
}

if __name__ == "__main__":
    if hasattr(cv2, "ipp"):
        cv2.ipp.setUseIPP(False)  # its INTER_LINEAR gives different results
    np.save(HERE / "cases.npy", np.array(CASES, dtype=np.int32))
    for name, resize in PEERS.items():
        pixels = [resize(noise_image(i, h, w), rh, rw).reshape(-1)
                  for i, (h, w, rh, rw) in enumerate(CASES)]
        np.save(HERE / f"{name}.npy", np.concatenate(pixels))
