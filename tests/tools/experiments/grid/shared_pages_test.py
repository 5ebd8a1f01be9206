#!/usr/bin/env python3
"""Checks that two trials of a grid that train on one file at the same time share its pages in memory.

    shared_pages_test.py BUILD_DIR
"""
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def write_images(folder, count, side):
    """Writes an IDX pair of noise, which cannot be compressed."""
    random.seed(0)
    images, labels = folder / "images", folder / "labels"
    images.write_bytes(struct.pack(">IIII", 0x803, count, side, side) + random.randbytes(count * side * side))
    labels.write_bytes(struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count)))
    # precast write finds the labels through the names of the files.
    images = images.rename(folder / "train-images-idx3-ubyte")
    labels.rename(folder / "train-labels-idx1-ubyte")
    return images


def mapped(pid, file):
    """Bytes of `file` in memory that the process maps, and its proportional share of them."""
    resident = share = 0
    inside = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = line.endswith(file.name)
        elif inside and line.startswith("Rss:"):
            resident += int(line.split()[1]) * 1024
        elif inside and line.startswith("Pss:"):
            share += int(line.split()[1]) * 1024
    return resident, share


def trainings(parent, program):
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "stat").read_text()
            its_parent = int(status[status.rindex(")") + 2:].split()[1])
            if its_parent == parent and os.readlink(entry / "exe").endswith(program):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def main(build):
    precast = build / "bin/precast"
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        data, val = scratch / "d.beton", scratch / "v.beton"
        images = write_images(scratch, 20000, 56)
        subprocess.run([precast, "write", images, data, "--image.mode", "raw"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([precast, "write", images, val, "--image.mode", "raw", "--subset", "100"], check=True,
                       stdout=subprocess.DEVNULL)
        (scratch / "recipe.yaml").write_text(f"""
data: {{train_dataset: {data}, val_dataset: {val}}}
resolution: {{min_res: 8, max_res: 8}}
training: {{batch_size: 256, epochs: 1000, device: cpu}}
validation: {{resolution: 8}}
""")
        sweep = scratch / "sweep.yaml"
        sweep.write_text(f"""
recipe: {scratch}/recipe.yaml
folder: {scratch}/grid
axes: {{lr.lr: [0.01, 0.02]}}
grid: {{devices: cpu, slots_per_device: 2, cores_per_slot: 1}}
""")
        grid = subprocess.Popen([precast, "grid", sweep], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            size = data.stat().st_size
            deadline = time.monotonic() + 300
            figures = []
            while len(figures) < 2 or min(resident for resident, _ in figures) < 0.9 * size:
                assert grid.poll() is None and time.monotonic() < deadline, figures
                time.sleep(0.2)
                figures = [mapped(pid, data) for pid in trainings(grid.pid, "precast-train")]
            together = sum(share for _, share in figures)
            print(f"file {size / 1e6:.1f} MB; resident in each process " +
                  ", ".join(f"{r / 1e6:.1f}" for r, _ in figures) +
                  f" MB; sum of the proportional shares (Pss) {together / 1e6:.1f} MB")
            assert together <= 1.02 * size
        finally:
            grid.send_signal(signal.SIGINT)
            assert grid.wait() == 85


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
