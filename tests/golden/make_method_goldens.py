#!/usr/bin/env python3
"""Writes the goldens of methods and of the loss `bce` from Composer, timm and torchvision.

    pip install torch==2.11.0 torchvision==0.26.0 timm==1.0.31 numpy
    pip download --no-deps mosaicml==0.32.1 && unzip mosaicml-*.whl -d composer
    python tests/golden/make_method_goldens.py composer

Writes recipes/methods.json to the folder of this script. Composer's modules are imported one by one, without the
__init__ files of its packages, which import many more dependencies. Names that such a file would define are replaced
with empty classes.
"""

import functools
import importlib
import json
import pathlib
import sys
import types
import warnings

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from timm.data.mixup import Mixup, cutmix_bbox_and_lam, mixup_target
from timm.loss import BinaryCrossEntropy
from timm.utils.agc import adaptive_clip_grad
from torchvision.transforms import v2

from make_torchvision_goldens import fill
from toy_model import flat, noise_tensor, toy_gradients, toy_parameters

FOLDER = pathlib.Path(__file__).parent / "recipes"


class Bare(types.ModuleType):
    """A package without its __init__; every name is an empty class."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (object,), {})


def composer(root):
    """Registers packages without their __init__, so that `import composer.x.y` imports a single file."""
    for name in ["", "core", "loggers", "utils", "optim", "loss", "models", "trainer",
                 "algorithms", "algorithms.sam", "algorithms.selective_backprop",
                 "algorithms.layer_freezing", "algorithms.squeeze_excite",
                 "algorithms.stochastic_depth", "algorithms.progressive_resizing",
                 "algorithms.swa", "algorithms.ghost_batchnorm"]:
        full = ".".join(filter(None, ["composer", name]))
        module = Bare(full)
        module.__path__ = [str(pathlib.Path(root, *full.split(".")))]
        sys.modules[full] = module
    utils = sys.modules["composer.utils"]
    utils.StringEnum = part("utils.string_enum").StringEnum
    utils.ensure_tuple = part("utils.iter_helpers").ensure_tuple
    core = sys.modules["composer.core"]
    core.Time, core.TimeUnit = part("core.time").Time, part("core.time").TimeUnit
    core.Event = part("core.event").Event


def part(name):
    return importlib.import_module("composer." + name)


def rounded(tensor):
    return [float(f"{x:.9g}") for x in tensor.detach().flatten().tolist()]


def bce_goldens():
    logits = noise_tensor(1, (6, 10), 8)
    labels = torch.tensor([0, 9, 3, 3, 5, 7])
    cases = []
    for options in [{}, {"label_smoothing": 0.1}, {"label_smoothing": 0.1, "sum_classes": True},
                    {"label_smoothing": 0.1, "target_threshold": 0.2}]:
        smoothing = options.get("label_smoothing", 0.0)
        loss = BinaryCrossEntropy(smoothing, options.get("target_threshold"),
                                  sum_classes=options.get("sum_classes", False))
        # Mixed as in timm: each sample with its counterpart in the reversed batch.
        mixed = mixup_target(labels, 10, lam=0.7, smoothing=smoothing)
        cases.append({"options": options, "indices": loss(logits, labels).item(),
                      "mixed": loss(logits, mixed).item()})
    plain = part("loss.loss").binary_cross_entropy_with_logits
    return {"cases": cases, "mixed_lambda": 0.7,
            "composer": plain(logits, F.one_hot(labels, 10).float()).item()}


def freezing_goldens():
    module = part("algorithms.layer_freezing.layer_freezing")
    names = [name for name, _ in torchvision.models.resnet18().named_parameters()]
    cases = []
    for epochs, start, level in [(10, 0.5, 1.0), (7, 0.0, 0.6), (9, 0.25, 1.0)]:
        frozen = []
        for epoch in range(epochs):  # the parameters that are frozen at its beginning
            model = torchvision.models.resnet18()
            optimizer = torch.optim.SGD(model.parameters(), lr=1)
            if epoch > 0:
                module.freeze_layers(model, [optimizer], epoch / epochs, start, level)
            frozen.append([i for i, p in enumerate(model.parameters()) if not p.requires_grad])
        cases.append({"epochs": epochs, "freeze_start": start, "freeze_level": level,
                      "frozen": frozen})
    return {"parameters": names, "cases": cases}


def sam_goldens():
    """Takes six steps with a linear classifier of the mean colour, like LinearModel in tests/support/fake_parts.h."""
    module = part("algorithms.sam.sam")
    cases = []
    for rho, interval in [(0.5, 1), (0.2, 3)]:
        weight = torch.nn.Parameter(noise_tensor(9, (5, 3)))
        optimizer = module.SAMOptimizer(torch.optim.SGD([weight], lr=0.5), rho=rho,
                                        interval=interval)
        losses = []
        for step in range(6):
            images = noise_tensor(50 + step, (8, 3, 2, 2), 4)
            labels = torch.arange(8) % 5

            def closure(ddp_sync=True, loss_dict=None):
                optimizer.zero_grad()
                loss = F.cross_entropy(images.mean((2, 3)) @ weight.T, labels)
                loss.backward()
                return loss
            losses.append(optimizer.step(closure).item())
        cases.append({"rho": rho, "interval": interval, "losses": losses,
                      "weight": rounded(weight)})
    return cases


def agc_goldens():
    """Clips the toy model's gradients with timm. In the third case, eps determines the result."""
    cases = []
    for threshold, epsilon in [(0.01, 1e-3), (0.7, 1e-3), (0.3, 0.9)]:
        parameters = toy_parameters()
        toy_gradients(parameters, 0)
        adaptive_clip_grad(parameters.values(), clip_factor=threshold, eps=epsilon)
        cases.append({"threshold": threshold, "epsilon": epsilon,
                      "gradients": [float(f"{x:.9g}") for x in flat([p.grad for p in parameters.values()])]})
    return cases


