#!/usr/bin/env python3
"""Trains rows of configs/imagenet/table.yaml on a dataset with ImageNet's number of samples, with 8 ranks on the CPU
and a tiny network, and prints the times of start-up, steps and pauses between epochs, memory use and the size of
checkpoints. With --kill, a second table is killed twice (SIGKILL for all its processes, after numbers of steps drawn
from --seed) and continued; its figures, logs and weights must equal those of the first.

    run.py BUILD_DIR FOLDER [--rows LIST] [--order random,quasi_random] [--kill] [--seed N] [--section.key=value ...]
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from make_dataset import make

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/tools/experiments/reproduce"))
from reproduce_kill_test import table_of  # noqa: E402

RANKS = 8
NETWORK = ("{layers: [avg_pool: {kernel: 4}, conv: {out: 16, stride: 2}, bn, relu, conv: {out: 32, stride: 2}, bn, "
           "relu, global_avg_pool, flatten, linear]}")
KEYS = {"model.arch": "layers", "model.params": NETWORK, "resolution.min_res": 32, "resolution.max_res": 32,
        "validation.resolution": 32, "training.device": "cpu", "training.distributed": 1, "dist.world_size": RANKS,
        "training.batch_size": 512, "training.epochs": 2, "lr.lr_peak_epoch": 1, "data.num_workers": 1,
        "logging.every": 1, "logging.log_level": 1, "checkpoint.every_steps": 100}


def children(pid):
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    except OSError:
        pass  # the process has ended
    return found


def tree(pid):
    return [pid] + [below for child in children(pid) for below in tree(child)]


def memory_mb(pid):
    """A process's private memory and its share of all memory that it maps (Pss), in MiB; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    kb = {key: int(value) for key, value in re.findall(r"^(\w+): +(\d+) kB", text, re.M)}
    # Only dirty pages: clean pages of a file are also private if only one process happens to map them.
    return kb["Private_Dirty"] / 1024, kb["Pss"] / 1024


class Watch:
    """The peak memory of a tree of processes, sampled twice a second."""

    def __init__(self, pid):
        self.pid, self.stopped = pid, threading.Event()
        self.rank_mb = self.launcher_mb = self.host_mb = self.sharing = self.indexes = 0
        self.thread = threading.Thread(target=self.sample)
        self.thread.start()

    def sample(self):
        while not self.stopped.wait(0.5):
            of = {pid: memory_mb(pid) for pid in tree(self.pid)}
            of = {pid: memory for pid, memory in of.items() if memory}
            self.host_mb = max(self.host_mb, sum(pss for _, pss in of.values()))
            launchers = [pid for pid in of if len(children(pid)) == RANKS]
            for launcher in launchers:
                self.launcher_mb = max(self.launcher_mb, of[launcher][0])
                ranks = [of[pid][0] for pid in children(launcher) if pid in of]
                self.rank_mb = max([self.rank_mb, *ranks])
                inodes, mapped = indexes(children(launcher))
                self.sharing = max(self.sharing, mapped)
                self.indexes = max(self.indexes, len(inodes))

    def stop(self):
        self.stopped.set()
        self.thread.join()


def command(build, data, folder, rows, order, keys):
    return [str(build / "bin/precast"), "reproduce", str(ROOT / "configs/imagenet/table.yaml"), "--folder", str(folder),
            *(["--rows", rows] if rows else []), f"--data.order={order}", f"--data.train_dataset={data[0]}",
            f"--data.val_dataset={data[1]}", *(f"--{key}={value}" for key, value in KEYS.items()), *keys]


def lines_of(run):
    return [json.loads(line) for line in (run / "log").read_text().splitlines()]


