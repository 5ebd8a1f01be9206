"""Applies transforms of torchvision 0.26.0 and FFCV 1.0.2 with given parameters to one image, and stores the results.

Usage: .venv-peers/bin/python tests/golden/transforms/make_transform_goldens.py COMPOSER (tools/peers/setup creates
.venv-peers; COMPOSER is the folder of an unpacked wheel of mosaicml 0.32.1)

picture.npy is [37, 45, 3] uint8: a smooth photo-like pattern with noise, flat patches, black, white and grey. NAME.npy
[cases, 37, 45, 3] contains the results of an operation, and cases.json the parameters of each case, in order.
"""
import importlib.util
import json
import pathlib
import sys
import types

import numpy as np
import torch
from ffcv.transforms import Poison, RandomBrightness, RandomContrast, RandomSaturation
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional as F

here = pathlib.Path(__file__).parent


def picture():
    rng = np.random.default_rng(5)
    y, x = np.mgrid[0:37, 0:45].astype(np.float64)
    smooth = np.stack([120 + 90 * np.sin(x / 7 + y / 11), 130 + 80 * np.cos(x / 5 - y / 9),
                       110 + 100 * np.sin((x + y) / 13)], -1)
    image = np.clip(smooth + rng.normal(0, 12, smooth.shape), 0, 255).astype(np.uint8)
    image[:6, :6], image[:6, 6:12], image[:6, 12:18] = 0, 255, 128
    image[30:, 38:] = [200, 40, 90]
    image[20:24, 20:30] = rng.integers(0, 256, (4, 10, 3))
    return image


def tensor(image):
    return torch.from_numpy(image).permute(2, 0, 1).contiguous()


def ffcv_factor(operation, factor):
    """Returns FFCV's own kernel with a given factor in place of a random one."""
    code = operation(magnitude=0.0, p=1.1).generate_code()
    # The kernel draws its factor with uniform() of the module `np`, which is replaced below.
    cells = {name: cell.cell_contents for name, cell in zip(code.__code__.co_freevars, code.__closure__, strict=True)}

    class Fixed:
        """np whose rand() returns 0 and whose uniform() returns the factor."""
        def __getattr__(self, name):
            return getattr(np, name)
        class random:
            rand = staticmethod(lambda n: np.zeros(n))
            uniform = staticmethod(lambda low, high, n: np.full(n, factor))

    globals_ = dict(code.__globals__, np=Fixed())
    cells["my_range"] = range
    closure = tuple(types.CellType(cells[name]) for name in code.__code__.co_freevars)
    return types.FunctionType(code.__code__, globals_, "kernel", code.__defaults__, closure)


def ffcv(operation, factor, image):
    return ffcv_factor(operation, factor)(image[None].copy())[0]


image = picture()
np.save(here / "picture.npy", image)
factors = [0.0, 0.35, 0.8, 1.0, 1.3, 1.9]
cases = {}


def save(name, parameters, make):
    outputs = []
    for parameter in parameters:
        output = make(parameter)
        if isinstance(output, torch.Tensor):
            output = output.permute(1, 2, 0).numpy()
        outputs.append(output)
    np.save(here / f"{name}.npy", np.stack(outputs).astype(np.uint8))
    cases[name] = parameters


