#!/usr/bin/env python3
"""Starts the ranks of a training run without a launcher, kills the last rank, and watches the other ranks.

    kill_rank.py --ranks N --at_step S --limit SECONDS --run FOLDER -- precast train ...

The run folder FOLDER is removed first, because a run that is already complete would take no step.
The last rank kills itself (SIGKILL) before step S. Each other rank must exit with code 13 (another rank
failed) within the limit, and one of them must name the cause. Prints JSON. Exit codes: 0 if the ranks
behaved as expected, 1 if not, 6 if all ranks found no GPU.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PEER_FAILED, NO_GPU = 13, 6
WAIT_FOR_DEATH_S = 80


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def rank_environment(rank, ranks, port, at_step):
    """Returns the environment of a rank: the variables that torchrun sets, and the failpoint."""
    cores = max(1, len(os.sched_getaffinity(0)) // ranks)
    return os.environ | {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": str(cores),
        "PRECAST_FAILPOINTS": f"trainer.before_step=kill@{at_step}%{ranks - 1}"}


def start(args, folder):
    port = free_port()
    processes = []
    for rank in range(args.ranks):
        with open(folder / str(rank), "wb") as log:
            processes.append(subprocess.Popen(args.command, stdout=log, stderr=log,
                                              env=rank_environment(rank, args.ranks, port, args.at_step)))
    return processes


def wait(processes, seconds):
    """Waits for the processes. @return whether all of them have ended within `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if all(process.poll() is not None for process in processes):
            return True
        time.sleep(0.05)
    return False


def watch(args, folder):
    processes = start(args, folder)
    try:
        died = wait(processes[-1:], WAIT_FOR_DEATH_S)
        begin = time.monotonic()
        ended = died and wait(processes, args.limit)
        seconds = time.monotonic() - begin
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
    codes = [process.returncode for process in processes]
    errors = [line for rank in range(args.ranks - 1)
              for line in (folder / str(rank)).read_text(errors="replace").splitlines()
              if "error" in line]
    figures = {"ranks": args.ranks, "codes": codes, "seconds_to_end": round(seconds, 2), "cause": errors}
    right = (ended and codes[-1] == -signal.SIGKILL and codes[:-1] == [PEER_FAILED] * (args.ranks - 1)
             and (args.ranks == 1 or any("rank" in line for line in errors)))
    return figures, right


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, required=True, help="number of ranks to start")
    parser.add_argument("--at_step", type=int, required=True, help="step before which the last rank kills itself")
    parser.add_argument("--limit", type=float, required=True, help="seconds in which the other ranks must exit")
    parser.add_argument("--run", required=True, help="the run folder, which is deleted first")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    args.command = [part for part in args.command if part != "--"]
    shutil.rmtree(args.run, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        figures, right = watch(args, folder)
        if not right:
            for rank in range(args.ranks):
                print(f"rank {rank}: {(folder / str(rank)).read_text(errors='replace')[-1500:]}",
                      file=sys.stderr)
    print(json.dumps(figures))
    if set(figures["codes"]) == {NO_GPU}:
        return NO_GPU
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
