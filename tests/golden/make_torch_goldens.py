"""Writes the weights files of tests/golden/torch with the real torch, and descriptions of their contents.

    .venv/bin/python tests/golden/make_torch_goldens.py

For each NAME.pt, NAME.json contains either the tensors that precast must find in the file, in order, each with dtype,
shape and bytes (hexadecimal, C order), or a fact that precast's error message must contain.
"""

import argparse
import collections
import json
import pathlib

import numpy
import torch

FOLDER = pathlib.Path(__file__).parent / "torch"


def describe(tensor):
    flat = tensor.detach().contiguous().reshape(-1)
    raw = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "bytes": raw.hex(),
    }


def save(name, saved, expected, **options):
    torch.save(saved, FOLDER / f"{name}.pt", **options)
    tensors = [{"name": key, **describe(value)} for key, value in expected.items()]
    (FOLDER / f"{name}.json").write_text(json.dumps({"tensors": tensors}, indent=1) + "\n")


def refuse(name, saved, words, **options):
    torch.save(saved, FOLDER / f"{name}.pt", **options)
    (FOLDER / f"{name}.json").write_text(json.dumps({"error": words}, indent=1) + "\n")


def small_net():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, bias=False), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(4, 2)
    )


def main():
    FOLDER.mkdir(exist_ok=True)
    net = small_net()
    state = net.state_dict()
    save("state_dict", state, state)
    save("plain_dict", dict(state), state)

    last = small_net().to(memory_format=torch.channels_last).state_dict()
    save("channels_last", last, last)

    torch.manual_seed(2)
    numbers = torch.randn(2, 3)
    dtypes = collections.OrderedDict()
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        dtypes[str(dtype)] = numbers.to(dtype)
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        dtypes[str(dtype)] = torch.arange(5).to(dtype)
    dtypes["bool"] = torch.tensor([True, False, True])
    dtypes["int64 scalar"] = torch.tensor(-(2**40))
    dtypes["empty"] = torch.zeros(0, 3)
    save("dtypes", dtypes, dtypes)

    base = torch.arange(24.0)
    views = {
        "whole": base,
        "tail": base[20:],
        "every second": base[1::2],
        "transposed": base.view(4, 6).t(),
        "expanded": torch.tensor([7.0, 8.0]).unsqueeze(1).expand(2, 3),
    }
    save("views", views, views)

    parameters = {"w": torch.nn.Parameter(torch.ones(2, 2)), "frozen": torch.nn.Parameter(torch.zeros(1), False)}
    save("parameters", parameters, parameters)

    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net(torch.randn(2, 3, 3, 3)).sum().backward()
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    state = net.state_dict()
    save(
        "checkpoint",
        {
            "epoch": 3,
            "arch": "resnet18",
            "best_acc1": torch.tensor(71.5),
            "seed": 2**64 - 1,
            "loss": 1.25,
            "state_dict": collections.OrderedDict(("module." + key, value) for key, value in state.items()),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        },
        state,
    )
    save(
        "checkpoint_protocol4",
        {
            "model": {"_orig_mod.module." + key: value for key, value in state.items()},
            "args": argparse.Namespace(lr=0.1, data=pathlib.PosixPath("/data"), size=torch.Size([2, 3])),
            "best": numpy.float64(71.5),
            "seen": {1, 2},
            "device": torch.device("cpu"),
            "nothing": None,
        },
        state,
        pickle_protocol=4,
    )

    torch.serialization.set_crc32_options(False)
    save("without_crc", {"w": torch.ones(3)}, {"w": torch.ones(3)})
    torch.serialization.set_crc32_options(True)

    refuse("legacy", net.state_dict(), "1.6", _use_new_zipfile_serialization=False)
    refuse("whole_module", torch.nn.Linear(1, 1), "torch.nn.modules.linear.Linear")
    refuse("no_tensors", {"epoch": 1, "lr": 0.5}, "epoch, lr")
    refuse("complex", {"w": torch.ones(2, dtype=torch.complex64)}, "torch.ComplexFloatStorage")
    torch.jit.script(torch.nn.Linear(1, 1)).save(FOLDER / "script.pt")
    (FOLDER / "script.json").write_text(json.dumps({"error": "TorchScript"}) + "\n")


if __name__ == "__main__":
    main()
