#!/usr/bin/env python3
"""A grid of 12 real training runs, killed twice by SIGKILL, and one that runs undisturbed: no trial is lost or run
twice, and figures, logs and weights are equal to the last bit.

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

ROOT = Path(__file__).resolve().parents[3]
CLOCKS = ("timestamp", "relative_time", "val_time", "train_time", "wait_time", "loader_time")


def write_sweep(scratch, name, slots):
    sweep = scratch / f"{name}.yaml"
    sweep.write_text(f"""
recipe: {scratch}/recipe.yaml
folder: {scratch}/{name}
axes:
  lr.lr: [0.01, 0.02, 0.05]
  training.weight_decay: [5e-5, 5e-4]
  training.label_smoothing: [0, 0.1]
set: {{logging.every: 1, checkpoint.every_steps: 4}}
grid: {{devices: cpu, slots_per_device: {slots}, cores_per_slot: 1}}
""")
    return sweep


def records(folder):
    path = folder / "results.jsonl"
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]  # what follows the last newline is torn
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

        # In another number of slots, too.
        sweep = write_sweep(scratch, "killed", 3)
        killed = scratch / "killed"
        for _ in range(2):
            process = subprocess.Popen([precast, "grid", sweep], stdout=subprocess.DEVNULL)
            goal = len(ends(killed)) + 3
            deadline = time.monotonic() + 600
            while len(ends(killed)) < goal:
                assert process.poll() is None, "ended before it was killed"
                assert time.monotonic() < deadline, f"{len(ends(killed))} results after 10 minutes"
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
            print(f"killed with {len(ends(killed))} results", flush=True)
        subprocess.run([precast, "grid", sweep], check=True)

        done = [record["trial"] for record in ends(killed)]
        assert len(done) == len(set(done)) == 12, done
        interrupted = sum(record["event"] == "start" for record in records(killed)) - 12
        assert 0 < interrupted <= 6, interrupted
        whole, resumed = trials_of(scratch / "whole"), trials_of(killed)
        assert whole.keys() == resumed.keys() and len(whole) == 12
        for trial in whole:
            assert whole[trial] == resumed[trial], trial
        assert len({trial["weights"] for trial in whole.values()}) == 12
        print(f"{interrupted} interrupted trials went on; 12 figures, logs and weights equal to the last bit")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
