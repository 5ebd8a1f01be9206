"""Tensors computed by a formula, so that the scripts for goldens and the C++ tests have the same ones."""

import numpy as np
import torch

SHAPES = {"conv1.weight": (6, 3, 3, 3), "bn1.weight": (6,), "bn1.bias": (6,),
          "downsample.0.weight": (8, 6, 1, 1), "downsample.1.weight": (8,), "fc.weight": (5, 8),
          "fc.bias": (5,)}


def noise(stream, count):
    """Returns `count` numbers in [-0.5, 0.5): hashes of (stream, index), as in tests/support/noise.h."""
    x = np.arange(count, dtype=np.uint32) * np.uint32(2654435761)
    x += np.uint32(stream * 40503 % 2**32)
    x ^= x >> np.uint32(15)
    x *= np.uint32(2246822519)
    x ^= x >> np.uint32(13)
    return (x >> np.uint32(8)) / 2.0**24 - 0.5


def noise_tensor(stream, shape, scale=1.0):
    values = noise(stream, int(np.prod(shape))) * scale
    return torch.from_numpy(values.astype(np.float32)).reshape(shape)


def toy_parameters():
    return {name: torch.nn.Parameter(noise_tensor(stream, shape))
            for stream, (name, shape) in enumerate(SHAPES.items())}


def toy_gradients(parameters, step):
    for stream, parameter in enumerate(parameters.values()):
        parameter.grad = noise_tensor(100 * (step + 1) + stream, parameter.shape)


def flat(tensors):
    return torch.cat([t.detach().flatten() for t in tensors]).tolist()
