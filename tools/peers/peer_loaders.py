#!/usr/bin/env python3
"""Runs one loader of another system in a separate process, and measures it on request.

    peer_loaders.py PEER '{"source": ..., "workers": 1, "side": 176, "batch": 256, "format": "u8", "seconds": 3,
                           "slow_disk": false}'

bench_loader.py starts this process and exchanges lines of JSON with it: the process writes {"ready": true} when
its loader has warmed up (compiled, started its workers, filled its queues), and answers each line that it reads
with a measurement. If the loader fails, the process writes {"error": TEXT} instead. There is one class per peer, which
uses the peer as its documentation shows for training on a CPU: random resized crop, flip, and uint8 or normalised
float16.
"""
import collections
import contextlib
import gc
import itertools
import json
import os
import pathlib
import sys
import time

# ImageNet's mean and standard deviation, on a scale of 0 to 255.
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


def family():
    """This process and its living children."""
    children = [c for f in pathlib.Path("/proc/self/task").glob("*/children") for c in f.read_text().split()]
    return ["self", *children]


def cpu_seconds():
    """CPU seconds (user and system) of this process and its living children."""
    mine = os.times()
    total = mine.user + mine.system
    for child in family()[1:]:
        fields = pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def memory():
    """Memory of this process and its living children in bytes, as in tools/bench/process_memory.h: peak resident,
    proportional (PSS), and the part of PSS that is not backed by a file."""
    def kilobytes(file, name):
        return sum(int(line.split()[1]) for p in family()
                   for line in pathlib.Path(f"/proc/{p}/{file}").read_text().splitlines()
                   if line.startswith(name + ":"))
    # Linux before 5.4 has no Pss_Anon; Anonymous counts shared pages in full.
    anonymous = kilobytes("smaps_rollup", "Pss_Anon") or kilobytes("smaps_rollup", "Anonymous")
    return {"peak_resident_bytes": 1024 * kilobytes("status", "VmHWM"),
            "proportional_bytes": 1024 * kilobytes("smaps_rollup", "Pss"),
            "anonymous_bytes": 1024 * anonymous}


def torch_transform(side, format):
    import torch
    from torchvision import transforms

    steps = [transforms.RandomResizedCrop(side), transforms.RandomHorizontalFlip()]
    if format == "u8":
        return transforms.Compose([*steps, transforms.PILToTensor()])
    normalise = transforms.Normalize([m / 255 for m in MEAN], [s / 255 for s in STD])
    return transforms.Compose([*steps, transforms.ToTensor(), normalise, lambda image: image.to(torch.float16)])


class Peer:
    """samples: number of samples of the dataset; set_length(passes): sets how many passes batches() makes; batches():
    yields the number of images of each batch; ahead: number of batches that may be loaded before they are requested."""

    ahead = 0

    def unmap(self):
        """Closes mapped files, because mapped pages cannot be dropped from the page cache."""


class Ffcv(Peer):
    """FFCV as recommended for files that fit in memory: from the page cache (os_cache), order RANDOM."""

    order, os_cache = "RANDOM", True
    # FFCV loads three batches ahead. In each pass it allocates memory for five new batches, and the first write to each
    # memory page takes additional time.
    ahead = 5

    def __init__(self, spec):
        import numpy as np
        from ffcv.fields.basics import IntDecoder
        from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
        from ffcv.loader import Loader, OrderOption
        from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToTensor

        side = spec["side"]
        normalise = [] if spec["format"] == "u8" else [NormalizeImage(np.array(MEAN), np.array(STD), np.float16)]
        self.loader = Loader(
            spec["source"], batch_size=spec["batch"], num_workers=spec["workers"], os_cache=self.os_cache,
            order=OrderOption[self.order], drop_last=False,
            pipelines={"image": [RandomResizedCropRGBImageDecoder((side, side)), RandomHorizontalFlip(), *normalise,
                                 ToTensor()],
                       "label": [IntDecoder(), ToTensor(), Squeeze()]})
        self.samples = len(self.loader.indices)

    def set_length(self, passes):
        import numpy as np

        self.loader.indices = np.tile(np.arange(self.samples, dtype="uint64"), passes)
        self.loader.traversal_order.indices = self.loader.indices
        self.loader.first_traversal_order = self.loader.next_traversal_order()  # its length sets the number of batches

    def batches(self):
        return (len(label) for _, label in self.loader)

    def unmap(self):
        self.loader.memory_manager.context.mmap = None
        gc.collect()


class FfcvQuasi(Ffcv):
    """FFCV as recommended for files larger than memory: its own cache, order QUASI_RANDOM."""

    order, os_cache = "QUASI_RANDOM", False

    def unmap(self):
        pass  # reads the file without mapping it


class JpegFiles:
    """A torch dataset of the files of a folder, repeated `passes` times."""

    def __init__(self, folder, transform):
        self.files = sorted(map(str, pathlib.Path(folder).glob("*.jpg")))
        self.transform, self.passes = transform, 1

    def __len__(self):
        return self.passes * len(self.files)

    def __getitem__(self, index):
        from PIL import Image

        number = index % len(self.files)
        with Image.open(self.files[number]) as image:
            return self.transform(image.convert("RGB")), number


class Torchvision(Peer):
    """DataLoader on files; with one worker it runs in the main process, its fastest configuration."""

    def __init__(self, spec):
        import torch

        torch.set_num_threads(1)
        workers = spec["workers"]
        self.files = JpegFiles(spec["source"], torch_transform(spec["side"], spec["format"]))
        self.samples, self.ahead = len(self.files), 0 if workers == 1 else 2 * workers
        self.loader = torch.utils.data.DataLoader(
            self.files, batch_size=spec["batch"], shuffle=True, num_workers=0 if workers == 1 else workers,
            persistent_workers=workers > 1)

    def set_length(self, passes):
        self.files.passes = passes  # only the sampler needs the length; workers get indices

    def batches(self):
        return (len(label) for _, label in self.loader)