def ghost_goldens():
    """Runs a training step of Composer's layer, with gradients, and then an evaluation. The samples have different
    means, so that chunks of different samples have different statistics."""
    module = part("algorithms.ghost_batchnorm.ghost_batchnorm")
    cases = []
    for samples, size in [(8, 8), (8, 4), (7, 3), (9, 4), (5, 1)]:
        norm = torch.nn.BatchNorm2d(3)
        norm.weight.data, norm.bias.data = noise_tensor(1, (3,)) + 1, noise_tensor(2, (3,))
        ghost = module.GhostBatchNorm2d(norm, size)
        x = (noise_tensor(3, (samples, 3, 2, 2)) + noise_tensor(4, (samples, 1, 1, 1), 8)).requires_grad_()
        y = ghost(x)
        (y * noise_tensor(5, y.shape)).sum().backward()
        ghost.eval()
        cases.append({"samples": samples, "size": size, "output": rounded(y), "input_gradient": rounded(x.grad),
                      "weight_gradient": rounded(norm.weight.grad), "bias_gradient": rounded(norm.bias.grad),
                      "running_mean": rounded(norm.running_mean), "running_var": rounded(norm.running_var),
                      "evaluated": rounded(ghost(x))})
    return cases


def selective_goldens():
    module = part("algorithms.selective_backprop.selective_backprop")
    samples, draws, cases = 16, 40000, []
    order = np.random.default_rng(5).permutation(samples)
    for keep in [0.5, 0.3]:
        np.random.seed(1)
        counts = np.zeros(samples)
        inputs, targets = torch.tensor(order).float(), torch.arange(samples)
        for _ in range(draws):
            _, kept = module.select_using_loss(inputs, targets, lambda x: x,
                                               lambda out, y, reduction="none": out, keep)
            counts[kept.numpy()] += 1
        cases.append({"keep": keep, "kept": len(kept), "share": (counts / draws).tolist()})
    seen = []
    images = noise_tensor(3, (4, 3, 10, 14))
    module.select_using_loss(images, torch.arange(4), lambda x: seen.append(x) or x.mean((1, 2, 3)),
                             lambda out, y, reduction="none": out, 0.5, 0.6)
    runs = [[module.should_selective_backprop(step / 40, step % 10, 0.25, 0.8, interrupt)
             for step in range(40)] for interrupt in [0, 2, 3]]
    return {"losses": order.tolist(), "cases": cases, "small_shape": list(seen[0].shape),
            "small": rounded(seen[0]), "runs": runs}


