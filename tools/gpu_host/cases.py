"""The training steps that are timed: models, sizes and batches, and the commands for precast and the twin."""

import dataclasses
import sys

from gpu_host import host
from gpu_host.step import Step

WINDOWS = 7
EAGER_LIMIT_S, COMPILE_LIMIT_S, OURS_LIMIT_S = 90, 170, 90


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    size_px: int
    batch: int
    precision: str
    blurpool: bool = False
    steps: int = 10  # per window

    @property
    def name(self):
        blur = " blurpool" if self.blurpool else ""
        return f"{self.model}{blur} {self.size_px} px x {self.batch} {self.precision}"

    def options(self):
        """The options, which are the same for both programs."""
        return ["--model", self.model, "--image-size", self.size_px, "--batch-size", self.batch,
                "--precision", self.precision, "--layout", "channels_last", "--device", "cuda",
                "--runs", WINDOWS, "--steps", self.steps, *(["--blurpool"] if self.blurpool else [])]

    def ours(self, label="precast", more=()):
        command = [host.HOME / "bin/precast", "bench", "step", *self.options(), "--json", *more]
        return Step(f"{label}: {self.name}", command, OURS_LIMIT_S)

    def twin(self, label="eager", more=(), limit_s=EAGER_LIMIT_S, environment=None):
        command = [sys.executable, host.HOME / "twin/twin_step.py", *self.options(), *more]
        return Step(f"{label}: {self.name}", command, limit_s, ours=False,
                    environment=environment or {})

    def compiled(self, cache):
        """The twin's step with torch.compile. If the stage is run again, the cache makes compilation fast."""
        return self.twin("compiled", ["--compile"], COMPILE_LIMIT_S,
                         {"TORCHINDUCTOR_CACHE_DIR": str(cache)})


RN50 = Case("resnet50", 224, 256, "fp16")
RN50_LARGE = Case("resnet50", 224, 512, "fp16", steps=6)
RN18_BLUR = Case("resnet18", 160, 1024, "fp16", blurpool=True)
RN18 = Case("resnet18", 160, 1024, "fp16")
RN50_BLUR = Case("resnet50", 224, 256, "fp16", blurpool=True)
SMALL = Case("resnet18", 32, 128, "fp16", steps=100)
# The twin runs this case again in the stage `speed`. If the time differs from that in `baseline`, the machine or its
# clock has changed.
ANCHOR = RN50


def bf16(case):
    return dataclasses.replace(case, precision="bf16")


# The most important cases come first, because the time might not suffice for all.
CASES = [RN50, RN18_BLUR, bf16(RN50), RN50_LARGE, SMALL, bf16(RN18_BLUR), RN50_BLUR, RN18,
         bf16(RN50_LARGE), bf16(RN50_BLUR), bf16(RN18)]
COMPILED = [RN50, RN18_BLUR, bf16(RN50), RN50_LARGE, SMALL, bf16(RN18_BLUR), RN50_BLUR, RN18,
            bf16(RN50_LARGE)]


def baseline_steps(state):
    """Steps that time Python torch: the first four cases, each eager and compiled; then all remaining cases eager; then
    the remaining cases of COMPILED with torch.compile."""
    cache = state / "inductor"
    steps = []
    for case in CASES[:4]:
        steps += [case.twin(), case.compiled(cache)]
    steps += [case.twin() for case in CASES[4:]]
    return steps + [case.compiled(cache) for case in COMPILED[4:]]


FUSED = [RN50, RN18_BLUR, bf16(RN50), RN50_BLUR, RN50_LARGE]
FUSED_MODEL = ["--model.kernels=fused"]
ALL_FUSED = [*FUSED_MODEL, "--loss.kernels=fused", "--optimizer.kernels=fused"]
KERNELS = {"reference": ["--model.kernels=reference"], "fused": FUSED_MODEL, "all fused": ALL_FUSED,
           "all fused, one graph": [*ALL_FUSED, "--training.cuda_graphs=step"]}


def fused_steps():
    """Each case with each choice of kernels, one directly after the other, so that the card's clock rate changes
    little. The choices: separate ops; a fused model; also a fused loss and optimiser; all of these in one CUDA
    graph."""
    return [case.ours(f"kernels {name}", options) for case in FUSED for name, options in KERNELS.items()]


# From launch-bound to compute-bound: a graph saves launches, so it helps most in the first case and least in the last.
GRAPHS = [SMALL, bf16(SMALL), Case("resnet50", 160, 32, "fp16", steps=50), RN50]
GRAPH_MODES = ["off", "on", "step"]


def graph_steps():
    """Each case without graphs, with recorded passes and with recorded steps, one directly after the other."""
    return [case.ours(f"graphs {mode}", [f"--training.cuda_graphs={mode}"])
            for case in GRAPHS for mode in GRAPH_MODES]


def speed_steps():
    steps = [ANCHOR.twin("anchor"), *[case.ours() for case in CASES[:4]]]
    steps += [SMALL.ours(f"graphs {mode}", [f"--training.cuda_graphs={mode}"])
              for mode in ("off", "on")]
    return steps + [case.ours() for case in CASES[4:]]
