#!/usr/bin/env python3
"""Measures the epoch time of the C++ solver, and of its Python twin with PyTorch's DataLoader and with FFCV's loader.

    python3 measure.py FILE.beton --program BUILD/sparse_regression [options]

FILE.beton and its arrays must be written by `sparse_regression make --npy`. The programs run in alternation on the
same cores. With --limit-mb, they run in a control group (v1 or v2) with that much memory, including the page cache of
the files that they read; creating a group needs root. --cold removes the files from the page cache before each run.
Prints one JSON line per run, then the medians. Run it with a Python that has torch and ffcv (.venv-peers of
tools/peers/setup).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


class MemoryGroup:
    """A control group with a memory limit. If `megabytes` is 0, there is no group and no limit."""

    def __init__(self, megabytes):
        self.folder = None
        if not megabytes:
            return
        v1 = pathlib.Path("/sys/fs/cgroup/memory")
        names = ("memory.limit_in_bytes", "memory.max_usage_in_bytes") if v1.exists() else ("memory.max", "memory.peak")
        self.limit, self.peak = names
        self.folder = (v1 if v1.exists() else pathlib.Path("/sys/fs/cgroup")) / f"sparse_regression_{os.getpid()}"
        self.folder.mkdir()
        (self.folder / self.limit).write_text(str(megabytes << 20))

    def enter(self):
        if self.folder:
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        """Removes the group. @return its peak memory in bytes, including the page cache."""
        if not self.folder:
            return None
        peak = int((self.folder / self.peak).read_text())
        self.folder.rmdir()
        return peak


def forget(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def run(name, command, files, options, cores):
    if options.cold:
        for file in files:
            forget(file)
    group = MemoryGroup(options.limit_mb)

    def prepare():
        group.enter()
        os.sched_setaffinity(0, cores)

    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               preexec_fn=prepare)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    peak = group.close()
    code = os.waitstatus_to_exitcode(status)
    if code:
        return {"program": name, "exit_code": code, "group_peak_bytes": peak}
    result = json.loads(text.splitlines()[-1])
    keys = ("epoch_seconds", "passes", "pass_seconds", "seconds_waited", "preparation_seconds", "peak_resident_bytes")
    return {"program": name, "exit_code": 0} | {key: result[key] for key in keys} | {
        "cpu_seconds": usage.ru_utime + usage.ru_stime, "group_peak_bytes": peak,
        "objective": result["path"][-1]["objective"], "relative_gap": result["path"][-1]["relative_gap"]}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Options without a description are those of `sparse_regression solve`.")
    parser.add_argument("file", type=pathlib.Path, help="FILE.beton, next to FILE.beton.x.npy and FILE.beton.y.npy")
    parser.add_argument("--program", required=True, help="the built sparse_regression")
    parser.add_argument("--only", default="precast,torch,ffcv",
                        help="programs to measure, separated by commas (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="number of runs of each program (default %(default)s)")
    parser.add_argument("--cores", type=int, default=0, help="number of cores that the programs may use; 0: all")
    parser.add_argument("--limit-mb", type=int, default=0,
                        help="memory limit of each program in MiB, including its page cache; 0: none")
    parser.add_argument("--memory-mb", type=int, default=1024,
                        help="--memory-mb of the C++ solver, in MiB (default %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="number of threads or processes that read")
    parser.add_argument("--threads", type=int, default=0, help="number of threads that compute; 0: one per core")
    parser.add_argument("--cold", action="store_true", help="remove the files from the page cache before each run")
    parser.add_argument("--lambdas", type=int, default=3)
    parser.add_argument("--max-epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--tolerance", type=float, default=1e-5)
    options = parser.parse_args()

    cores = sorted(os.sched_getaffinity(0))
    cores = set(cores[:options.cores] if options.cores else cores)
    x, y = (pathlib.Path(f"{options.file}.{name}.npy") for name in "xy")
    solver = ["--lambdas", options.lambdas, "--max-epochs", options.max_epochs, "--batch-size", options.batch_size,
              "--tolerance", options.tolerance, "--workers", options.workers,
              "--threads", options.threads or len(cores)]
    twin = [sys.executable, HERE / "twin.py"]
    programs = {
        "precast": ([options.program, "solve", options.file, "--json", "--memory-mb", options.memory_mb, *solver],
                    [options.file]),
        "torch": ([*twin, x, y, *solver], [x, y]),
        "ffcv": ([*twin, options.file, y, "--loader", "ffcv", *solver], [options.file, y])}
    runs = {name: [] for name in options.only.split(",")}
    for _ in range(options.rounds):
        for name, results in runs.items():
            results.append(run(name, *programs[name], options, cores))
            print(json.dumps(results[-1]), flush=True)
    for name, results in runs.items():
        times = [result["epoch_seconds"] for result in results if result["exit_code"] == 0]
        if times:
            print(f"{name:8}  epoch {statistics.median(times):8.3f} s  "
                  f"(lowest {min(times):.3f}, highest {max(times):.3f}, {len(times)} runs)")
    return any(result["exit_code"] for results in runs.values() for result in results)


if __name__ == "__main__":
    sys.exit(main())