def resize_goldens():
    module = part("algorithms.progressive_resizing.progressive_resizing")
    cases = []
    for options in [{}, {"initial_scale": 0.3, "delay_fraction": 0.1, "finetune_fraction": 0.4,
                         "size_increment": 8}]:
        method, sizes = module.ProgressiveResizing(**options), []
        for step in range(20):
            state = types.SimpleNamespace(
                get_elapsed_duration=lambda: types.SimpleNamespace(value=step / 20),
                batch_get_item=lambda key: torch.zeros(2, 3, 96, 96) if key == 0 else
                torch.zeros(2),
                batch_set_item=lambda key, value: key == 0 and sizes.append(value.shape[3]))
            method.apply(None, state)
        cases.append({"options": options, "sizes": sizes})
    oblong = []  # the width is given, and the height is scaled by the same factor
    for height, width in [(90, 62), (61, 97), (33, 200)]:
        small, _ = module.resize_batch(torch.zeros(1, 1, height, width), torch.zeros(1),
                                       round(width * 0.5 / 4) * 4 / width, "resize")
        oblong.append([height, width, small.shape[2], small.shape[3]])
    image = noise_tensor(4, (1, 2, 12, 12))
    small, _ = module.resize_batch(image, torch.zeros(1), 8 / 12, "resize")
    return {"cases": cases, "oblong": oblong, "small": rounded(small)}


def swa_goldens():
    """Runs Composer's SWA on a batch norm whose tensors are set to noise in every epoch. Like precast, it averages the
    batch statistics, too."""
    module, core = part("algorithms.swa.swa"), sys.modules["composer.core"]
    module.AveragedModel = functools.partial(torch.optim.swa_utils.AveragedModel, use_buffers=True)
    cases = []
    for epochs, start, interval in [(10, 0.7, 1), (8, 0.3, 2), (3, 0.0, 1)]:
        norm = torch.nn.BatchNorm2d(6)
        swa = module.SWA(f"{start}dur", "1dur", f"{interval}ep")
        for epoch in range(1, epochs + 1):
            with torch.no_grad():
                for stream, tensor in enumerate(norm.state_dict().values()):
                    if tensor.is_floating_point():
                        tensor.copy_(noise_tensor(100 * (epoch - 1) + stream, tensor.shape))
            elapsed = core.Time(epoch / epochs, core.TimeUnit.DURATION)
            state = types.SimpleNamespace(model=norm, get_elapsed_duration=lambda: elapsed)
            if swa.match(core.Event.EPOCH_END, state):
                swa.apply(core.Event.EPOCH_END, state, None)
        tensors = [t for t in swa.swa_model.module.state_dict().values() if t.is_floating_point()]
        cases.append({"epochs": epochs, "start": start, "interval": interval,
                      "averages": rounded(torch.cat(tensors))})
    return cases


def excite_convolutions(module, latent_channels, min_channels):
    """Does the same as apply_squeeze_excite, without Composer's module surgery."""
    wrapper = part("algorithms.squeeze_excite.squeeze_excite").SqueezeExciteConv2d
    for name, child in list(module.named_children()):
        if isinstance(child, torch.nn.Conv2d):
            if min(child.in_channels, child.out_channels) >= min_channels:
                setattr(module, name, wrapper.from_conv2d(child, 0, latent_channels))
        else:
            excite_convolutions(child, latent_channels, min_channels)


def excite_goldens():
    cases = []
    for latent_channels, min_channels in [(64, 128), (0.125, 256)]:
        model = torchvision.models.resnet18(num_classes=10)
        excite_convolutions(model, latent_channels, min_channels)
        fill(model)
        images = noise_tensor(1000, (2, 3, 40, 40), 4)
        with torch.no_grad():
            logits = model.eval()(images)
        cases.append({"latent_channels": latent_channels, "min_channels": min_channels,
                      "parameters": sum(p.numel() for p in model.parameters()),
                      "logits": rounded(logits)})
    return cases


def depth_goldens():
    module = part("algorithms.stochastic_depth.stochastic_layers")
    branch = noise_tensor(2, (8, 2, 2, 2))
    outputs = {}
    for mode in ["row", "batch"]:
        torch.manual_seed(11)
        outputs[mode] = [rounded(torchvision.ops.stochastic_depth(branch, 0.4, mode))
                         for _ in range(6)]
    rates = {}
    for distribution in ["linear", "uniform"]:
        blocks = [m for m in torchvision.models.resnet50().modules()
                  if isinstance(m, torchvision.models.resnet.Bottleneck)]
        rates[distribution] = [
            module.make_resnet_bottleneck_stochastic(block, i, len(blocks), 0.2, distribution,
                                                     "block").drop_rate.item()
            for i, block in enumerate(blocks)]
    return {"outputs": outputs, "rates": rates}


