"""The steps of each stage and its time limit. `scaling` is in scaling.py."""

import dataclasses
import json
import pathlib
import sys

from gpu_host import cases, datasets, host, scaling
from gpu_host.step import Failure, Step, gtest, last_json

# The limits of the default stages add up to 25 minutes. Each is below ten minutes, because some hosts end a command
# after that time.
LIMITS_S = {"correctness": 300, "baseline": 480, "speed": 420, "training": 300, "scaling": 500,
            "fused": 500, "graphs": 500}
DEFAULT_STAGES = ["correctness", "baseline", "speed", "training"]
SANITIZER = "compute-sanitizer"
EPOCHS = 6
LAYERS = "{layers: [conv: {out: 16, bias: false}, bn, relu, global_avg_pool, flatten, linear]}"
# ImageNet recipe, side of all images in px, batch size, and the value of data.repeats with which an epoch takes a few
# seconds.
END_TO_END = [("rn50_16_epochs", 224, 256, 64), ("rn18_16_epochs", 160, 1024, 256)]
# Raw images have sides of at most this many pixels. They are loaded once with as many loader threads as cores allow,
# once with one thread, and once with data.in_memory: gpu, which needs one thread to plan the crops.
RAW_SIDE_PX = 256
FEEDS = {"loader": ["--data.num_workers=0"], "loader, one thread": ["--data.num_workers=1"],
         "images on the GPU, one thread": ["--data.num_workers=1", "--data.in_memory=gpu"]}


@dataclasses.dataclass
class Place:
    """Where a stage runs: its state folder, the number of GPUs, and whether it uses CPUs instead."""
    state: pathlib.Path
    gpus: int = 1
    cpu: bool = False

    @property
    def data(self):
        return self.state / "data"


def plan(stage, place):
    """The steps of a stage, in the order in which they run."""
    steps = {"correctness": correctness_steps, "baseline": lambda p: cases.baseline_steps(p.state),
             "speed": speed_steps, "training": training_steps, "scaling": scaling_steps,
             "fused": fused_steps, "graphs": graph_steps}[stage](place)
    return [absent(step) for step in steps]


def absent(step):
    """Marks a step as missing if the bundle lacks its program; such a step is reported, not started."""
    for part in step.command:
        program = pathlib.Path(str(part))
        if program.parent == host.HOME / "bin" and not program.exists():
            step.missing, step.optional = f"{program.name} is not in the bundle", True
    return step


def ours(name, *arguments, limit_s, **more):
    return Step(name, [host.HOME / "bin/precast", *arguments], limit_s, **more)


def python(name, script, *arguments, limit_s, **more):
    return Step(name, [sys.executable, host.HOME / script, *arguments], limit_s, **more)


def text(output):
    return {"text": output.out.strip()}


# ---- correctness

def correctness_steps(place):
    query = "name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.limit"
    steps = [python("device", "gpu_host/device_properties.py", limit_s=30),
             Step("nvidia-smi", ["nvidia-smi", f"--query-gpu={query}", "--format=csv"], 30, read=text,
                  ours=False, rehearsal="optional", optional=True),
             Step("versions", [host.HOME / "bin/precast-train", "versions"], 60, rehearsal="works")]
    tests = place.state / "tests"
    kernels = host.HOME / "bin/kernels_gpu_test"
    programs = sorted({kernels, *host.HOME.glob("bin/*_gpu_test")})
    # In parallel, because each program alone leaves most of the GPU and of the CPUs idle. More processes do not help:
    # the tests take 91 s in these eight processes, and had not ended after 105 s in twelve.
    steps += [gtest(file.name, file, tests, 240, parallel=True) for file in programs]
    return steps + [sanitizer_step(tool, kernels, tests) for tool in ("memcheck", "racecheck")]


def sanitizer_step(tool, program, tests):
    found = host.find_tool(SANITIZER)
    missing = "" if found else f"{SANITIZER}: neither on PATH nor in {', '.join(host.CUDA_TOOLS)}"
    wrapper = [found or SANITIZER, "--tool", tool, "--error-exitcode", 9]
    return gtest(tool, program, tests, 240, wrapper, rehearsal="optional", missing=missing, parallel=True)


# ---- speed

def speed_steps(place):
    steps = cases.speed_steps()
    first = 1 + len(cases.CASES[:4]) + 2
    kernels = Step("kernel_bench", [host.HOME / "bin/kernel_bench", "--json"], 120)
    return steps[:first] + [kernels] + steps[first:]


# ---- fused

def fused_steps(place):
    """Compares fused kernels with reference kernels: first the results, then the times."""
    parity = [gtest(name, host.HOME / f"bin/{program}", place.state / "tests", 90,
                    environment={"GTEST_FILTER": "*Fused*"})
              for name, program in (("parity", "models_gpu_test"), ("parity of recipes", "recipes_gpu_test"))]
    return [*parity, *cases.fused_steps()]


# ---- graphs

def graph_steps(place):
    """Compares steps with CUDA graphs and steps that launch each kernel singly: first the results, then the times."""
    parity = gtest("parity", host.HOME / "bin/engine_gpu_test", place.state / "tests", 120,
                   environment={"GTEST_FILTER": "*Step*"})
    return [parity, *cases.graph_steps()]


# ---- training