class Webdataset(Peer):
    """Tar shards, decoded by Pillow, batched in the workers; with one worker it runs in the main process."""

    def __init__(self, spec):
        import torch

        torch.set_num_threads(1)
        self.spec, self.ahead = spec, 0 if spec["workers"] == 1 else 2 * spec["workers"]
        self.shards = sorted(map(str, pathlib.Path(spec["source"]).glob("*.tar")))
        self.samples = json.loads((pathlib.Path(spec["source"]) / "samples.json").read_text())
        self.set_length(1)

    def set_length(self, passes):
        import webdataset as wds

        spec, workers = self.spec, self.spec["workers"]
        dataset = (wds.WebDataset(self.shards * passes, shardshuffle=len(self.shards) * passes, empty_check=False)
                   .shuffle(1000).decode("pil").to_tuple("jpg", "cls")
                   .map_tuple(torch_transform(spec["side"], spec["format"]), int).batched(spec["batch"]))
        self.loader = wds.WebLoader(dataset, batch_size=None, shuffle=False, num_workers=0 if workers == 1 else workers,
                                    persistent_workers=workers > 1)

    def batches(self):
        return (len(image) for image, _ in self.loader)


class Dali(Peer):
    """DALI's CPU operators: they decode only the crop and use the standard (antialiased) resize. Batches stay in DALI's
    memory: passing them to torch would cost another copy. DALI's queues stay full between measurements."""

    ahead = 4

    def __init__(self, spec):
        from nvidia.dali import fn, pipeline_def, types

        side, files = spec["side"], sorted(map(str, pathlib.Path(spec["source"]).glob("*.jpg")))

        @pipeline_def(batch_size=spec["batch"], num_threads=spec["workers"], device_id=None)
        def pipeline():
            # With mmap, the shuffle buffer keeps pages mapped, and mapped pages cannot be dropped from the page cache.
            jpegs, labels = fn.readers.file(
                files=files, labels=list(range(len(files))), random_shuffle=True, dont_use_mmap=spec["slow_disk"],
                name="reader")
            images = fn.decoders.image_random_crop(
                jpegs, device="cpu", output_type=types.RGB, random_aspect_ratio=[3 / 4, 4 / 3], random_area=[0.08, 1.0])
            images, mirror = fn.resize(images, size=(side, side)), fn.random.coin_flip()
            if spec["format"] == "u8":
                return fn.flip(images, horizontal=mirror), labels
            return fn.crop_mirror_normalize(images, dtype=types.FLOAT16, output_layout="HWC", mirror=mirror,
                                            mean=MEAN, std=STD), labels

        self.pipeline, self.batch, self.samples = pipeline(), spec["batch"], len(files)
        self.pipeline.build()
        self.set_length(1)

    def set_length(self, passes):
        self.count = -(-passes * self.samples // self.batch)

    def batches(self):
        return (len(self.pipeline.run()[1]) for _ in range(self.count))


PEERS = {"ffcv": Ffcv, "ffcv_quasi": FfcvQuasi, "torchvision": Torchvision, "webdataset": Webdataset, "dali": Dali}


def measure(peer, whole=False):
    """Returns images, seconds and CPU seconds. Unless `whole`, the measurement starts and ends in the middle of a pass,
    so that batches that are loaded ahead do not distort it. In training, which runs for thousands of batches, they do
    not matter."""
    batches = peer.batches()
    skipped = sum(itertools.islice(batches, 0 if whole else peer.ahead))
    images, recent, last = 0, collections.deque(), (0, 0.0, 0.0)
    cpu, start = cpu_seconds(), time.perf_counter()
    for count in batches:
        images += count
        recent.append((images, time.perf_counter() - start, cpu_seconds() - cpu))
        if len(recent) > (0 if whole else peer.ahead):
            last = recent.popleft()
    images, seconds, used = last
    if not images:
        raise RuntimeError(f"expected more than {2 * peer.ahead} batches, got fewer ({skipped} images skipped)")
    return {"images": images, "seconds": seconds, "cpu_seconds": used}


def prepared(name, spec):
    """Returns a peer that has warmed up, with as many passes as a measurement of about `seconds` needs."""
    peer = PEERS[name](spec)
    edges = 2 * peer.ahead * spec["batch"]
    if spec["slow_disk"]:
        measure(peer, whole=True)  # numba compiles, workers start, queues fill
        return peer
    peer.set_length(-(-(edges + 2 * spec["batch"]) // peer.samples))
    measure(peer)
    # The length is computed from CPU seconds, so that measurements are not cut short on a busy machine.
    run = measure(peer)
    wanted = spec["seconds"] * spec["workers"] * run["images"] / max(run["cpu_seconds"], 0.01)
    peer.set_length(-(-int(max(wanted, 4 * spec["batch"]) + edges) // peer.samples))
    measure(peer)
    return peer


def main():
    name, spec = sys.argv[1], json.loads(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries that print to stdout write to stderr instead
    try:
        peer = prepared(name, spec)
        if spec["slow_disk"]:
            peer.unmap()
        print(json.dumps({"ready": True}), file=answers)
        for _ in sys.stdin:
            answer = measure(peer, spec["slow_disk"]) | memory()
            if spec["slow_disk"]:
                peer.unmap()
            print(json.dumps(answer), file=answers)
    except Exception as error:  # sent to the caller, which continues with the other peers
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answers)
        raise


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