def describe(folder):
    """Prints each row's times and the size of its checkpoint."""
    records = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    starts = {record["trial"]: record["time"] for record in records if record["event"] == "start"}
    for run in sorted(path.parent for path in folder.glob("*/log")):
        lines = lines_of(run)
        steps = [line for line in lines if "step" in line]
        passes = [line for line in lines if "val_time" in line]
        pairs = list(zip(steps, steps[1:], strict=False))
        times = sorted(b["timestamp"] - a["timestamp"] for a, b in pairs)
        gaps = [b["timestamp"] - a["timestamp"] for a, b in pairs if b["epoch"] > a["epoch"]]
        between = [f"{gap - line['val_time']:.2f}" for gap, line in zip(gaps, passes, strict=False)]
        saved = sum(file.stat().st_size for file in next((run / "checkpoints").glob("ckpt-*")).iterdir())
        print(f"  {run.name}: first step after {steps[0]['timestamp'] - starts[run.name]:.1f} s, "
              f"{len(steps)} steps of {times[len(times) // 2] * 1000:.0f} ms (median), between epochs "
              f"{', '.join(between)} s and evaluation "
              f"{passes[0]['val_time']:.2f} s, checkpoint {saved / 1e6:.2f} MB", flush=True)


def run_whole(arguments, seconds):
    before = os.times()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    watch = Watch(process.pid)
    code = process.wait()
    watch.stop()
    after = os.times()
    assert code == 0, f"expected exit code 0, got {code}"
    assert (watch.sharing, watch.indexes) == (RANKS, 1), (
        f"expected {RANKS} ranks that share 1 JPEG index, got {watch.sharing} ranks and {watch.indexes} indexes")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"  {time.monotonic() - seconds:.0f} s, {cpu:.0f} CPU s; private memory: launcher (libtorch alone) "
          f"{watch.launcher_mb:.0f} MiB, largest rank {watch.rank_mb:.0f} MiB; all processes {watch.host_mb:.0f} MiB; "
          f"{watch.sharing} ranks share a JPEG index",
          flush=True)


def kill_after_steps(arguments, folder, steps):
    """Sends SIGKILL to every process of the table as soon as its rows have logged `steps` steps."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    logged = 0
    while logged < steps:
        assert process.poll() is None, f"expected {steps} steps, got exit code {process.returncode} after {logged}"
        time.sleep(0.05)
        logged = sum(log.read_text().count('"step"') for log in folder.glob("*/log"))
    victims = tree(process.pid)
    for pid in victims:
        os.kill(pid, signal.SIGSTOP)  # so that no process reacts to the end of another
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    print(f"  killed {len(victims)} processes after {logged} steps", flush=True)


def indexes(pids):
    """The inodes of the in-memory JPEG indexes that these processes map, and the number of mappings."""
    found = []
    for pid in pids:
        try:
            maps = Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            continue  # the process has ended
        found += {line.split()[4] for line in maps.splitlines() if "memfd:precast-jpeg-index" in line}
    return set(found), len(found)


def check_order(options, data, order, keys):
    folders = [options.folder / f"{name}-{order}" for name in ("whole", "killed")]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    arguments = [command(options.build, data, folder, options.rows, order, keys) for folder in folders]
    print(f"{order}:", flush=True)
    run_whole(arguments[0], time.monotonic())
    describe(folders[0])
    if not options.kill:
        return
    whole = table_of(folders[0])
    steps = sum(sum("step" in line for line in row["log"]) for row in whole.values())
    draw = random.Random(f"{options.seed} {order}")
    for moment in sorted(draw.sample(range(1, steps), 2)):
        kill_after_steps(arguments[1], folders[1], moment)
    run_whole(arguments[1], time.monotonic())
    assert table_of(folders[1]) == whole, "expected the killed table to equal the uninterrupted one, got a difference"
    print(f"  {len(whole)} rows, {steps} steps: figures, logs and weights are bitwise identical", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", default="rn50_16,rn18_16")
    parser.add_argument("--order", default="random,quasi_random")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options, keys = parser.parse_known_args()
    options.build = options.build.resolve()
    data = make(options.build, options.folder / "data")
    begin = time.monotonic()
    planned = subprocess.run([*command(options.build, data, options.folder / "planned", "", "random", keys),
                              "--dry-run"], check=True, capture_output=True, text=True).stdout
    print(f"plan: {planned.count('--logging.run_id=')} rows in {time.monotonic() - begin:.1f} s", flush=True)
    assert planned.count("--logging.run_id=") == 12, planned
    for order in options.order.split(","):
        check_order(options, data, order, keys)


if __name__ == "__main__":
    main()
