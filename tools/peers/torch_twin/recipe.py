"""The functions of ffcv-imagenet's recipe that the twins share, in plain torch, without numpy and torchvision."""

import ast
import itertools
import json
import struct
import sys

import torch
import torch.nn.functional as F

import resnet

NO_GPU = 6
# Like ffcv-imagenet: scaled in double precision, then rounded once.
MEAN = torch.tensor([0.485 * 255, 0.456 * 255, 0.406 * 255]).view(1, 3, 1, 1)
STD = torch.tensor([0.229 * 255, 0.224 * 255, 0.225 * 255]).view(1, 3, 1, 1)
NPY_TYPES = {"|u1": torch.uint8, "<i4": torch.int32, "<i8": torch.int64, "<f4": torch.float32,
             "<f8": torch.float64}


def find_device(name):
    """Returns the device; `auto` selects a GPU if there is one. Exits with code 6 if torch cannot use the GPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        print(f"twin: expected a GPU that torch {torch.__version__} can use, got none", file=sys.stderr)
        sys.exit(NO_GPU)
    return torch.device(name)


def add_blurpool(model):
    """Applies the [1,2,1] x [1,2,1] / 16 filter before strided convolutions with at least 16 input channels, with a
    hook and a buffer that is not saved: state_dict() keeps torchvision's names, and the filter is on the model's
    device."""
    row = torch.tensor([1.0, 2.0, 1.0])
    kernel = torch.outer(row, row) / 16

    def blur(conv, inputs):
        return (F.conv2d(inputs[0], conv.blur_filter, padding=1, groups=conv.in_channels),)

    for conv in model.modules():
        if isinstance(conv, torch.nn.Conv2d) and max(conv.stride) > 1 and conv.in_channels >= 16:
            conv.register_buffer("blur_filter", kernel.repeat(conv.in_channels, 1, 1, 1),
                                 persistent=False)
            conv.register_forward_pre_hook(blur)


def without_filters(state):
    """A state_dict without BlurPool's filters, with the parameter names of a network without BlurPool."""
    blurred = {name.removesuffix(".blur_filter") for name in state if name.endswith(".blur_filter")}
    names = {f"{layer}.conv.weight": f"{layer}.weight" for layer in blurred}
    return {names.get(name, name): value for name, value in state.items()
            if not name.endswith(".blur_filter")}


def load_weights(path):
    """A state_dict from .pt or .safetensors, with torchvision's names."""
    if not str(path).endswith(".safetensors"):
        return without_filters(torch.load(path, weights_only=True))
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    types = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "I64": torch.int64}
    state = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        # Copies the bytes, because tensors in a file need not be aligned.
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=types[entry["dtype"]])
        state[name] = values.reshape(entry["shape"])
    return without_filters(state)


def load_npy(path):
    """The tensor of a .npy file in C order."""
    with open(path, "rb") as file:
        magic = file.read(8)
        if len(magic) < 8 or not magic.startswith(b"\x93NUMPY"):
            raise SystemExit(f"twin: expected a .npy file, got another file ({path})")
        size, = struct.unpack(*(("<H", file.read(2)) if magic[6] == 1 else ("<I", file.read(4))))
        head = ast.literal_eval(file.read(size).decode("latin1"))
        data = bytearray(file.read())
    if head["fortran_order"] or head["descr"] not in NPY_TYPES:
        raise SystemExit(f"twin: expected a .npy file of {', '.join(NPY_TYPES)} in C order, got {head} ({path})")
    return torch.frombuffer(data, dtype=NPY_TYPES[head["descr"]]).reshape(head["shape"])


def make_model(arch, classes, blurpool, weights=None):
    if arch in resnet.ARCHITECTURES:
        model = resnet.ResNet(arch, classes)
    else:
        import torchvision
        model = torchvision.models.get_model(arch, weights=None, num_classes=classes)
    if weights is not None:
        model.load_state_dict(weights)
    if blurpool:
        add_blurpool(model)
    return model


def make_sgd(model, momentum, weight_decay):
    """SGD with the legacy groups: weight decay for all parameters except those with "bn" in their names."""
    named = list(model.named_parameters())
    return torch.optim.SGD(
        [{"params": [p for n, p in named if "bn" in n], "weight_decay": 0.0},
         {"params": [p for n, p in named if "bn" not in n], "weight_decay": weight_decay}],
        lr=1, momentum=momentum)


def set_lr(optimizer, lr):
    for group in optimizer.param_groups:
        group["lr"] = lr


def interpolate(x, xs, ys):
    """Linear between the points, constant outside; computed as in numpy.interp."""
    if x <= xs[0]:
        return float(ys[0])
    for (left, right), (low, high) in zip(itertools.pairwise(xs), itertools.pairwise(ys), strict=True):
        if x < right:
            return (high - low) / (right - left) * (x - left) + low
    return float(ys[-1])


def cyclic_lr(epoch, lr, epochs, peak):
    return interpolate(epoch, [0, peak, epochs], [1e-4 * lr, lr, 0])


def rates_of_epoch(epoch, steps, lr, epochs, peak):
    ends = [cyclic_lr(epoch, lr, epochs, peak), cyclic_lr(epoch + 1, lr, epochs, peak)]
    return [interpolate(step, [0, steps], ends) for step in range(steps)]


def resolution(epoch, min_res, max_res, start_ramp, end_ramp):
    if epoch <= start_ramp:
        return min_res
    if epoch >= end_ramp:
        return max_res
    size = interpolate(epoch, [start_ramp, end_ramp], [min_res, max_res])
    return round(size / 32) * 32


def normalise(pixels):
    """[N, H, W, 3] uint8 to [N, 3, H, W] float32."""
    return (torch.as_tensor(pixels).permute(0, 3, 1, 2).float() - MEAN) / STD