def write_steps(place):
    """Steps that write the bundle's subset of Fashion-MNIST as .beton files."""
    return [ours(f"write {split}", "write", host.HOME / f"data/{stem}-images-idx3-ubyte.gz",
                 place.data / f"{split}.beton", "--image.mode", "raw", limit_s=60, read=text,
                 rehearsal="works")
            for split, stem in datasets.STEMS.items()]


def quickstart_arguments(place):
    return [host.HOME / "configs/fashion_mnist/rn18_16px.yaml", f"--data.train_dataset={place.data / 'train.beton'}",
            f"--data.val_dataset={place.data / 'val.beton'}", f"--training.epochs={EPOCHS}",
            "--training.device=cuda", f"--logging.folder={place.state / 'runs'}", "--json"]


def training_steps(place):
    recipe = place.data / "quickstart.json"

    def keep(output):
        """Stores the recipe as resolved by precast, so that the twin needs no YAML reader."""
        described = last_json(output)
        recipe.write_text(json.dumps(described))
        return {"steps_per_epoch": described["steps_per_epoch"]}

    quickstart = quickstart_arguments(place)
    return [*write_steps(place),
            python("arrays", "gpu_host/datasets.py", "arrays", host.HOME / "data", place.data,
                   limit_s=60, read=text, rehearsal="works"),
            ours("recipe", "train", *quickstart, "--dry-run", limit_s=60, read=keep, rehearsal="works"),
            ours("quickstart", "train", *quickstart, limit_s=120),
            ours("quickstart, images on the GPU", "train", *quickstart, "--data.in_memory=gpu", limit_s=120),
            *layers_steps(place),
            python("quickstart twin", "twin/twin_train.py", recipe, "--train", place.data / "train",
                   "--val", place.data / "val", "--crop", "whole", "--val-ratio", 1, "--device", "cuda",
                   limit_s=120, ours=False),
            *end_to_end_steps(place)]


def layers_steps(place):
    """Trains a model that precast tests before the first step, on half-precision images (the default on a GPU); then
    evaluates it and predicts with it."""
    run = place.state / "runs/layers"
    model = [*quickstart_arguments(place), "--model.arch=layers", f"--model.params={LAYERS}", "--lr.lr=0.01",
             "--training.epochs=2"]
    weights = f"--model.weights={run / 'final_weights.safetensors'}"
    return [ours("layers", "train", *model, f"--logging.run_id={run.name}", "--checkpoint.resume=auto", limit_s=60),
            ours("layers, eval", "eval", *model, weights, limit_s=60),
            ours("layers, predict", "predict", *model, weights, limit_s=60)]


def end_to_end_steps(place):
    """Training end to end, from JPEGs and from a copy stored as raw pixels.

    The images are photographs if the bundle has them, otherwise mosaics that the first steps write.
    """
    photos = host.HOME / "data/photos.beton"
    steps, name = [], "photos"
    if not photos.exists():
        photos, name = place.data / "mosaics.beton", "mosaics"
        steps = [python("mosaics", "gpu_host/datasets.py", "mosaics", host.HOME / "data", place.data,
                        limit_s=60, read=text, rehearsal="works"),
                 ours("write mosaics", "write", place.data / "mosaics-images-idx3-ubyte", photos,
                      "--image.mode", "jpg", limit_s=60, read=text, rehearsal="works")]
    steps += [train_step(f"end to end from {name}: {recipe} {size} px x {batch}", place, photos, recipe, size, batch,
                         repeats, ["--data.num_workers=0"]) for recipe, size, batch, repeats in END_TO_END]
    raw = place.data / "raw.beton"
    steps.append(ours(f"raw {name}", "select", photos, raw, "--image.mode", "raw", "--image.max_resolution",
                      RAW_SIDE_PX, limit_s=60, read=text, rehearsal="works"))
    recipe, size, batch, repeats = END_TO_END[-1]
    return steps + [train_step(f"end to end from raw {name}, {feed}: {recipe} {size} px x {batch}", place, raw, recipe,
                               size, batch, repeats, options) for feed, options in FEEDS.items()]


def train_step(name, place, dataset, recipe, size, batch, repeats, options):
    """One epoch of a recipe on a few repeated images."""
    return ours(
        name, "train", host.HOME / f"configs/imagenet/{recipe}.yaml", f"--data.train_dataset={dataset}",
        f"--data.val_dataset={dataset}", f"--data.repeats={repeats}",
        # A small learning rate, so that training on a few repeated images does not diverge.
        "--lr.lr=0.01", "--training.epochs=1", f"--training.batch_size={batch}", f"--resolution.min_res={size}",
        f"--resolution.max_res={size}", "--validation.batch_size=128", "--training.device=cuda",
        # Measures one GPU, although recipes may ask for 8 ranks.
        "--dist.world_size=1", f"--logging.folder={place.state / 'runs'}", *options, "--json", limit_s=90,
        read=end_to_end)


def end_to_end(output):
    figures = last_json(output)
    if not figures.get("train_minutes"):
        raise Failure(f"expected train_minutes above 0, got: {figures}")
    return figures | {"waiting_share": figures["wait_minutes"] / figures["train_minutes"]}


# ---- scaling

def scaling_steps(place):
    return write_steps(place) + scaling.steps(place)
