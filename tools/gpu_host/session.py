"""Runs stages: keeps results in the state folder, and copies them to --out after each step.

If --out is emptied between calls, the state folder remains: a stage that is run again continues with
the steps that have not passed, and every call copies all results so far.
"""

import concurrent.futures
import datetime
import itertools
import json
import pathlib
import re
import shutil
import signal
import tempfile
import time

from gpu_host import host, report, stages, step
from gpu_host.problem import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_USAGE, Problem, say

MOST_LOG_BYTES = 4 * 2**20
LEAST_STEP_S = 10
REHEARSAL_GPUS = 2


def replace_file(path, text):
    """Replaces a file atomically: readers always find the complete old or new file, even after a kill."""
    part = path.with_name(path.name + ".tmp")
    part.write_text(text)
    part.replace(path)


def pattern(text):
    try:
        return re.compile(text)
    except re.error as wrong:
        raise Problem(EXIT_USAGE, f"--only: expected a regular expression, got {text!r}: {wrong}") from None


class Session:
    def __init__(self, args, bundle):
        self.only = pattern(args.only)
        self.out = pathlib.Path(args.out).resolve()
        root = pathlib.Path(args.state or pathlib.Path(tempfile.gettempdir()) / "gpu_check").resolve()
        if root == self.out or self.out in root.parents:
            raise Problem(EXIT_USAGE, f"expected --state outside of --out, which may be emptied, got {root}")
        # The name of a build in bundle.json, `commit`, selects a folder, so results of another build are never used.
        self.state = root / (bundle.get("commit", "unknown") + ("-cpu" if args.cpu else ""))
        if args.again:
            shutil.rmtree(self.state, ignore_errors=True)
        for folder in [self.out, self.state / "data", self.state / "tests"]:
            folder.mkdir(parents=True, exist_ok=True)
        stored = self.state / "report.json"
        self.results = json.loads(stored.read_text()) if stored.exists() else {"stages": {}}
        self.results |= {"bundle": bundle, "host": host.facts()}

    def chosen(self, steps):
        """Returns the steps whose names match --only. If there are any, adds the steps that work without a GPU, because
        most of these write files for other steps."""
        named = [planned for planned in steps if self.only.search(planned.name)]
        return [planned for planned in steps if planned in named or named and planned.rehearsal == "works"]

    def run(self, names, gpus, cpu):
        place = stages.Place(self.state, gpus=gpus, cpu=cpu)
        names = [name for name in names if self.chosen(stages.plan(name, place))]
        if not names:
            raise Problem(EXIT_USAGE, "--only: expected a pattern that matches a step of the stages, got "
                          f"{self.only.pattern!r}")
        passed = [self.run_stage(name, place) for name in names]
        say(f"report: {self.out / 'report.md'}")
        return 0 if all(passed) else EXIT_FAILED

    def run_stage(self, name, place):
        limit_s = stages.LIMITS_S[name]
        say(f"{name}: at most {limit_s} s")
        end = time.monotonic() + limit_s
        entry = self.results["stages"].setdefault(name, {"steps": {}})
        entry |= {"state": "running", "began": now()}
        try:
            steps = stages.plan(name, place)
            todo = [planned for planned in self.chosen(steps)
                    if entry["steps"].get(planned.name, {}).get("state") != "passed"]
            for group in side_by_side(todo):
                for planned, record in self.run_group(name, group, end):
                    entry["steps"][planned.name] = record
                    self.save(name)
            entry["state"] = verdict(entry["steps"], steps)
        except BaseException:
            # If gpu_check is stopped, it keeps the results of finished steps.
            entry["state"] = "stopped"
            raise
        finally:
            entry["seconds"] = round(limit_s - (end - time.monotonic()), 1)
            self.save(name)
            say(f"{name}: {entry['state']} in {entry['seconds']} s")
        return entry["state"] in ("passed", "partly run")

    def run_group(self, stage, group, end):
        """Runs the steps of the group at the same time; yields each step with its record as soon as it ends."""
        with concurrent.futures.ThreadPoolExecutor(len(group)) as pool:
            started = {pool.submit(self.run_step, stage, planned, end - time.monotonic()): planned
                       for planned in group}
            try:
                for done in concurrent.futures.as_completed(started):
                    yield started[done], done.result()
            except BaseException:
                step.end_all()
                raise

    def run_step(self, stage, planned, left_s):
        if left_s < LEAST_STEP_S:
            return {"command": planned.text(), "state": "not started", "problem": "no time left",
                    "optional": planned.optional}
        record = step.run(planned, self.log(stage, planned), left_s)
        say(f"  {planned.name}: {record['state']} {first_line(record.get('problem', ''))}".rstrip())
        return record | {"optional": planned.optional, "began": now()}

    def log(self, stage, planned):
        safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in planned.name)
        return self.state / "logs" / stage / f"{safe}.log"

    def save(self, stage):
        """Writes all results so far to a few files of at most a few megabytes each."""
        text = json.dumps(self.results, indent=1) + "\n"
        replace_file(self.state / "report.json", text)
        self.out.mkdir(parents=True, exist_ok=True)
        replace_file(self.out / "report.json", text)
        replace_file(self.out / "report.md", report.describe([self.results]))
        devices = self.results["stages"].get("correctness", {}).get("steps", {}).get("device", {})
        if devices.get("figures"):
            (self.out / "device.json").write_text(json.dumps(devices["figures"], indent=1) + "\n")
        for folder in sorted((self.state / "logs").glob("*")):
            (self.out / f"{folder.name}.log").write_bytes(joined(folder)[-MOST_LOG_BYTES:])


