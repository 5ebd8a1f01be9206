#!/usr/bin/env python3
"""Compares a grid of 12 real training runs that is killed twice by SIGKILL with an uninterrupted grid: no trial is lost
or run twice, and figures, logs and weights are bitwise equal. The same holds if trials share loaders.

    grid_kill_test.py BUILD_DIR
"""
import gzip
import hashlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
CLOCKS = ("timestamp", "relative_time", "val_time", "train_time", "wait_time", "loader_time")


def write_sweep(scratch, name, slots, share=False):
    sweep = scratch / f"{name}.yaml"
    sweep.write_text(f"""
recipe: {scratch}/recipe.yaml
folder: {scratch}/{name}
axes:
  lr.lr: [0.01, 0.02, 0.05]
  training.weight_decay: [5e-5, 5e-4]
  training.label_smoothing: [0, 0.1]
set: {{logging.every: 1, checkpoint.every_steps: 4}}
grid: {{devices: cpu, slots_per_device: {slots}, cores_per_slot: 1, share_loader: {str(share).lower()}}}
""")
    return sweep


def records(folder):
    path = folder / "results.jsonl"
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]  # text after the last newline is incomplete
    return [json.loads(line) for line in lines]


def ends(folder):
    return [record for record in records(folder) if record["event"] == "end" and record["status"] == "done"]


def log_of(run):
    lines = [json.loads(line) for line in (run / "log").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in CLOCKS} for line in lines]


def trials_of(folder):
    return {run.name: {"figures": {key: json.loads((run / "summary.json").read_text())[key]
                                   for key in ("top_1", "top_5", "val_loss", "train_loss")},
                       "log": log_of(run),
                       "weights": hashlib.sha256((run / "final_weights.safetensors").read_bytes()).hexdigest()}
            for run in (folder / "runs").iterdir()}


def left_behind(loaders):
    """The rings in a folder of loaders that still have a producer."""
    sockets = Path("/proc/net/unix").read_text()
    return [ring.name for ring in loaders.iterdir() if f"/{ring.name}\n" in sockets]


def in_progress(folder):
    """Whether a trial without a result has trained a few steps."""
    logs = [run / "log" for run in (folder / "runs").iterdir() if not (run / "summary.json").exists()]
    return any(log.exists() and len(log.read_text().splitlines()) >= 3 for log in logs)


def run_killed(precast, sweep, folder, whole):
    """Runs a sweep, kills it twice, and compares its trials with `whole`."""
    for _ in range(2):
        process = subprocess.Popen([precast, "grid", sweep], stdout=subprocess.DEVNULL)
        goal = len(ends(folder)) + 3
        deadline = time.monotonic() + 600
        while len(ends(folder)) < goal or not in_progress(folder):
            assert process.poll() is None, "ended before it was killed"
            assert time.monotonic() < deadline, f"{len(ends(folder))} results after 10 minutes"
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        print(f"killed with {len(ends(folder))} results", flush=True)
    subprocess.run([precast, "grid", sweep], check=True)

    done = [record["trial"] for record in ends(folder)]
    assert len(done) == len(set(done)) == 12, done
    interrupted = sum(record["event"] == "start" for record in records(folder)) - 12
    assert 0 < interrupted <= 6, interrupted
    resumed = trials_of(folder)
    assert whole.keys() == resumed.keys()
    for trial in whole:
        assert whole[trial] == resumed[trial], trial
    print(f"{interrupted} interrupted trials continued; 12 figures, logs and weights bitwise equal", flush=True)


def main(build):
    precast = build / "bin/precast"
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        data = scratch / "d.beton"
        data.write_bytes(gzip.decompress((ROOT / "tests/golden/beton/img_prop_nette_w1.beton.gz").read_bytes()))
        (scratch / "recipe.yaml").write_text(f"""
data: {{train_dataset: {data}, val_dataset: {data}}}
resolution: {{min_res: 32, max_res: 32}}
training: {{batch_size: 4, epochs: 2, device: cpu}}
validation: {{resolution: 64}}
""")
        begin = time.monotonic()
        subprocess.run([precast, "grid", write_sweep(scratch, "whole", 2)], check=True, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - begin
        seconds = sum(record["seconds"] for record in ends(scratch / "whole"))
        print(f"whole: wall {wall:.1f} s, trials' own time / slots {seconds / 2:.1f} s: {wall / seconds * 2:.3f} x",
              flush=True)

        whole = trials_of(scratch / "whole")
        assert len({trial["weights"] for trial in whole.values()}) == len(whole) == 12
        # First with a different number of slots, then with shared loaders.
        run_killed(precast, write_sweep(scratch, "killed", 3), scratch / "killed", whole)
        sweep, shared = write_sweep(scratch, "shared", 2, share=True), scratch / "shared"
        run_killed(precast, sweep, shared, whole)
        status = subprocess.run([precast, "grid", sweep, "--status", "--json"], check=True, capture_output=True)
        loaders = json.loads(status.stdout)["shared_loaders"]
        print(f"shared loaders: {loaders}")
        # At least one cohort of two trials was not interrupted: 2 epochs of 24 images. Killed loaders record fewer.
        assert loaders["decodes_saved"] >= 48, loaders
        assert (shared / "loaders").is_dir()
        assert not left_behind(shared / "loaders"), "loader processes are left"


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
