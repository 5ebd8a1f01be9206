#!/usr/bin/env python3
"""Writes the goldens of optimisers, schedules and the method `ema` from their Python peers.

    pip install torch==2.11.0 timm==1.0.31 numpy
    pip download --no-deps mosaicml==0.32.1 && unzip mosaicml-*.whl -d composer
    python tests/golden/make_recipe_goldens.py composer

Writes recipes/{optimizers,schedules}.json to the folder of this script. The peers are torch's AdamW, AveragedModel and
schedulers; Composer's DecoupledSGDW, whose file needs nothing else from the wheel; and timm's Lars and Lamb. timm
differs from precast in two details:

- timm's Lars multiplies by the learning rate after the momentum; You et al. (2017), MLPerf and precast do so before it.
  With a rate of 1 and a trust coefficient multiplied by the rate, timm computes the latter.
- In timm, the weight decay of a group decides whether it is adapted. precast adapts tensors of two or more dimensions;
  all others are updated by the plain optimiser: SGD in LARS, AdamW in LAMB.
"""

import importlib.util
import json
import pathlib
import sys
import types

import torch
from timm.optim import Lamb, Lars
from torch.optim import lr_scheduler

from toy_model import flat, noise_tensor, toy_gradients, toy_parameters

FOLDER = pathlib.Path(__file__).parent / "recipes"
STEPS = 50


