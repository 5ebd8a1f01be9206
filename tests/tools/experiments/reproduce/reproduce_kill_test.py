#!/usr/bin/env python3
"""Compares a table of three real training runs that is killed twice by SIGKILL with an uninterrupted table: figures,
logs and weights are bitwise equal, and no row is trained twice.

    reproduce_kill_test.py BUILD_DIR
"""
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
CLOCKS = ("timestamp", "relative_time", "val_time", "train_time", "wait_time", "loader_time")
FIGURES = ("top_1", "top_5", "val_loss", "train_loss")


def write_table(scratch):
    data = scratch / "d.beton"
    data.write_bytes(gzip.decompress((ROOT / "tests/golden/beton/img_prop_nette_w1.beton.gz").read_bytes()))
    (scratch / "recipe.yaml").write_text(f"""
data: {{train_dataset: {data}, val_dataset: {data}}}
resolution: {{min_res: 32, max_res: 32}}
training: {{batch_size: 4, device: cpu}}
validation: {{resolution: 64}}
logging: {{log_level: 1, every: 1}}
checkpoint: {{every_steps: 3}}
""")
    rows = "\n".join(f"  - {{id: r{n}, model: ResNet-18, recipe: recipe.yaml, settings: {{training.epochs: {n}}}}}"
                     for n in (1, 2, 3))
    (scratch / "table.yaml").write_text(f"title: Three numbers of epochs\nrows:\n{rows}\n")
    return scratch / "table.yaml"


def records(folder):
    path = folder / "results.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]  # text after the last newline is incomplete


def log_of(run):
    lines = [json.loads(line) for line in (run / "log").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in CLOCKS} for line in lines]


def steps_logged(run):
    path = run / "log"
    return path.read_text().count('"step"') if path.exists() else 0


def table_of(folder):
    """For each row, all results that must be equal."""
    rows = {}
    for row in json.loads((folder / "table.json").read_text())["rows"]:
        (run,) = row["runs"]
        assert run["status"] == "done", run
        rows[row["id"]] = {"top_1": row["top_1"], "top_5": row["top_5"],
                           "figures": {key: run["summary"][key] for key in FIGURES},
                           "log": log_of(Path(run["folder"])),
                           "weights": hashlib.sha256(
                               (Path(run["folder"]) / "final_weights.safetensors").read_bytes()).hexdigest()}
    return rows


def kill_in(command, run, step):
    """Starts the command and sends it SIGKILL before this step of this run."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                               env={**os.environ, "PRECAST_FAILPOINTS": f"trainer.before_step=stop@{step}"})
    deadline = time.monotonic() + 600
    while steps_logged(run) < step - 1:
        assert process.poll() is None, f"ended with {process.returncode} before it was killed"
        assert time.monotonic() < deadline, f"{steps_logged(run)} steps after 10 minutes"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    print(f"killed in {run.name} after {steps_logged(run)} steps", flush=True)


def main(build):
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        table = write_table(scratch)
        command = [build / "bin/precast", "reproduce", table, "--folder"]
        subprocess.run([*command, scratch / "whole"], check=True, stdout=subprocess.DEVNULL)
        killed = scratch / "killed"
        # The failpoint acts in the first training process with at least 8 steps. In the first command, r1 has 6 steps
        # and r2 has 12; in the second command, r2 has 6 steps left and r3 has 18.
        kill_in([*command, killed], killed / "r2-seed0", 8)
        kill_in([*command, killed], killed / "r3-seed0", 8)
        subprocess.run([*command, killed], check=True)

        starts = [record["trial"] for record in records(killed) if record["event"] == "start"]
        assert starts == ["r1-seed0", "r2-seed0", "r2-seed0", "r3-seed0", "r3-seed0"], starts
        whole, resumed = table_of(scratch / "whole"), table_of(killed)
        assert list(whole) == list(resumed) == ["r1", "r2", "r3"]
        for row in whole:
            assert whole[row] == resumed[row], row
        assert len({row["weights"] for row in whole.values()}) == 3
        assert "<svg" in (killed / "report.html").read_text()
        assert (killed / "table.md").read_text().count("1 of 1") == 3
        print("killed twice, two rows continued; three rows' figures, logs and weights bitwise equal")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
