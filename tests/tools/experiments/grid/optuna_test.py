#!/usr/bin/env python3
"""Runs examples/optuna/optimize.py with the real Optuna and real training runs, stops it once with Ctrl-C and kills it
twice. Each trial must have one result, and the results of three trials must equal those of the same training runs on
their own. Optuna is installed from PyPI into a virtual environment in the build folder.

    optuna_test.py BUILD_DIR
"""
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
OPTUNA = "optuna==5.0.0"


def python_with_optuna(build):
    folder = build / "venv-optuna"
    python = folder / "bin/python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", OPTUNA], check=True)
        (folder / "ready").touch()
    return python


def results(folder):
    """The results of the trials that have finished."""
    read = {path.name: json.loads(path.read_text()) for path in folder.glob("result-*.json")}
    return {name: result for name, result in read.items() if result["exit_code"] == 0}


def outputs(folder):
    return sorted(path.name for path in folder.glob("output-*"))


def trainings(folder):
    """The training processes that write to that folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"--logging.folder={folder}".encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(entry.name)
        except OSError:  # it has ended
            continue
    return found


def wait_until(condition, what):
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def main(build):
    python = python_with_optuna(build)
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "d.beton"
        data.write_bytes(gzip.decompress((ROOT / "tests/golden/beton/img_prop_nette_w1.beton.gz").read_bytes()))
        folder = Path(scratch) / "study"
        recipe = [f"--data.train_dataset={data}", f"--data.val_dataset={data}", "--training.batch_size=8",
                  "--resolution.min_res=32", "--resolution.max_res=32", "--validation.resolution=32",
                  "--training.epochs=2", "--training.device=cpu"]
        precast = str(build / "bin/precast")
        command = [python, ROOT / "examples/optuna/optimize.py", "--trials=12", "--slots=2", f"--folder={folder}",
                   f"--precast={precast}", *recipe]
        # Ctrl-C reaches all processes of the terminal's foreground group.
        process = subprocess.Popen(command, start_new_session=True)
        wait_until(lambda: results(folder) and len(trainings(folder)) == 2 or process.poll() is not None, "no result")
        assert process.poll() is None, "ended before it was stopped"
        started = outputs(folder)
        os.killpg(process.pid, signal.SIGINT)
        wait_until(lambda: process.poll() is not None or outputs(folder) != started, "Ctrl-C has no effect")
        assert outputs(folder) == started, "a trial was started after Ctrl-C"
        assert process.wait() != 0
        assert not trainings(folder), "training runs outlive the program"
        told = len(results(folder))
        print(f"stopped with {told} results", flush=True)
        for _ in range(2):
            process = subprocess.Popen(command)
            wait_until(lambda process=process, wanted=told + 3:
                       len(results(folder)) >= wanted or process.poll() is not None, "too few results")
            assert process.poll() is None, "ended before it was killed"
            process.send_signal(signal.SIGKILL)
            process.wait()
            wait_until(lambda: not trainings(folder), "training runs outlive the program")
            told = len(results(folder))
            print(f"killed with {told} results", flush=True)
        subprocess.run(command, check=True)

        finished = results(folder)
        assert len(finished) == 12, sorted(finished)
        seen = {(r["params"]["lr.lr"], r["params"]["training.weight_decay"], r["params"]["training.label_smoothing"])
                for r in finished.values()}
        assert len(seen) == 12, "a combination was tried twice"
        assert all(r["exit_code"] == 0 and r["seconds"] > 0 for r in finished.values())
        for number in (0, 5, 11):
            there = finished[f"result-{number}.json"]
            keys = [f"--{key}={there['params'][key]}"
                    for key in ("lr.lr", "training.weight_decay", "training.label_smoothing")]
            alone = Path(scratch) / "alone.json"
            subprocess.run(["taskset", "-c", str(sorted(os.sched_getaffinity(0))[0]), precast, "train", *recipe, *keys,
                            f"--logging.folder={scratch}/alone", f"--logging.run_id=r{number}",
                            f"--result-json={alone}"],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env={**os.environ, "OMP_NUM_THREADS": "1"})
            here = json.loads(alone.read_text())
            for figure in ("top_1", "top_5", "val_loss", "train_loss"):
                assert here[figure] == there[figure], (number, figure, here[figure], there[figure])
        # The result file reports the refused key, and nothing of the older result is left.
        code = subprocess.run([precast, "train", *recipe, "--lr.lr=-1", f"--result-json={alone}"],
                              stderr=subprocess.DEVNULL).returncode
        refused = json.loads(alone.read_text())
        assert code == refused["exit_code"] == 2 and "lr.lr" in refused["error"], refused
    print("12 trials, each trained once; the figures of 3 of them equal those of the same training runs on their own")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
