"""Writes results as Markdown, and merges the results of several calls."""

import json
import pathlib

from gpu_host import cases
from gpu_host.problem import EXIT_USAGE, Problem

# If the anchor's speed changes by more than this fraction, the speeds of precast and the twin are not comparable.
MOST_DRIFT = 0.03


def rate(record):
    """Returns images per second, or None unless the step passed. `record` is None if the step was not run."""
    record = record or {}
    figures = record.get("figures") or {}
    return figures.get("images_per_second") if record.get("state") == "passed" else None


def cell(value, form="{:.0f}"):
    return "-" if value is None else form.format(value)


def quotient(a, b):
    return a / b if a and b else None


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def newest(records):
    """Returns the newest of a step's records that passed or, if none passed, the newest record."""
    ordered = sorted(records, key=lambda record: record.get("began", ""))
    passed = [record for record in ordered if record["state"] == "passed"]
    return (passed or ordered)[-1]


def merge(results):
    """Merges the results of all calls. @return {stage: {step: record}}"""
    merged = {}
    for result in results:
        for stage, entry in result["stages"].items():
            for name, record in entry["steps"].items():
                merged.setdefault(stage, {}).setdefault(name, []).append(record)
    return {stage: {name: newest(records) for name, records in steps.items()}
            for stage, steps in merged.items()}


def head(result):
    devices = result["stages"].get("correctness", {}).get("steps", {}).get("device", {}).get("figures")
    names = {device["deviceName"] for device in devices or []} or card_names(result)
    dates = sorted(entry["began"][:16] for entry in result["stages"].values() if "began" in entry)
    return [dates[0] if dates else "-", ", ".join(sorted(names)) or "-",
            result["bundle"].get("commit", "-"), result["bundle"].get("torch", "-"),
            result["host"].get("host", "-"), ", ".join(result["stages"])]


def card_names(result):
    """The names of the cards in the programs' results, for a call that did not run the stage `correctness`."""
    found = {(record.get("figures") or {}).get("device_name")
             for stage in ("speed", "baseline")
             for record in result["stages"].get(stage, {}).get("steps", {}).values()
             if isinstance(record.get("figures"), dict)}
    return {name for name in found if name}


def speed(merged):
    timed = merged.get("baseline", {}) | merged.get("speed", {})
    rows = []
    for case in cases.CASES:
        ours, eager, compiled = [rate(timed.get(f"{side}: {case.name}"))
                                 for side in ("precast", "eager", "compiled")]
        if ours or eager or compiled:
            rows.append([case.name, cell(ours), cell(eager), cell(compiled),
                         cell(quotient(ours, eager), "{:.3f}"), cell(quotient(ours, compiled), "{:.3f}")])
    if not rows:
        return []
    lines = ["## Training steps", "", f"Images per second, median of {cases.WINDOWS} windows in one "
             "process; the batch stays on the device.", ""]
    lines += table(["step", "precast", "eager", "compiled", "precast/eager", "precast/compiled"], rows)
    return lines + drift(timed) + graphs(timed)


def drift(timed):
    first, again = [rate(timed.get(f"{side}: {cases.ANCHOR.name}"))
                    for side in ("eager", "anchor")]
    change = quotient(again, first)
    if change is None:
        return ["The anchor was not timed in both stages, so a change of the clock rate cannot be detected.", ""]
    warning = "" if abs(change - 1) <= MOST_DRIFT else (
        " **The card's speed has changed between the stages: compare precast with the anchor.**")
    return [f"Anchor (eager {cases.ANCHOR.name}), `speed` / `baseline`: {change:.3f}.{warning}", ""]


def graphs(timed):
    off, on = [rate(timed.get(f"graphs {mode}: {cases.SMALL.name}"))
               for mode in ("off", "on")]
    if not (off or on):
        return []
    return [f"CUDA graphs, {cases.SMALL.name}: off {cell(off)}, on {cell(on)} img/s, "
            f"{cell(quotient(on, off), '{:.2f}')} x.", ""]


def fused(steps):
    rows = []
    for case in cases.FUSED:
        rates = [rate(steps.get(f"kernels {name}: {case.name}")) for name in cases.KERNELS]
        if any(rates):
            rows.append([case.name, *map(cell, rates),
                         *[cell(quotient(one, rates[0]), "{:.3f}") for one in rates[1:]]])
    names = list(cases.KERNELS)
    head = ["step, img/s", *names, *[f"{name} / {names[0]}" for name in names[1:]]]
    return ["## Fused kernels", "", *table(head, rows)] if rows else []


