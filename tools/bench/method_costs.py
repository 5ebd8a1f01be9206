#!/usr/bin/env python3
"""Measures the cost of each method: the time of a training step with the method, divided by the time without it.

    method_costs.py [--rounds 5] [--methods sam,ema] [--json OUT.json] [-- options of `precast bench step`]

Each figure comes from a separate process, `precast bench step` on one synthetic batch that stays on the device, after a
warm-up step. A round measures the plain step (without methods), two methods, the plain step, two methods, and so on;
each method is compared with the plain step next to it, so that other load on the machine affects both. Every second
round runs in reverse order. The ratio is the median over the rounds. The measured steps are the first steps of a run:
`selective_backprop` runs with options that make it act in all of them; `layer_freezing` freezes nothing in the first
epoch. Costs that occur once per epoch (`swa`), before training (`zero_init_residual`, `scale_schedule`) or in the
loader are not measured. `progressive_resize` and `batch_resize` reduce the sides of images to 3/4 and 1/2.
`channels_last`, the default, is compared with `--layout nchw`. On a CPU, the CPU seconds of the process are compared,
on a GPU the seconds of the steps.
Prints a Markdown table.
"""
import argparse
import json
import pathlib
import statistics

from figures import ROOT, markdown, run

SIZE_PX = 64

# Every registered method, with the options with which it is measured.
METHODS = {
    "blurpool": "{}",
    "squeeze_excite": "{}",
    "stochastic_depth": "{}",
    "zero_init_residual": "{}",
    "ghost_batch_norm": "{size: 4}",
    "label_smoothing": "{}",
    "bce_loss": "{}",
    "mixup": "{}",
    "cutmix": "{}",
    "mixup_or_cutmix": "{}",
    "progressive_resize": f"{{min_res: {SIZE_PX * 3 // 4}, max_res: {SIZE_PX * 3 // 4}}}",
    "batch_resize": "{}",
    "channels_last": "{}",
    "gradient_clipping": "{}",
    "adaptive_gradient_clipping": "{}",
    "layer_freezing": "{}",
    "sam": "{}",
    "selective_backprop": "{start: 0, interrupt: 0}",
    "ema": "{}",
    "swa": "{}",
    "scale_schedule": "{ratio: 1}",
}


def seconds(args, method, more=()):
    """Returns the seconds of one step, or on a CPU the CPU seconds (median over the windows).
    @param method: empty for the plain step"""
    methods = f"[{method}: {METHODS[method]}]" if method else "[]"
    command = [args.precast, "bench", "step", "--data", "device", "--json", "--steps", args.steps, "--warmup", "1",
               "--runs", "3", f"--methods={methods}", *args.more, *more]
    if method != "label_smoothing":
        command.append("--training.label_smoothing=0")
    if method != "progressive_resize":
        command += [f"--resolution.min_res={SIZE_PX}", f"--resolution.max_res={SIZE_PX}"]
    result = json.loads(run(command))
    key = "images_per_cpu_second" if result["settings"]["device"] == "cpu" else "images_per_second"
    return result["settings"]["batch_size"] / result[key]


def measure_round(args, names, ratios):
    plain = seconds(args, "")
    for first in range(0, len(names), 2):
        group = names[first:first + 2]
        times = [seconds(args, name) for name in group]
        after = seconds(args, "")
        for name, time, base in zip(group, times, [plain, after], strict=False):
            if name == "channels_last":
                base = seconds(args, "", ["--layout", "nchw"])
            ratios[name].append(time / base)
        plain = after


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precast", default=ROOT / "build" / "bin" / "precast")
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds; default: %(default)s")
    parser.add_argument("--steps", type=int, default=3, help="steps per window; each process measures three windows; "
                        "default: %(default)s")
    parser.add_argument("--methods", default=",".join(METHODS), help="methods to measure; default: all")
    parser.add_argument("--json", help="write the results to this file, after every round")
    parser.add_argument("more", nargs="*", help="options of `precast bench step`, after --; default: "
                        "--model resnet18 --batch-size 16 --threads 1")
    args = parser.parse_args()
    args.more = args.more or ["--model", "resnet18", "--batch-size", "16", "--threads", "1"]
    names = args.methods.split(",")
    ratios = {name: [] for name in names}
    for number in range(args.rounds):
        measure_round(args, names if number % 2 == 0 else names[::-1], ratios)
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps({"options": args.more, "ratios": ratios}, indent=2) + "\n")
    rows = [[f"`{name}`", f"{statistics.median(found):.2f}", f"{min(found):.2f}, {max(found):.2f}"]
            for name, found in ratios.items()]
    print(markdown([["method", "step time, with / without", "min, max"], *rows]))


if __name__ == "__main__":
    main()
