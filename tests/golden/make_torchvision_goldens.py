#!/usr/bin/env python3
"""Writes goldens for tests/models and tests/recipes with the real torch, torchvision, timm and NumPy.

    pip install torch==2.11.0 torchvision==0.26.0 timm==1.0.20 numpy
    python tests/golden/make_torchvision_goldens.py

Writes {resnet18,resnet50}_{state,ffcv_state,timm_state}.txt, models.json and recipes.json to the folder torchvision
next to this script. Weights and inputs come from a formula (noise), so that the files are small. The checksums of the
weights drawn with seed 7 are valid on CPUs with AVX2; without AVX2, torch draws different normal numbers.
"""

import json
import pathlib

import numpy as np
import timm
import torch
import torch.nn.functional as F
import torchvision

from toy_model import flat, noise, noise_tensor, toy_gradients, toy_parameters

FOLDER = pathlib.Path(__file__).parent
ARCHS = ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2",
         "resnext50_32x4d"]
# epochs: (start_ramp, end_ramp) of ffcv-imagenet's configurations.
PUBLISHED = {16: (11, 13), 24: (17, 20), 32: (23, 27), 40: (29, 34), 56: (41, 48), 88: (65, 76)}
STEPS_PER_EPOCH = 5


def fill(model):
    """Sets the weights by a formula. They have the magnitudes of a trained network, and differ between all layers."""
    with torch.no_grad():
        for stream, (name, tensor) in enumerate(model.state_dict().items()):
            if name.endswith("num_batches_tracked"):
                continue
            u = noise(stream, tensor.numel())
            if tensor.dim() >= 2:
                values = u * (4 / np.sqrt(tensor.numel() / tensor.shape[0]))
            elif name.endswith("running_var"):
                values = 1 + u
            elif name.endswith("weight"):
                values = 1 + 0.5 * u
            else:
                values = 0.2 * u
            tensor.copy_(torch.from_numpy(values.astype(np.float32)).reshape(tensor.shape))


class Blurred(torch.nn.Module):
    """ffcv-imagenet's BlurPoolConv2d, with its names of tensors: a blur filter, then a convolution."""

    def __init__(self, conv):
        super().__init__()
        self.conv = conv
        row = torch.tensor([1.0, 2.0, 1.0])
        taps = (torch.outer(row, row) / 16).repeat(conv.in_channels, 1, 1, 1)
        self.register_buffer("blur_filter", taps)

    def forward(self, x):
        return self.conv(F.conv2d(x, self.blur_filter, padding=1, groups=self.conv.in_channels))


def blur_strided(module):
    for name, child in module.named_children():
        if isinstance(child, torch.nn.Conv2d):
            if max(child.stride) > 1 and child.in_channels >= 16:
                setattr(module, name, Blurred(child))
        else:
            blur_strided(child)


def checksum(tensors):
    """Returns a checksum of the tensors' bits that depends on their positions."""
    total = 0
    for tensor in tensors:
        bits = tensor.detach().contiguous().numpy().reshape(-1).view(np.uint32).astype(np.uint64)
        place = np.arange(1, bits.size + 1, dtype=np.uint64)
        total = (total * 31 + int((bits * place).sum(dtype=np.uint64))) % 2**64
    return total


def build(arch, **options):
    return torchvision.models.get_model(arch, weights=None, **options)


def write_state(name, model):
    lines = [" ".join([key, *map(str, tensor.shape)]) for key, tensor in model.state_dict().items()]
    (FOLDER / f"torchvision/{name}.txt").write_text("\n".join(lines) + "\n")


def write_states():
    for arch in ["resnet18", "resnet50"]:
        model = build(arch)
        write_state(f"{arch}_state", model)
        blur_strided(model)
        write_state(f"{arch}_ffcv_state", model)
        write_state(f"{arch}_timm_state", timm.create_model(arch))


def model_goldens():
    golden = {"parameters": {}, "seed7": {}, "zero_init_residual_seed7": {}, "outputs": {}}
    for arch in ARCHS:
        torch.manual_seed(7)
        model = build(arch)
        golden["parameters"][arch] = sum(p.numel() for p in model.parameters())
        golden["seed7"][arch] = checksum(model.parameters())
    for arch in ["resnet18", "resnet50"]:
        torch.manual_seed(7)
        model = build(arch, zero_init_residual=True)
        golden["zero_init_residual_seed7"][arch] = checksum(model.parameters())
    for arch in ["resnet18", "resnet50", "resnext50_32x4d"]:
        for blurpool in [False, True]:
            golden["outputs"][arch + ("+blurpool" if blurpool else "")] = outputs(arch, blurpool)
    return golden


def outputs(arch, blurpool):
    """Returns the logits in evaluation and in training, and the norm of each parameter's gradient.

    Computes in float64: batch statistics over few pixels amplify the rounding errors of float32, which differ from CPU
    to CPU, to 1 % of a gradient. The training images are small, because float64 is slow.
    """
    model = build(arch, num_classes=10)
    fill(model)
    if blurpool:
        blur_strided(model)
    model.double()
    with torch.no_grad():
        eval_logits = model.eval()(noise_tensor(1000, (4, 3, 72, 72), 4).double())
    train_logits = model.train()(noise_tensor(1001, (2, 3, 40, 40), 4).double())
    F.cross_entropy(train_logits, torch.tensor([3, 1])).backward()
    return {"eval_logits": eval_logits.flatten().tolist(),
            "train_logits": train_logits.flatten().tolist(),
            "gradient_norms": [p.grad.double().norm().item() for p in model.parameters()]}