def decoupled_sgdw(composer):
    """Returns the class from an unpacked wheel. Its file imports only a module for reports, which is not needed."""
    sys.modules["composer"] = types.ModuleType("composer")
    sys.modules["composer.utils"] = types.ModuleType("composer.utils")
    sys.modules["composer.utils"].dist = None
    path = pathlib.Path(composer) / "composer/optim/decoupled_weight_decay.py"
    spec = importlib.util.spec_from_file_location("decoupled_weight_decay", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DecoupledSGDW


def grouped(parameters, options):
    """Returns a dict: (weight decay, whether a tensor has two or more dimensions) -> parameters."""
    groups = {}
    for name, parameter in parameters.items():
        matrix = parameter.dim() >= 2
        decays = matrix if options["decay_groups"] == "clean" else "bn" not in name
        key = (options["weight_decay"] if decays else 0.0, matrix)
        groups.setdefault(key, []).append(parameter)
    return groups


def sgdw(parameters, options, composer):
    groups = [{"params": p, "weight_decay": decay}
              for (decay, _), p in grouped(parameters, options).items()]
    optimizer = decoupled_sgdw(composer)(groups, lr=options["peak_lr"],
                                         momentum=options["momentum"],
                                         nesterov=options["nesterov"])

    def step(lr):
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
    return step


def adamw(parameters, options):
    groups = [{"params": p, "weight_decay": decay}
              for (decay, _), p in grouped(parameters, options).items()]
    optimizer = torch.optim.AdamW(groups, betas=(options["beta1"], options["beta2"]),
                                  eps=options["epsilon"])

    def step(lr):
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
    return step


def lars(parameters, options):
    groups = grouped(parameters, options)
    settings = {"lr": 1, "momentum": options["momentum"], "nesterov": options["nesterov"]}
    adapted = [Lars(p, weight_decay=decay, always_adapt=True, eps=options["epsilon"], **settings)
               for (decay, matrix), p in groups.items() if matrix]
    plain = [(torch.optim.SGD(p, **settings), decay)
             for (decay, matrix), p in groups.items() if not matrix]

    def step(lr):
        for optimizer in adapted:
            optimizer.param_groups[0]["trust_coeff"] = lr * options["trust_coefficient"]
            optimizer.step()
        for optimizer, decay in plain:
            group = optimizer.param_groups[0]
            group["weight_decay"] = lr * decay
            for parameter in group["params"]:
                parameter.grad *= lr
            optimizer.step()
    return step


def lamb(parameters, options):
    settings = {"betas": (options["beta1"], options["beta2"]), "eps": options["epsilon"]}
    optimizers = [Lamb(p, weight_decay=decay, always_adapt=True, max_grad_norm=None, **settings)
                  if matrix else torch.optim.AdamW(p, weight_decay=decay, **settings)
                  for (decay, matrix), p in grouped(parameters, options).items()]

    def step(lr):
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = lr
            optimizer.step()
    return step


def trained(make, options, *more):
    """Returns the parameters after STEPS steps. The learning rate falls linearly from its peak."""
    parameters = toy_parameters()
    step = make(parameters, options, *more)
    for number in range(STEPS):
        toy_gradients(parameters, number)
        step(options["peak_lr"] * (STEPS - number) / STEPS)
    return {"optimizer": make.__name__, "options": options,
            "parameters": [float(f"{x:.9g}") for x in flat(parameters.values())]}


def optimizer_goldens(composer):
    cases = {}
    for groups in ["legacy", "clean"]:
        decay = {"weight_decay": 0.05, "decay_groups": groups}
        momentum = {"momentum": 0.9, **decay}
        moments = {"beta1": 0.9, "beta2": 0.99, **decay}
        cases["sgdw_" + groups] = trained(
            sgdw, {"peak_lr": 0.2, "nesterov": groups == "clean", **momentum}, composer)
        cases["adamw_" + groups] = trained(
            adamw, {"peak_lr": 0.02, "epsilon": 1e-8, **moments})
        cases["lars_" + groups] = trained(
            lars, {"peak_lr": 0.2, "epsilon": 1e-8, "trust_coefficient": 0.2,
                   "nesterov": groups == "clean", **momentum})
        cases["lamb_" + groups] = trained(
            lamb, {"peak_lr": 0.05, "epsilon": 1e-6, **moments})
    return {"steps": STEPS, "cases": cases, "ema": {"decay": 0.9, "averages": average(0.9)}}


def average(decay):
    """Returns the averages of a batch norm whose tensors are set to noise before each update."""
    swa = torch.optim.swa_utils
    norm = torch.nn.BatchNorm2d(6)
    averaged = swa.AveragedModel(norm, multi_avg_fn=swa.get_ema_multi_avg_fn(decay),
                                 use_buffers=True)
    for step in range(STEPS):
        with torch.no_grad():
            for stream, tensor in enumerate(norm.state_dict().values()):
                if tensor.is_floating_point():
                    tensor.copy_(noise_tensor(100 * step + stream, tensor.shape))
        averaged.update_parameters(norm)
    return flat(t for t in averaged.module.state_dict().values() if t.is_floating_point())


def rates(options, steps_per_epoch, make):
    """Returns the learning rate that torch's scheduler sets for each step."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=options["lr"])
    steps = options["epochs"] * steps_per_epoch
    scheduler = make(optimizer, options, steps, options["warmup_epochs"] * steps_per_epoch)
    sequence = []
    for _ in range(steps):
        sequence.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return {"options": options, "steps_per_epoch": steps_per_epoch, "lr": sequence}


def after_warmup(optimizer, warmup, schedule):
    if warmup == 0:
        return schedule
    rise = lr_scheduler.LambdaLR(optimizer, lambda step: step / warmup)
    return lr_scheduler.SequentialLR(optimizer, [rise, schedule], [warmup])


def cosine(optimizer, options, steps, warmup):
    return after_warmup(optimizer, warmup, lr_scheduler.CosineAnnealingLR(
        optimizer, steps - warmup, options["final_lr"]))


def poly(optimizer, options, steps, warmup):
    return after_warmup(optimizer, warmup, lr_scheduler.PolynomialLR(
        optimizer, steps - warmup, options["power"]))


def constant(optimizer, options, steps, warmup):
    return after_warmup(optimizer, warmup, lr_scheduler.ConstantLR(optimizer, 1, 1))


def one_cycle(optimizer, options, steps, warmup):
    return lr_scheduler.OneCycleLR(
        optimizer, options["lr"], total_steps=steps, pct_start=options["pct_start"],
        div_factor=options["div_factor"], final_div_factor=options["final_div_factor"],
        cycle_momentum=False)


def schedule_goldens():
    plain = {"lr": 0.5, "epochs": 6, "warmup_epochs": 0}
    warm = {"lr": 1.7, "epochs": 9, "warmup_epochs": 2}
    cycle = {"final_div_factor": 1e4, **plain}
    return {
        "cosine": [rates({"final_lr": 0.0, **plain}, 7, cosine),
                   rates({"final_lr": 0.01, **warm}, 11, cosine)],
        "poly": [rates({"power": 2.0, **plain}, 7, poly), rates({"power": 1.5, **warm}, 11, poly)],
        "constant": [rates(plain, 3, constant), rates(warm, 5, constant)],
        "one_cycle": [rates({"pct_start": 0.3, "div_factor": 25.0, **cycle}, 7, one_cycle),
                      rates({"pct_start": 0.25, "div_factor": 10.0, **cycle}, 13, one_cycle),
                      rates({"pct_start": 0.0, "div_factor": 25.0, **cycle}, 5, one_cycle)],
    }


def write(path, golden):
    (FOLDER / path).write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    write("optimizers.json", optimizer_goldens(sys.argv[1]))
    write("schedules.json", schedule_goldens())