def whole_steps(steps):
    rows = []
    for case in cases.GRAPHS:
        rates = [rate(steps.get(f"graphs {mode}: {case.name}"))
                 for mode in cases.GRAPH_MODES]
        if any(rates):
            rows.append([case.name, *map(cell, rates),
                         *[cell(quotient(one, rates[0]), "{:.3f}") for one in rates[1:]]])
    head = ["step, img/s", *cases.GRAPH_MODES, *[f"{mode}/off" for mode in cases.GRAPH_MODES[1:]]]
    return ["## CUDA graphs", "", *table(head, rows)] if rows else []


def training(steps):
    rows = []
    for name in ("quickstart", "quickstart, images on the GPU", "quickstart twin"):
        figures = steps.get(name, {}).get("figures")
        if figures:
            minutes = figures.get("train_minutes", figures.get("total_s", 0) / 60)
            rows.append([name, cell(figures["top_1"], "{:.4f}"), cell(60 * minutes, "{:.1f}"),
                         cell(steps[name]["seconds"], "{:.1f}")])
    lines = table(["training", "top-1", "training s", "process s"], rows) if rows else []
    rows = [[name, cell(figures["images_per_second"]), cell(100 * figures["waiting_share"], "{:.1f} %")]
            for name, record in steps.items()
            if (figures := record.get("figures") or {}).get("waiting_share") is not None]
    if rows:
        lines += table(["end to end", "img/s", "waiting for data"], rows)
    return ["## Training", "", *lines] if lines else []


def scaling(steps):
    rows, single = [], {}
    for name, record in steps.items():
        for row in record.get("figures") or [] if name.startswith("training step") else []:
            for column in row["columns"]:
                update = column["settings"]["variable_update"] + name.partition(" ranks")[2]
                each = column["images_per_second"] / row["ranks"]
                single.setdefault(update, each)
                rows.append([str(row["ranks"]), update, cell(column["images_per_second"], "{:.1f}"),
                             cell(100 * each / single[update], "{:.0f} %")])
    lines = table(["ranks", "gradients", "img/s", "per rank / one rank"], rows) if rows else []
    rows = [[str(figures["ranks"]), str(one["bytes"]), cell(1e3 * one["seconds"], "{:.3f}"),
             cell(1e-9 * one["bus_bytes_per_second"], "{:.2f}")]
            for name, record in steps.items() if name.startswith("all-reduce")
            for figures in [record.get("figures") or {"sums": []}] for one in figures["sums"]]
    if rows:
        lines += table(["ranks", "bytes", "ms", "bus GB/s"], rows)
    for name, record in steps.items():
        figures = record.get("figures")
        if figures and ("killed" in name or "resume" in name):
            lines += [f"{name}: `{json.dumps(figures)}`", ""]
    return ["## Scaling", "", *lines] if lines else []


def problems(merged):
    lines = []
    for stage, steps in merged.items():
        for name, record in steps.items():
            if record["state"] != "passed":
                noted = " (optional)" if record.get("optional") else ""
                lines += [f"### {stage}: {name}: {record['state']}{noted}", "", "```",
                          record.get("problem", ""), "", record["command"], "```", ""]
    return ["## Steps that did not pass", "", *lines] if lines else []


def others(merged):
    """The figures that no table contains."""
    lines = []
    for stage, name in [("correctness", "nvidia-smi"), ("correctness", "versions"),
                        ("speed", "kernel_bench")]:
        figures = merged.get(stage, {}).get(name, {}).get("figures")
        if figures:
            shown = figures["text"] if "text" in figures else json.dumps(figures, indent=1)
            lines += [f"## {name}", "", "```", shown, "```", ""]
    return lines


def summary(merged):
    rows = []
    for stage, steps in merged.items():
        states = [record["state"] for record in steps.values()]
        rows.append([stage, f"{states.count('passed')} of {len(states)}",
                     cell(sum(record.get("seconds", 0) for record in steps.values()))])
    return table(["stage", "steps passed", "seconds"], rows)


def describe(results):
    merged = merge(results)
    heads = [head(result) for result in results]
    lines = ["# precast on a GPU host", ""]
    lines += table(["date (UTC)", "card", "commit", "torch", "host", "stages"], heads)
    for index, what in [(1, "cards"), (2, "commits")]:
        if len({row[index] for row in heads} - {"-"}) > 1:
            lines += [f"**Results of several {what}: do not compare speeds across them.**", ""]
    lines += summary(merged) + speed(merged) + fused(merged.get("fused", {}))
    lines += whole_steps(merged.get("graphs", {})) + training(merged.get("training", {}))
    lines += scaling(merged.get("scaling", {})) + problems(merged) + others(merged)
    return "\n".join(lines).rstrip() + "\n"


def run(args):
    results = []
    for folder in args.folders:
        file = pathlib.Path(folder) / "report.json"
        if not file.exists():
            raise Problem(EXIT_USAGE, f"expected report.json in {folder}, got none")
        results.append(json.loads(file.read_text()))
    pathlib.Path(args.output).write_text(describe(results))
    return 0