def cyclic_lr(epoch, lr, epochs, peak):
    return float(np.interp([epoch], [0, peak, epochs], [1e-4 * lr, lr, 0])[0])


def step_lr(epoch, lr, epochs, ratio, length):
    return 0.0 if epoch >= epochs else ratio ** (epoch // length) * lr


def per_iteration(lr_of, epochs):
    places = np.arange(STEPS_PER_EPOCH)
    return [float(x) for epoch in range(epochs)
            for x in np.interp(places, [0, STEPS_PER_EPOCH], [lr_of(epoch), lr_of(epoch + 1)])]


def resolution(epoch, low, high, start, end):
    if epoch <= start:
        return low
    if epoch >= end:
        return high
    return int(np.round(np.interp([epoch], [start, end], [low, high])[0] / 32)) * 32


def schedule_goldens():
    edges = [(1, 2), (2, 2), (3, 0), (1, 0), (5, 9)]  # epochs, peak
    ramps = [(128, 224, 3, 10), (96, 160, 0, 4), (100, 200, 2, 7), (160, 160, 0, 0)]
    return {
        "steps_per_epoch": STEPS_PER_EPOCH,
        "cyclic": {str(epochs): per_iteration(lambda e: cyclic_lr(e, 1.7, epochs, 2), epochs)
                   for epochs in PUBLISHED},
        "cyclic_edges": [{"epochs": epochs, "peak": peak,
                          "lr": [cyclic_lr(e, 0.5, epochs, peak) for e in range(epochs + 1)]}
                         for epochs, peak in edges],
        "step": {str(epochs): per_iteration(lambda e: step_lr(e, 0.5, epochs, 0.1, 30), epochs)
                 for epochs in PUBLISHED},
        "resolution": {str(epochs): [resolution(e, 160, 192, *ramp) for e in range(epochs)]
                       for epochs, ramp in PUBLISHED.items()},
        "ramps": [{"min_res": low, "max_res": high, "start_ramp": start, "end_ramp": end,
                   "size_px": [resolution(e, low, high, start, end) for e in range(12)]}
                  for low, high, start, end in ramps],
    }


def sgd(legacy, nesterov, momentum=0.9):
    parameters = toy_parameters()
    decays = {n: ("bn" not in n) if legacy else p.dim() >= 2 for n, p in parameters.items()}
    optimizer = torch.optim.SGD(
        [{"params": [p for n, p in parameters.items() if not decays[n]], "weight_decay": 0.0},
         {"params": [p for n, p in parameters.items() if decays[n]], "weight_decay": 0.05}],
        lr=1, momentum=momentum, nesterov=nesterov)
    for step in range(5):
        toy_gradients(parameters, step)
        for group in optimizer.param_groups:
            group["lr"] = 0.4 - 0.05 * step
        optimizer.step()
    return flat(parameters.values())


def clipped(max_norm):
    parameters = toy_parameters()
    toy_gradients(parameters, 0)
    torch.nn.utils.clip_grad_norm_(parameters.values(), max_norm)
    return flat(p.grad for p in parameters.values())


def average(decay):
    """Returns the averages of a batch norm whose tensors are set to noise before each of four updates."""
    swa = torch.optim.swa_utils
    norm = torch.nn.BatchNorm2d(6)
    averaged = swa.AveragedModel(norm, multi_avg_fn=swa.get_ema_multi_avg_fn(decay),
                                 use_buffers=True)
    for step in range(4):
        with torch.no_grad():
            for stream, tensor in enumerate(norm.state_dict().values()):
                if tensor.is_floating_point():
                    tensor.copy_(noise_tensor(100 * step + stream, tensor.shape))
        averaged.update_parameters(norm)
    return flat(t for t in averaged.module.state_dict().values() if t.is_floating_point())


def loss_goldens():
    logits = noise_tensor(1, (6, 10), 8)
    labels = torch.tensor([0, 9, 3, 3, 5, 7])
    shares = F.softmax(noise_tensor(2, (6, 10), 4), dim=1)
    return {str(smoothing): {
        "indices": F.cross_entropy(logits, labels, label_smoothing=smoothing).item(),
        "probabilities": F.cross_entropy(logits, shares, label_smoothing=smoothing).item()}
            for smoothing in [0.0, 0.1, 0.3]}


def recipe_goldens():
    return {**schedule_goldens(),
            "sgd": {"legacy": sgd(True, False), "clean": sgd(False, False),
                    "nesterov": sgd(True, True), "no_momentum": sgd(True, False, momentum=0.0)},
            "clipped": {"0.5": clipped(0.5), "1000": clipped(1000.0)},
            "ema": average(0.75),
            "loss": loss_goldens()}


def write(path, golden):
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items()]
    (FOLDER / path).write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    (FOLDER / "torchvision").mkdir(exist_ok=True)
    write_states()
    write("torchvision/models.json", model_goldens())
    write("torchvision/recipes.json", recipe_goldens())
