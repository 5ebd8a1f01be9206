"""The parts of ffcv-imagenet's recipe that both twins share, in plain torch."""

import json
import struct

import numpy as np
import torch
import torch.nn.functional as F
import torchvision

# As ffcv-imagenet: scaled in double precision, then rounded once.
MEAN = torch.tensor([0.485 * 255, 0.456 * 255, 0.406 * 255]).view(1, 3, 1, 1)
STD = torch.tensor([0.229 * 255, 0.224 * 255, 0.225 * 255]).view(1, 3, 1, 1)


def add_blurpool(model):
    """Puts the [1,2,1] x [1,2,1] / 16 filter before strided convolutions, as hooks: state_dict()
    keeps torchvision's names."""
    row = torch.tensor([1.0, 2.0, 1.0])
    kernel = torch.outer(row, row) / 16

    def blur(conv, inputs):
        filters = kernel.to(inputs[0]).repeat(conv.in_channels, 1, 1, 1)
        return (F.conv2d(inputs[0], filters, padding=1, groups=conv.in_channels),)

    for conv in model.modules():
        if isinstance(conv, torch.nn.Conv2d) and max(conv.stride) > 1 and conv.in_channels >= 16:
            conv.register_forward_pre_hook(blur)


def load_weights(path):
    """A state_dict from .pt or .safetensors."""
    if not str(path).endswith(".safetensors"):
        return torch.load(path, weights_only=True)
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    types = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I64": np.int64}
    state = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[begin:end], types[entry["dtype"]]).copy()
        state[name] = torch.from_numpy(values).reshape(entry["shape"])
    return state


def make_model(arch, classes, blurpool, weights=None):
    model = torchvision.models.get_model(arch, weights=None, num_classes=classes)
    if weights is not None:
        model.load_state_dict(weights)
    if blurpool:
        add_blurpool(model)
    return model


def make_sgd(model, momentum, weight_decay):
    """The legacy groups: what has "bn" in its name does not decay, all else does."""
    named = list(model.named_parameters())
    return torch.optim.SGD(
        [{"params": [p for n, p in named if "bn" in n], "weight_decay": 0.0},
         {"params": [p for n, p in named if "bn" not in n], "weight_decay": weight_decay}],
        lr=1, momentum=momentum)


def set_lr(optimizer, lr):
    for group in optimizer.param_groups:
        group["lr"] = lr


def cyclic_lr(epoch, lr, epochs, peak):
    return float(np.interp(epoch, [0, peak, epochs], [1e-4 * lr, lr, 0]))


def rates_of_epoch(epoch, steps, lr, epochs, peak):
    ends = [cyclic_lr(epoch, lr, epochs, peak), cyclic_lr(epoch + 1, lr, epochs, peak)]
    return np.interp(np.arange(steps), [0, steps], ends)


def resolution(epoch, min_res, max_res, start_ramp, end_ramp):
    if epoch <= start_ramp:
        return min_res
    if epoch >= end_ramp:
        return max_res
    size = np.interp(epoch, [start_ramp, end_ramp], [min_res, max_res])
    return int(np.round(size / 32)) * 32


def normalise(pixels):
    """[N, H, W, 3] uint8 to [N, 3, H, W] float32."""
    return (torch.as_tensor(pixels).permute(0, 3, 1, 2).float() - MEAN) / STD