def scale_goldens():
    """Calls Composer's schedulers before each step, with scale_schedule_ratio."""
    module, core = part("optim.scheduler"), sys.modules["composer.core"]
    cases = []
    for epochs, ratio, steps in [(8, 0.5, 4), (6, 1.5, 3), (10, 0.3, 7)]:
        scaled = int(epochs * ratio + 1e-9)
        whole = f"{epochs}ep"
        for name, warmup, scheduler in [
                ("cosine", 0, module.CosineAnnealingScheduler(whole)),
                ("poly", 0, module.PolynomialScheduler(2, whole)),
                ("cosine", 2, module.CosineAnnealingWithWarmupScheduler("2ep", whole)),
                ("poly", 2, module.PolynomialWithWarmupScheduler("2ep", 2, whole)),
                ("constant", 2, module.ConstantWithWarmupScheduler("2ep", 1.0, whole)),
                # Like precast's `cyclic`, which however starts at 1e-4 of its rate instead of 0.
                ("cyclic", 2, module.LinearWithWarmupScheduler("2ep", 1.0, 0.0, whole))]:
            rates = [scheduler(types.SimpleNamespace(
                max_duration=core.Time(scaled, core.TimeUnit.EPOCH), dataloader_len=steps,
                timestamp=Now(step, core)), ratio) for step in range(scaled * steps)]
            cases.append({"schedule": name, "warmup_epochs": warmup, "epochs": epochs,
                          "ratio": ratio, "steps": steps, "scaled_epochs": scaled, "lr": rates})
    return cases


class Now:
    """The part of Composer's Timestamp that its schedulers use: the number of steps."""

    def __init__(self, step, core):
        self.time = core.Time(step, core.TimeUnit.BATCH)

    def get(self, unit):
        return self.time

    def __lt__(self, other):
        return self.time < other


def mixing_goldens():
    """Applies torchvision's MixUp and CutMix with given draws, and samples timm's choice between the two."""
    labels = torch.tensor([0, 1, 1, 4])
    images = noise_tensor(6, (4, 3, 8, 12), 4)
    mixups, cutmixes = [], []
    for share in [0.0, 0.3, 0.75, 1.0]:
        out, mixed = with_draws(v2.MixUp(num_classes=5), share)(images, labels)
        mixups.append({"share": share, "images": rounded(out), "labels": rounded(mixed)})
        for x, y in [(0, 0), (5, 3), (11, 7)]:
            out, mixed = with_draws(v2.CutMix(num_classes=5), share, x, y)(images, labels)
            cutmixes.append({"share": share, "x": x, "y": y, "images": rounded(out),
                             "labels": rounded(mixed)})
    choices = []
    for probability, switch in [(1.0, 0.5), (0.8, 0.3)]:
        np.random.seed(3)
        mixer = Mixup(1.0, 1.0, prob=probability, switch_prob=switch, num_classes=3,
                      label_smoothing=0)
        kinds = {"none": [], "mixup": [], "cutmix": []}
        for _ in range(40000):
            share, cut = mixer._params_per_batch()
            if cut:
                _, share = cutmix_bbox_and_lam((3, 3, 64, 64), share)
            kinds["none" if share == 1 and not cut else "cutmix" if cut else "mixup"].append(share)
        choices.append({"probability": probability, "cutmix_share": switch,
                        "frequencies": {k: len(v) / 40000 for k, v in kinds.items()},
                        "own": {k: float(np.mean(kinds[k])) for k in ["mixup", "cutmix"]}})
    return {"mixup": mixups, "cutmix": cutmixes, "choices": choices}


def with_draws(mixing, share, x=0, y=0):
    """Returns `mixing`, a MixUp or CutMix of torchvision, with a fixed share and a fixed centre (x, y) of the box."""
    mixing._dist = types.SimpleNamespace(sample=lambda shape: torch.tensor(share).double())

    def transform(*inputs):
        middle = iter([x, y])
        drawn, torch.randint = torch.randint, lambda bound, size: torch.tensor([next(middle)])
        try:
            return mixing(*inputs)
        finally:
            torch.randint = drawn
    return transform


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    composer(sys.argv[1])
    golden = {"bce": bce_goldens(), "layer_freezing": freezing_goldens(), "sam": sam_goldens(),
              "selective_backprop": selective_goldens(), "batch_resize": resize_goldens(),
              "swa": swa_goldens(), "squeeze_excite": excite_goldens(),
              "stochastic_depth": depth_goldens(), "scale_schedule": scale_goldens(),
              "mixing": mixing_goldens(), "adaptive_gradient_clipping": agc_goldens(),
              "ghost_batch_norm": ghost_goldens()}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items()]
    (FOLDER / "methods.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