t = tensor(image)
save("ffcv_brightness", factors, lambda f: ffcv(RandomBrightness, f, image))
save("ffcv_contrast", factors, lambda f: ffcv(RandomContrast, f, image))
save("ffcv_saturation", factors, lambda f: ffcv(RandomSaturation, f, image))
save("brightness", factors, lambda f: F.adjust_brightness(t, f))
save("contrast", factors, lambda f: F.adjust_contrast(t, f))
save("saturation", factors, lambda f: F.adjust_saturation(t, f))
save("hue", [-0.5, -0.31, -0.1, 0.0, 0.05, 0.25, 0.5], lambda h: F.adjust_hue(t, h))
save("grayscale", [0], lambda _: F.rgb_to_grayscale(t, 3))
save("solarize", [0, 100.5, 128, 255], lambda v: F.solarize(t, v))
save("posterize", [1, 3, 4, 8], lambda b: F.posterize(t, b))
dull = tensor((60 + image // 3).astype(np.uint8))
save("autocontrast", [0, 1], lambda c: F.autocontrast(dull if c else t))
save("equalize", [0, 1], lambda c: F.equalize(dull if c else t))
save("sharpness", [0.0, 0.4, 1.0, 1.9], lambda f: F.adjust_sharpness(t, f))
save("gaussian_blur", [[3, 0.4], [5, 1.1], [9, 2.0], [23, 1.7], [1, 1.0]],
     lambda c: F.gaussian_blur(t, [c[0], c[0]], [c[1], c[1]]))

modes = {"nearest": InterpolationMode.NEAREST, "bilinear": InterpolationMode.BILINEAR}
for mode, interpolation in modes.items():
    fill = [10, 200, 30] if mode == "nearest" else None
    save(f"rotate_{mode}", [-77.5, -10.0, 0.0, 17.3, 140.0],
         lambda a: F.rotate(t, a, interpolation=interpolation, fill=fill))
    # angle, translation x and y, scale, shear x and y, and whether the centre is the upper left corner
    save(f"affine_{mode}",
         [[12.0, 3, -5, 1.1, 0, 0, 0], [-33.3, 0, 0, 0.7, 10, 0, 0], [0.0, -7, 4, 1.0, 0, 0, 0],
          [5.0, 1, 2, 1.3, -8, 14, 0], [0.0, 0, 0, 1.0, 16.7, 0, 1], [0.0, 0, 0, 1.0, 0, -16.7, 1]],
         lambda c: F.affine(t, c[0], [int(c[1]), int(c[2])], c[3], [c[4], c[5]], interpolation=interpolation, fill=fill,
                            center=[0, 0] if c[6] else None))

# Each operation of RandAugment and TrivialAugment, called by torchvision itself, and their tables of magnitudes.
tables = {}
for name, augment in {"rand_augment": v2.RandAugment(), "trivial_augment": v2.TrivialAugmentWide()}.items():
    rows = {}
    for operation, (magnitudes, signed) in augment._AUGMENTATION_SPACE.items():
        values = magnitudes(31, 224, 160)
        rows[operation] = {"signed": signed, "magnitudes": None if values is None else [float(v) for v in values]}
    tables[name] = rows
augment = v2.RandAugment()
operations = []
for operation, (magnitudes, signed) in augment._AUGMENTATION_SPACE.items():
    values = magnitudes(31, *image.shape[:2])
    for sign in ([1, -1] if signed else [1]):
        operations.append([operation, sign * float(values[9]) if values is not None else 0.0])
save("augmentations", operations,
     lambda c: augment._apply_image_or_video_transform(t, c[0], c[1], interpolation=InterpolationMode.NEAREST,
                                                       fill=augment._fill))

# The parameter that Composer's version of each AugMix operation passes to Pillow for given draws.
spec = importlib.util.spec_from_file_location(
    "primitives", pathlib.Path(sys.argv[1]) / "composer/algorithms/utils/augmentation_primitives.py")
primitives = importlib.util.module_from_spec(spec)
spec.loader.exec_module(primitives)


class Noted:
    """Replaces an image (160 pixels wide, 224 high) and Pillow's modules. Stores the arguments of the last call."""
    size = (160, 224)

    def __getattr__(self, name):
        return Noted.note

    @staticmethod
    def note(*arguments, **_):
        Noted.arguments = arguments
        return Noted()


def augmix_parameter(operation, severity, draws):
    left = iter(draws)
    primitives.np = types.SimpleNamespace(random=types.SimpleNamespace(
        uniform=lambda low=0.0, high=1.0: low + (high - low) * next(left), random=lambda: next(left)))
    Noted.arguments = ()
    getattr(primitives, operation)(Noted(), severity)
    numbers = [v for a in Noted.arguments for v in (a if isinstance(a, tuple) else [a]) if isinstance(v, (int, float))]
    match operation.split("_"):
        case ["shear", axis]:
            return numbers[-5 if axis == "x" else -3]
        case ["translate", axis]:
            return numbers[-4 if axis == "x" else -1]
    return numbers[-1]


primitives.ImageOps = primitives.ImageEnhance = Noted()
tables["augmix"] = [
    [operation, severity, draws, augmix_parameter(operation, severity, draws)]
    for operation in ["posterize", "rotate", "solarize", "shear_x", "shear_y", "translate_x", "translate_y", "color",
                      "contrast", "brightness", "sharpness", "color_original", "contrast_original",
                      "brightness_original", "sharpness_original"]
    for severity in [1, 3, 10] for draws in [[0.1, 0.7], [0.45, 0.2], [0.6, 0.3], [0.97, 0.9]]]

# Padding by np.pad, cropped at some of the offsets that RandomCrop(size, padding) can draw.
for mode in ["constant", "edge", "reflect", "symmetric"]:
    padded = np.pad(image, ((3, 3), (3, 3), (0, 0)), mode=mode)
    save(f"pad_{mode}", [[0, 0], [6, 6], [1, 5], [3, 3]], lambda c: padded[c[0]:c[0] + 37, c[1]:c[1] + 45])

masks = []
for height, width in [(20, 31), (37, 45), (64, 50)]:
    small = torch.nn.functional.interpolate(t[None].float(), (height, width), mode="nearest-exact")[0]
    masks.append([height, width])
    np.save(here / f"nearest_{height}x{width}.npy", small.permute(1, 2, 0).numpy().astype(np.uint8))

alpha = np.linspace(0, 1, 37 * 45).reshape(37, 45)
mask = image[::-1, ::-1].copy()
kernel = Poison(mask, alpha, [4]).generate_code()
temp = np.zeros((1, 37, 45, 3), np.float32)
poisoned = np.stack([kernel(image[None].copy(), temp, np.array([i]))[0] for i in (3, 4)])
np.save(here / "poison.npy", poisoned)
(here / "cases.json").write_text(json.dumps({"cases": cases, "tables": tables}, separators=(",", ":")))
print("wrote", sorted(p.name for p in here.glob("*.npy")))