def side_by_side(steps):
    """Divides steps into groups that run at the same time. Consecutive `parallel` steps form a group; any other step
    runs alone."""
    return [group for parallel, found in itertools.groupby(steps, key=lambda one: one.parallel)
            for group in ([list(found)] if parallel else [[one] for one in found])]


def joined(folder):
    """All outputs of a stage's steps, oldest first."""
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    return b"".join(f"==== {file.name}\n".encode() + file.read_bytes() + b"\n" for file in files)


def verdict(steps, planned):
    states = {record["state"] for record in steps.values() if not record.get("optional")}
    if "failed" in states:
        return "failed"
    if "not started" in states:
        return "out of time"
    return "passed" if all(step.name in steps for step in planned) else "partly run"


def first_line(text):
    return text.splitlines()[0] if text else ""


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def rehearse(names):
    """Starts every step of the stages that is not missing, without a visible GPU. @return the problems, and the number
    of started steps."""
    problems, started = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        place = stages.Place(pathlib.Path(scratch), gpus=REHEARSAL_GPUS)
        for folder in [place.data, place.state / "tests"]:
            folder.mkdir()
        for name in names:
            begin = time.monotonic()
            planned = stages.plan(name, place)
            for one in planned:
                if one.missing:
                    say(f"warning: {name}: {one.name}: {one.missing}")
            found = rehearse_stage(planned, place.state / "logs" / name)
            problems += [f"{name}: {one.name}: {problem}\n  {one.text()}" for one, problem in found]
            started += sum(not one.missing for one in planned)
            say(f"{name}: {len(planned)} steps rehearsed in {time.monotonic() - begin:.0f} s")
    return problems, started


def rehearse_stage(planned, logs):
    """First runs, in order, the steps that work without a GPU: they write files that others read. Then runs the
    remaining steps, which only report that there is no GPU, in parallel. @return [(step, problem)]."""
    ordered = [one for one in planned if one.rehearsal == "works"]
    free = [one for one in planned if one.rehearsal != "works"]
    workers = min(4, host.facts()["cores"])
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        judged = [step.rehearse(one, logs / f"works{number}") for number, one in enumerate(ordered)]
        judged += pool.map(step.rehearse, free, [logs / str(number) for number in range(len(free))])
    return [(one, problem) for one, problem in zip(ordered + free, judged, strict=True) if problem]


def stop(number, frame):
    raise Problem(EXIT_FAILED, f"stopped by signal {number}; the results of finished steps are kept")


def check_names(names, cpu):
    unknown = [name for name in names if name not in stages.LIMITS_S]
    if unknown:
        raise Problem(EXIT_USAGE, f"expected stages among {', '.join(stages.LIMITS_S)}, got "
                      f"{', '.join(unknown)}")
    if cpu and names != ["scaling"]:
        raise Problem(EXIT_USAGE, "--cpu: expected the stage scaling alone, got "
                      f"{', '.join(names) or 'none'}")


def run(args):
    check_names(args.stages, args.cpu)
    bundle = host.bundle_facts()
    host.check_libraries(bundle)
    if args.rehearse:
        return rehearsal(args.stages or list(stages.LIMITS_S))
    gpus = 0 if args.cpu else len(find_gpus())
    signal.signal(signal.SIGTERM, stop)
    return Session(args, bundle).run(args.stages or stages.DEFAULT_STAGES, gpus, args.cpu)


def find_gpus():
    found = host.probe()
    if not found["gpus"]:
        raise Problem(EXIT_ENVIRONMENT, "expected a GPU that torch can use, got none (torch "
                      f"{found['torch']}; nvidia-smi shows whether a driver is installed)")
    return found["names"]


def rehearsal(names):
    problems, started = rehearse(names)
    if problems:
        raise Problem(EXIT_FAILED, f"{len(problems)} of {started} steps would fail:\n"
                      + "\n".join(problems))
    gpus = host.probe()["names"]
    if gpus:
        say(f"all {started} steps start; found {len(gpus)} x {gpus[0]}: run without --rehearse")
        return 0
    say(f"all {started} steps start; there is no GPU here")
    return EXIT_ENVIRONMENT
