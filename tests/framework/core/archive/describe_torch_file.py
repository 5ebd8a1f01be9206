"""Prints the tensors that torch.load(weights_only=True) reads from a file, as one JSON document."""

import collections
import json
import sys
import zipfile

import torch

loaded = torch.load(sys.argv[1], weights_only=True)
assert isinstance(loaded, collections.OrderedDict), type(loaded)
assert zipfile.ZipFile(sys.argv[1]).testzip() is None
mapped = torch.load(sys.argv[1], weights_only=True, mmap=True)
tensors = []
for name, tensor in loaded.items():
    assert tensor.is_contiguous() and not tensor.requires_grad
    flat = tensor.reshape(-1)
    raw = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    twin = mapped[name].reshape(-1)
    assert (twin.view(torch.uint8).numpy().tobytes() if twin.numel() else b"") == raw
    tensors.append(
        {"name": name, "dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
         "bytes": raw.hex()}
    )
print(json.dumps({"tensors": tensors}))
