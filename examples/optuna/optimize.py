#!/usr/bin/env python3
"""Hyperparameter search with Optuna, several trials at a time: optimize.py RECIPE.yaml [--section.key=value ...]

If it is stopped (Ctrl-C) or killed, run the same command again to continue: Optuna's journal contains all trials and
their results, and precast's run folders contain the checkpoints.
"""
import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import optuna
from optuna.trial import TrialState

SPACE = {
    "lr.lr": [0.02, 0.06, 0.2],
    "training.weight_decay": [5e-5, 5e-4],
    "training.label_smoothing": [0.0, 0.1],
}


STOPPED = (85, -signal.SIGINT)  # 85: precast saved a checkpoint; -SIGINT: Ctrl-C ended precast before it could save one


def train(number, params, cores):
    """Starts or resumes the run of a trial. Returns precast's exit code, and top-1 if the code is 0."""
    result = options.folder / f"result-{number}.json"
    keys = {**params, "logging.folder": options.folder, "logging.run_id": f"trial-{number}",
            "checkpoint.resume": "auto"}
    command = ["setpriv", "--pdeathsig", "KILL", "taskset", "-c", ",".join(map(str, cores)), options.precast, "train",
               *recipe, f"--result-json={result}", *(f"--{key}={value}" for key, value in keys.items())]
    with open(options.folder / f"output-{number}", "ab") as output:
        code = subprocess.run(command, stdout=output, stderr=output,
                              env={**os.environ, "OMP_NUM_THREADS": str(len(cores))}).returncode
    return code, json.loads(result.read_text())["top_1"] if code == 0 else None


def next_trial():
    with study_lock:
        if stopping.is_set():
            return None
        if not unfinished and sum(trial.state != TrialState.WAITING
                                 for trial in study.get_trials(deepcopy=False)) >= options.trials:
            return None
        trial = unfinished.pop(0) if unfinished else study.ask()
        return trial.number, {key: trial.suggest_categorical(key, values) for key, values in SPACE.items()}


def work(cores):
    while (trial := next_trial()) is not None:
        number, params = trial
        code, top_1 = train(number, params, cores)
        if code in STOPPED:  # the next start resumes the trial
            stopping.set()
            return
        if code == 0:
            study.tell(number, top_1)
            print(f"trial {number}: {params}, top_1 {top_1:.4f}", flush=True)
        else:
            study.tell(number, state=TrialState.FAIL)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--trials", type=int, default=12, help="number of trials (default %(default)s)")
parser.add_argument("--slots", type=int, default=1,
                    help="number of trials that run at the same time; each gets an equal share of the cores "
                         "(default %(default)s)")
parser.add_argument("--folder", type=Path, default=Path("runs/optuna"),
                    help="folder of the study, its results and its runs (default %(default)s)")
parser.add_argument("--precast", default="precast", help="the program precast (default: the one on the PATH)")
options, recipe = parser.parse_known_args()
options.folder.mkdir(parents=True, exist_ok=True)

optuna.logging.set_verbosity(optuna.logging.WARNING)
storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(options.folder / "study.log")))
study = optuna.create_study(study_name="precast", storage=storage, direction="maximize", load_if_exists=True)
# Tries every combination. To let a sampler choose the values instead, remove this loop, and call
# trial.suggest_float(key, low, high, log=True) in next_trial().
for values in itertools.product(*SPACE.values()):
    study.enqueue_trial(dict(zip(SPACE, values, strict=True)), skip_if_exists=True)
unfinished = [optuna.trial.Trial(study, trial._trial_id) for trial in study.get_trials(states=[TrialState.RUNNING])]
study_lock = threading.Lock()
stopping = threading.Event()

cores = sorted(os.sched_getaffinity(0))
share = max(1, len(cores) // options.slots)
slots = [cores[i * share:(i + 1) * share] or cores for i in range(options.slots)]
workers = [threading.Thread(target=work, args=(slot,)) for slot in slots]
for worker in workers:
    worker.start()
try:
    for worker in workers:
        worker.join()
except KeyboardInterrupt:  # the training processes have received the signal, too, and save checkpoints
    stopping.set()
    for worker in workers:
        worker.join()
if stopping.is_set():
    sys.exit("stopped: run the same command again to continue")
print(f"best: {study.best_params}, top_1 {study.best_value:.4f}")
