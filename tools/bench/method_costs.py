#!/usr/bin/env python3
"""What each method costs: CPU seconds of a training step with it / without it.

    method_costs.py [--pairs 5] [--methods sam,ema] [--json OUT.json] [-- options of `precast bench step`]

Each figure is a process of its own, `precast bench step` on one synthetic batch that stays on the device, after
warm-up steps. Plain and method take turns, and every second pair begins with the other one, so that a machine's
bad minutes hit both; the ratio is the median over the pairs. Methods are switched on so that they act in every
step that is timed; what acts once per epoch (`swa`) or before the start does not show. Prints a Markdown table.
On a GPU the seconds of the steps count instead of CPU seconds.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Every registered method, in a form that acts in each step.
METHODS = {
    "blurpool": "{}",
    "squeeze_excite": "{}",
    "stochastic_depth": "{}",
    "zero_init_residual": "{}",
    "label_smoothing": "{}",
    "bce_loss": "{}",
    "mixup": "{}",
    "cutmix": "{}",
    "mixup_or_cutmix": "{}",
    "progressive_resize": "{min_res: 64, max_res: 64}",
    "batch_resize": "{delay_fraction: 1, finetune_fraction: 0}",
    "channels_last": "{}",
    "gradient_clipping": "{}",
    "layer_freezing": "{freeze_start: 0}",
    "sam": "{}",
    "selective_backprop": "{start: 0, end: 1, interrupt: 0}",
    "ema": "{}",
    "swa": "{}",
    "scale_schedule": "{ratio: 1}",
}


def seconds(args, methods):
    """Of one step, median over the windows."""
    command = [args.precast, "bench", "step", "--data", "device", "--json", "--steps", args.steps, "--warmup", "2",
               "--runs", "3", "--training.label_smoothing=0", f"--methods={methods}", *args.more]
    if "progressive_resize" not in methods:
        command += ["--resolution.min_res=64", "--resolution.max_res=64"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"method_costs: expected success, got exit code {done.returncode} ({' '.join(map(str, command))}): "
                 f"{done.stderr[-2000:]}")
    result = json.loads(done.stdout)
    key = "images_per_cpu_second" if result["settings"]["device"] == "cpu" else "images_per_second"
    return result["settings"]["batch_size"] / result[key]


def ratio(args, name):
    methods = f"[{name}: {METHODS[name]}]"
    ratios = []
    for pair in range(args.pairs):
        order = ["[]", methods] if pair % 2 == 0 else [methods, "[]"]
        times = {which: seconds(args, which) for which in order}
        ratios.append(times[methods] / times["[]"])
    return {"ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precast", default=ROOT / "build" / "bin" / "precast")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4, help="a window; three windows a process")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("more", nargs="*", help="options of `precast bench step`, behind --")
    args = parser.parse_args()
    args.more = args.more or ["--model", "resnet18", "--batch-size", "32", "--threads", "1"]
    results = {}
    print("| method | step time, with / without | least, most |\n| --- | --- | --- |", flush=True)
    for name in args.methods.split(","):
        results[name] = found = ratio(args, name)
        print(f"| `{name}` | {found['ratio']:.2f} | {found['least']:.2f}, {found['most']:.2f} |", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"options": args.more, "pairs": args.pairs,
                                                       "methods": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
