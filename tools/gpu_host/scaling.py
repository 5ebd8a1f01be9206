"""The stage `scaling`: one rank per GPU; with --cpu, Gloo ranks and small sizes."""

import re
import sys

from gpu_host import host
from gpu_host.step import Failure, Step, last_json

RANKS = [1, 2, 4, 8]
CPU_RANKS = [1, 2, 4]
UPDATES = "replicated,allreduce_after_backward"
EPOCHS, STEPS_PER_EPOCH, KILLED_AT_STEP = 2, 20, 12
SURVIVORS_LIMIT_S = 60


def counts(place):
    if place.cpu:
        return CPU_RANKS
    return [ranks for ranks in RANKS if ranks <= max(1, place.gpus)]


def precast(name, *arguments, limit_s, **more):
    return Step(name, [host.HOME / "bin/precast", *arguments], limit_s, **more)


def steps(place):
    ranks = counts(place)
    several = [number for number in ranks if number > 1]
    expected = {"rehearsal": "works" if place.cpu else "no_gpu"}
    planned = [allreduce_step(place, number, expected) for number in several]
    for number in ranks:
        planned += [table_step(place, number, "", [], expected),
                    table_step(place, number, ", fp16 messages", ["--dist.grad_compression=fp16"],
                               expected)]
    # A rank dies in the run with the most ranks; then the same number of ranks resumes that run.
    return planned + [kill_step(place, ranks[-1], expected), resume_step(place, ranks[-1], expected)]


def device(place):
    return "cpu" if place.cpu else "cuda"


def allreduce_step(place, number, expected):
    sizes = "4KB,256KB,1MB" if place.cpu else "4KB,64KB,1MB,4MB,16MB,25MB,64MB,256MB,1GB"
    repeats = 3 if place.cpu else 15
    return precast(f"all-reduce, {number} ranks", "bench", "allreduce", "--ranks", number, "--sizes",
                   sizes, "--runs", repeats, "--device", device(place), "--json", limit_s=60,
                   **expected)


def table_step(place, number, label, more, expected):
    """Times steps with both values of --variable-update: `replicated` sums gradients during the backward pass,
    `allreduce_after_backward` after it. With the options `more`, times only `replicated`."""
    sizes = (["--model", "resnet18", "--image-size", 32, "--batch-size", 4, "--steps", 2, "--warmup", 1,
              "--runs", 2] if place.cpu else
             ["--model", "resnet50", "--image-size", 224, "--batch-size", 256, "--precision", "fp16",
              "--layout", "channels_last", "--steps", 10, "--runs", 5])
    update = UPDATES if not more else "replicated"
    return precast(f"training step, {number} ranks{label}", "bench", "step", *sizes, "--device",
                   device(place), "--ranks", number, "--variable-update", update, "--json", *more,
                   limit_s=90, **expected)


def train_arguments(place, number):
    """The arguments of a run that saves a checkpoint every five steps."""
    batch = 4 if place.cpu else 64
    return ["train", host.HOME / "configs/fashion_mnist/rn18_16px.yaml",
            f"--data.train_dataset={place.data / 'train.beton'}",
            f"--data.val_dataset={place.data / 'val.beton'}",
            f"--data.subset=0:{STEPS_PER_EPOCH * number * batch}",
            f"--training.batch_size={batch}", f"--training.epochs={EPOCHS}", "--data.num_workers=1",
            f"--training.device={device(place)}", "--checkpoint.every_steps=5", "--logging.every=1",
            f"--logging.folder={run_folder(place, number).parent}",
            f"--logging.run_id={run_folder(place, number).name}", "--checkpoint.resume=auto"]


def run_folder(place, number):
    return place.state / "runs" / f"killed_{number}"


def kill_step(place, number, expected):
    command = [sys.executable, host.HOME / "gpu_host/kill_rank.py", "--ranks", number, "--at_step",
               KILLED_AT_STEP, "--limit", SURVIVORS_LIMIT_S, "--run", run_folder(place, number), "--",
               host.HOME / "bin/precast", *train_arguments(place, number)]
    return Step(f"one of {number} ranks is killed", command, 150, **expected)


def resume_step(place, number, expected):
    def read(output):
        """Checks that every step is logged once; the steps before the checkpoint were logged by the killed run."""
        figures = last_json(output)
        begun = re.search(r"resuming after step (\d+)", output.err)
        logged = (run_folder(place, number) / "log").read_text().count('"epoch_step"')
        if not begun or logged != EPOCHS * STEPS_PER_EPOCH or figures["world_size"] != number:
            raise Failure(f"expected {number} ranks to resume and {EPOCHS * STEPS_PER_EPOCH} logged steps, got "
                          f"{figures['world_size']} ranks, {'a resumed' if begun else 'a new'} run and {logged} "
                          f"logged steps: {output.end()}")
        return figures | {"resumed_from_step": int(begun[1]), "logged_steps": logged}

    return precast(f"{number} ranks resume", *train_arguments(place, number), f"--dist.nproc={number}",
                   "--json", limit_s=120, read=read, **expected)
