"""One step of a stage: a command with a time limit, the figures to read from its output, the expected result."""

import dataclasses
import json
import os
import shlex
import signal
import subprocess
import time
import typing

from gpu_host import host

NO_GPU = 6
KEPT_OUTPUT = 200_000


class Failure(Exception):
    """Raised if a step ran but did not produce the expected result."""


@dataclasses.dataclass
class Output:
    code: int
    out: str
    err: str

    def end(self, most=3000):
        """Returns the end of the output, for the message about a failure."""
        return (self.out[-most // 2:] + self.err[-most:]).strip()


def last_json(output):
    """Returns the figures that a program printed as JSON: its complete output or, if that is not JSON, its last
    line."""
    try:
        return json.loads(output.out)
    except ValueError:
        lines = output.out.strip().splitlines()
        try:
            return json.loads(lines[-1])
        except (ValueError, IndexError):
            raise Failure(f"expected JSON, got: {output.end()}") from None


@dataclasses.dataclass
class Step:
    name: str
    command: list
    limit_s: float
    read: typing.Callable = last_json  # figures from Output; raises Failure
    ours: bool = True  # runs with the bundle's libraries
    environment: dict = dataclasses.field(default_factory=dict)
    # The expected result of a rehearsal without a GPU: "no_gpu": exit code 6; "skips": tests that are skipped; "works":
    # exit code 0; "optional": any exit code, and the program may be missing.
    rehearsal: str = "no_gpu"
    missing: str = ""  # why the step cannot start; empty if it can
    optional: bool = False  # a failure is noted, but does not fail the stage
    reads_failures: bool = False  # `read` also checks the exit code
    parallel: bool = False  # runs at the same time as neighbouring steps that are also parallel

    def text(self):
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        return " ".join(settings + [shlex.quote(str(part)) for part in self.command])


def gtest(name, program, folder, limit_s, wrapper=(), **more):
    """A step that runs a GoogleTest program. A skipped test fails the step, because it did not test this GPU.

    @param wrapper a tool, with its options, under which the tests run.
    """
    report = folder / f"{name.replace(' ', '_')}.json"

    def read(output):
        # If the program does not load, there is no report; its output gives the reason.
        if not report.exists():
            raise Failure(f"expected a GoogleTest report, got none and exit code {output.code}:\n{output.end()}")
        cases = [case for suite in json.loads(report.read_text())["testsuites"]
                 for case in suite["testsuite"]]
        report.unlink()
        # A disabled test is SUPPRESSED: other tests start it in a separate process.
        results = {f"{case.get('classname', '')}.{case['name']}".lstrip("."): result_of(case)
                   for case in cases if case.get("result") != "SUPPRESSED"}
        wrong = [f"{name}: {result}" for name, result in results.items() if result != "passed"]
        if output.code != 0 or wrong or not results:
            raise Failure("\n".join([f"exited with {output.code}; {len(results)} tests, not passed: "
                                     f"{len(wrong)}", *wrong, output.end()]))
        return results

    settings = {"rehearsal": "skips", "reads_failures": True} | more
    return Step(name, [*wrapper, program, f"--gtest_output=json:{report}"], limit_s, read=read, **settings)


def result_of(case):
    if "failures" in case:
        return "failed"
    return "passed" if case.get("result", "COMPLETED") == "COMPLETED" else "skipped"


# The running commands. If gpu_check is stopped, it ends them instead of waiting for their time limits.
running = set()


def end_all():
    for process in list(running):
        end_group(process)


def end_group(process):
    """Ends the command and all processes that it has started."""
    for number in [signal.SIGTERM, signal.SIGKILL]:
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=3)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
    process.wait()


def start(step, log, limit_s, hide_gpus):
    """Runs the step. @return Output; raises TimeoutExpired after the limit. Complete output is written next to
    `log`."""
    environment = (host.environment() if step.ours else dict(os.environ)) | step.environment
    if hide_gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    log.parent.mkdir(parents=True, exist_ok=True)
    out, err = log.with_suffix(".out"), log.with_suffix(".err")
    with open(out, "wb") as out_file, open(err, "wb") as err_file:
        process = subprocess.Popen([str(part) for part in step.command], stdout=out_file,
                                   stderr=err_file, env=environment, start_new_session=True)
        running.add(process)
        try:
            process.wait(timeout=limit_s)
        finally:
            if process.poll() is None:
                end_group(process)
            running.discard(process)
    return Output(process.returncode, read_end(out), read_end(err))


def read_end(file):
    with open(file, "rb") as stream:
        stream.seek(max(0, file.stat().st_size - KEPT_OUTPUT))
        return stream.read().decode(errors="replace")


def run(step, log, limit_s):
    """Runs the step. @return its record for the report."""
    record = {"command": step.text()}
    if step.missing:
        return record | {"state": "absent" if step.optional else "failed", "problem": step.missing}
    begin = time.monotonic()
    try:
        output = start(step, log, min(step.limit_s, limit_s), hide_gpus=False)
        record["exit_code"] = output.code
        if output.code != 0 and not step.reads_failures:
            raise Failure(f"exited with {output.code}:\n{output.end()}")
        record |= {"state": "passed", "figures": step.read(output)}
    except subprocess.TimeoutExpired as late:
        record |= {"state": "failed", "problem": f"timed out after {late.timeout:.0f} s"}
    except (Failure, OSError, ValueError, KeyError, IndexError, TypeError) as failure:
        record |= {"state": "failed", "problem": str(failure) or repr(failure)}
    return record | {"seconds": round(time.monotonic() - begin, 1)}


def rehearse(step, log):
    """Runs the step without a visible GPU. @return the problem; empty if `step.rehearsal` allows the outcome."""
    if step.missing:
        return "" if step.optional or step.rehearsal == "optional" else step.missing
    try:
        return judge(step, start(step, log, step.limit_s, hide_gpus=True))
    except FileNotFoundError as failure:
        return "" if step.rehearsal == "optional" else str(failure)
    except subprocess.TimeoutExpired as late:
        return f"timed out after {late.timeout:.0f} s"
    except (Failure, OSError, ValueError, KeyError, IndexError, TypeError) as failure:
        return str(failure) or repr(failure)


def judge(step, output):
    if step.rehearsal == "works":
        if output.code != 0:
            return f"expected exit code 0 without a GPU, got {output.code}:\n{output.end()}"
        step.read(output)
    elif step.rehearsal == "no_gpu" and output.code != NO_GPU:
        return f"expected exit code {NO_GPU} (no GPU), got {output.code}:\n{output.end()}"
    elif step.rehearsal == "skips":
        if output.code not in (0, NO_GPU):
            return f"expected skipped tests, got exit code {output.code}:\n{output.end()}"
        if output.code == 0 and "SKIPPED" not in output.out:
            return f"expected skipped tests, got none:\n{output.end()}"
    return ""
