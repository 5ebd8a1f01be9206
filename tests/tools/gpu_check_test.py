"""Tests `tools/gpu_check run` in a bundle whose programs are scripts, with a stub of torch."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
GIT_VERSION = "70d99e998b"
# START records the arguments and library path of a program; NEEDS_GPU makes it exit with code 6 if GPUs are hidden.
START = """#!/bin/sh
echo "$0 $*" >> "$PRECAST_GOLDEN_DIR/../calls"
echo "$LD_LIBRARY_PATH" > "$PRECAST_GOLDEN_DIR/../libraries"
"""
NEEDS_GPU = 'if [ "${CUDA_VISIBLE_DEVICES-all}" = "" ]; then exit 6; fi\n'
GTEST = START + """
result=COMPLETED
if [ "${CUDA_VISIBLE_DEVICES-all}" = "" ]; then result=SKIPPED; echo "[  SKIPPED ] Kernel.Works"; fi
echo '{"testsuites": [{"testsuite": [{"classname": "Kernel", "name": "Works", "result": "'$result'"}]}]}' \\
  > "${1#--gtest_output=json:}"
"""
PRECAST = START + """
case "$*" in *--dry-run*) echo '{"steps_per_epoch": 3}'; exit 0;; esac
case "$1" in write | select) exit 0;; esac
""" + NEEDS_GPU + """
case "$1" in
  bench) echo '{"images_per_second": 300, "device_name": "Card"}';;
  train) echo '{"images_per_second": 90, "train_minutes": 2, "wait_minutes": 1, "top_1": 0.5}';;
  eval | predict) echo '{}';;
esac
"""
TWIN_STEP = """
import os, sys
if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
    sys.exit(6)
print('{"images_per_second": %d}' % (250 if "--compile" in sys.argv else 200))
"""
TWIN_TRAIN = TWIN_STEP.replace('{"images_per_second": %d}', '{"top_1": 0.4, "total_s": %d}')
DEVICE = TWIN_STEP.replace("'{\"images_per_second\": %d}' % (250 if \"--compile\" in sys.argv else 200)",
                           "'[{\"deviceName\": \"Card\"}]'")
SANITIZER = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift 2; done
exec "$@"
"""
TORCH = """
import os
__version__ = "{version}"
class backends:
    class cudnn:
        version = staticmethod(lambda: 91900)
class cuda:
    is_available = staticmethod(lambda: {gpus} > 0)
    device_count = staticmethod(lambda: {gpus})
    get_device_name = staticmethod(lambda number: "Card")
"""


class Bundle(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.bundle = self.scratch / "bundle"
        (self.bundle / "golden").mkdir(parents=True)
        shutil.copy(TOOLS / "gpu_check", self.bundle)
        shutil.copytree(TOOLS / "gpu_host", self.bundle / "gpu_host",
                        ignore=shutil.ignore_patterns("__pycache__"))
        self.write("bundle.json", json.dumps({"commit": "abc", "torch": "2.11.0+cu130",
                                              "torch_git_version": GIT_VERSION}))
        self.program("precast-train", START + "echo '{\"torch\": \"2.11.0\"}'\n")
        for test in ["kernels_gpu_test", "engine_gpu_test"]:
            self.program(test, GTEST)
        self.program("precast", PRECAST)
        self.program("kernel_bench", START + NEEDS_GPU + "echo '[]'\n")
        self.write("twin/twin_step.py", TWIN_STEP)
        self.write("twin/twin_train.py", TWIN_TRAIN)
        self.write("gpu_host/device_properties.py", DEVICE)
        self.write("tools/compute-sanitizer", SANITIZER).chmod(0o755)
        self.write("data/photos.beton", "")
        self.write_idx()
        self.torch("2.11.0+cu130", gpus=1)
        self.state, self.out = self.scratch / "state", self.scratch / "out"

    def write(self, name, text):
        file = self.bundle / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
        return file

    def program(self, name, text):
        self.write(f"bin/{name}", text).chmod(0o755)

    def edit(self, name, old, new):
        file = self.bundle / name
        self.assertIn(old, file.read_text())
        file.write_text(file.read_text().replace(old, new))

    def write_idx(self):
        sys.path.insert(0, str(TOOLS))
        from gpu_host import datasets
        for stem in datasets.STEMS.values():
            images, labels = datasets.idx_paths(self.bundle / "data", stem)
            datasets.write_idx(images, (2, 1, 1), b"ab")
            datasets.write_idx(labels, (2,), b"\0\1")

    def torch(self, version, gpus, git_version=GIT_VERSION):
        self.write("stub/torch/__init__.py", TORCH.format(version=version, gpus=gpus))
        self.write("stub/torch/version.py",
                   f"__version__ = '{version}'\ngit_version = '{git_version}'\n")
        (self.bundle / "stub/nvidia/cu13/lib").mkdir(parents=True, exist_ok=True)

    def environment(self, **more):
        environment = os.environ | {"PYTHONPATH": str(self.bundle / "stub"),
                                    "PATH": f"{self.bundle / 'tools'}:{os.environ['PATH']}"} | more
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        return environment

    def command(self, *arguments):
        return [sys.executable, self.bundle / "gpu_check", "run", *arguments, "--out", self.out,
                "--state", self.state]

    def run_check(self, *arguments, **more):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True,
                              env=self.environment(**more))
        self.output = done.stdout + done.stderr
        return done.returncode

    def steps(self, stage):
        return json.loads((self.out / "report.json").read_text())["stages"][stage]["steps"]

    def calls(self):
        return (self.bundle / "calls").read_text().splitlines()


class Refusals(Bundle):
    def test_without_a_gpu_it_ends_with_6(self):
        self.torch("2.11.0+cu130", gpus=0)
        self.assertEqual(self.run_check("correctness"), 6)
        self.assertIn("GPU", self.output)

    def test_another_torch_is_refused(self):
        self.torch("2.10.0", gpus=1)
        self.assertEqual(self.run_check("correctness"), 6)

    def test_the_same_version_from_another_commit_is_refused(self):
        self.torch("2.11.0+cu130", gpus=1, git_version="1234567890")
        self.assertEqual(self.run_check("correctness"), 6)
        self.assertIn("1234567890", self.output)

    def test_an_older_glibc_is_refused(self):
        facts = json.loads((self.bundle / "bundle.json").read_text())
        self.write("bundle.json", json.dumps(facts | {"needs": {"GLIBC": "2.999"}}))
        self.assertEqual(self.run_check("correctness"), 6)
        self.assertIn("2.999", self.output)

    def test_wrong_usage_ends_with_2(self):
        self.assertEqual(self.run_check("corectness"), 2)
        self.assertEqual(self.run_check("speed", "--cpu"), 2)
        self.state = self.out / "state"
        self.assertEqual(self.run_check("correctness"), 2)
        (self.bundle / "bundle.json").unlink()
        self.assertEqual(self.run_check("correctness"), 2)


class Correctness(Bundle):
    def test_passes_and_leaves_few_files(self):
        self.assertEqual(self.run_check("correctness"), 0, self.output)
        steps = self.steps("correctness")
        self.assertEqual(steps["engine_gpu_test"]["figures"], {"Kernel.Works": "passed"})
        self.assertEqual(steps["racecheck"]["state"], "passed")
        self.assertEqual(sorted(file.name for file in self.out.iterdir()),
                         ["correctness.log", "device.json", "report.json", "report.md"])
        self.assertEqual(json.loads((self.out / "device.json").read_text())[0]["deviceName"], "Card")

    def problem(self, step):
        self.assertEqual(self.run_check("correctness"), 1, self.output)
        self.assertEqual(self.steps("correctness")[step]["state"], "failed")
        self.assertIn(step, (self.out / "report.md").read_text())
        return self.steps("correctness")[step]["problem"]

    def test_a_skipped_test_is_a_failure(self):
        self.program("engine_gpu_test", GTEST.replace("=COMPLETED", "=SKIPPED"))
        self.assertIn("Kernel.Works: skipped", self.problem("engine_gpu_test"))

    def test_a_disabled_test_is_not_counted(self):
        self.program("engine_gpu_test", GTEST.replace('"testsuite": [', '"testsuite": [{"classname": "Kernel", '
                                                      '"name": "DISABLED_Part", "result": "SUPPRESSED"}, '))
        self.assertEqual(self.run_check("correctness"), 0, self.output)
        self.assertEqual(self.steps("correctness")["engine_gpu_test"]["figures"], {"Kernel.Works": "passed"})

    def test_a_program_without_tests_is_a_failure(self):
        self.program("engine_gpu_test", START + "echo '{\"testsuites\": []}' > ${1#--gtest_output=json:}\n")
        self.assertIn("0 tests", self.problem("engine_gpu_test"))

    def test_a_failed_test_is_reported_with_its_output(self):
        text = GTEST.replace('"result"', '"failures": [{}], "result"')
        self.program("engine_gpu_test", text + "echo losses differ >&2; exit 1\n")
        problem = self.problem("engine_gpu_test")
        self.assertIn("Kernel.Works: failed", problem)
        self.assertIn("losses differ", problem)

    def test_a_missing_library_is_reported_with_the_loaders_message(self):
        loader = "error while loading shared libraries: libnccl.so.2: cannot open shared object file"
        for program in ["engine_gpu_test", "precast-train"]:
            self.program(program, f"#!/bin/sh\necho '{loader}' >&2; exit 127\n")
        problem = self.problem("engine_gpu_test")
        self.assertIn(loader, problem)
        self.assertIn("127", problem)
        self.assertIn(loader, self.steps("correctness")["versions"]["problem"])

    def test_a_missing_sanitizer_is_a_failure_that_is_named(self):
        (self.bundle / "tools/compute-sanitizer").unlink()
        self.edit("gpu_host/host.py", 'CUDA_TOOLS = ["/usr/local/cuda/bin"]', "CUDA_TOOLS = []")
        self.assertIn("compute-sanitizer", self.problem("memcheck"))

    def test_a_program_that_the_bundle_lacks_is_only_reported(self):
        (self.bundle / "bin/kernels_gpu_test").unlink()
        self.assertEqual(self.run_check("correctness"), 0, self.output)
        self.assertEqual(self.steps("correctness")["kernels_gpu_test"]["state"], "absent")

    def test_library_folders_are_added_to_those_that_were_set(self):
        self.assertEqual(self.run_check("correctness", LD_LIBRARY_PATH="/driver/here:/other"), 0)
        folders = (self.bundle / "libraries").read_text().strip().split(":")
        stub = self.bundle / "stub"
        self.assertEqual(folders[:6], [str(self.bundle / "lib"), str(stub / "torch/lib"),
                                       str(stub / "nvidia/cu13/lib"), "/driver/here", "/other",
                                       "/usr/local/nvidia/lib64"])


class Time(Bundle):
    def setUp(self):
        super().setUp()
        self.edit("gpu_host/session.py", "LEAST_STEP_S = 10", "LEAST_STEP_S = 0.1")
        self.program("engine_gpu_test", "#!/bin/sh\nsleep 60\n")

    def test_a_stage_out_of_time_keeps_what_it_has(self):
        self.program("kernel_bench", "#!/bin/sh\nsleep 60\n")
        self.edit("gpu_host/stages.py", '"speed": 420', '"speed": 5')
        self.assertEqual(self.run_check("speed"), 1)
        steps = self.steps("speed")
        self.assertEqual(steps["precast: resnet50 224 px x 256 fp16"]["state"], "passed")
        self.assertIn("timed out", steps["kernel_bench"]["problem"])  # the wording is tested: a line of the report
        self.assertEqual(steps["precast: resnet50 224 px x 512 bf16"]["state"], "not started")

    def test_the_programs_of_tests_run_at_the_same_time(self):
        wait_for = 'touch "{0}/$(basename "$0")"; for i in $(seq 100); do test -e "{0}/{1}" && break; sleep 0.1; done\n'
        for test, other in [("kernels_gpu_test", "engine_gpu_test"), ("engine_gpu_test", "kernels_gpu_test")]:
            self.program(test, "#!/bin/sh\n" + wait_for.format(self.scratch, other)
                         + f'test -e "{self.scratch}/{other}" || exit 1\n' + GTEST)
        self.assertEqual(self.run_check("correctness"), 0, self.output)

    def test_only_the_named_steps_run(self):
        self.program("engine_gpu_test", GTEST)
        self.assertEqual(self.run_check("correctness", "--only", "kernels"), 0, self.output)
        self.assertEqual(set(self.steps("correctness")), {"kernels_gpu_test", "versions"})
        self.assertIn("partly run", self.output)  # the wording is tested: a line of the output
        self.assertEqual(self.run_check("correctness", "--only", "^$"), 2)
        self.assertEqual(self.run_check("correctness"), 0, self.output)
        self.assertEqual(self.steps("correctness")["engine_gpu_test"]["state"], "passed")
        self.assertEqual(self.run_check("correctness", "--only", "("), 2)

    def test_a_stage_that_is_stopped_from_outside_keeps_what_it_has(self):
        running = subprocess.Popen(self.command("correctness"), env=self.environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            if (self.out / "report.json").exists() and "kernels_gpu_test" in self.steps("correctness"):
                break
            time.sleep(0.1)
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(timeout=20), 1)
        self.assertEqual(self.steps("correctness")["kernels_gpu_test"]["state"], "passed")

    def test_a_second_call_continues_with_what_has_not_passed(self):
        self.program("engine_gpu_test", GTEST + "exit 1\n")
        self.assertEqual(self.run_check("correctness"), 1)
        shutil.rmtree(self.out)
        (self.bundle / "calls").unlink()
        self.program("engine_gpu_test", GTEST)
        self.assertEqual(self.run_check("correctness"), 0, self.output)
        self.assertEqual(len(self.calls()), 1)
        self.assertEqual(self.run_check("correctness", "--again"), 0)
        self.assertEqual(len(self.calls()), 1 + 5)


class Figures(Bundle):
    case = "resnet50 224 px x 256 fp16"

    def test_ratios_are_those_to_eager_and_to_compiled_although_out_was_emptied(self):
        self.assertEqual(self.run_check("baseline"), 0, self.output)
        shutil.rmtree(self.out)
        self.assertEqual(self.run_check("speed"), 0, self.output)
        text = (self.out / "report.md").read_text()
        self.assertIn(f"| {self.case} | 300 | 200 | 250 | 1.500 | 1.200 |", text)
        self.assertIn("1.000.", text)  # the anchor
        self.assertIn("graphs", text)

    def test_fused_kernels_are_compared_with_the_reference(self):
        self.program("models_gpu_test", GTEST)
        self.program("recipes_gpu_test", GTEST)
        self.program("precast", PRECAST.replace('case "$1" in\n', 'case "$*" in *kernels=fused*) '
                                                'echo \'{"images_per_second": 360}\'; exit;; esac\n'
                                                'case "$1" in\n'))
        self.assertEqual(self.run_check("fused"), 0, self.output)
        for name in ["parity", "parity of recipes"]:
            parity = self.steps("fused")[name]
            self.assertEqual(parity["state"], "passed")
            self.assertIn("GTEST_FILTER=", parity["command"])
        report = (self.out / "report.md").read_text()
        self.assertIn(f"| {self.case} | 300 | 360 | 360 | 360 | 1.200 | 1.200 | 1.200 |", report)

    def test_recorded_steps_are_compared_with_those_launched_kernel_by_kernel(self):
        self.program("precast", PRECAST.replace('case "$1" in\n', 'case "$*" in *cuda_graphs=step*) '
                                                'echo \'{"images_per_second": 450}\'; exit;; esac\n'
                                                'case "$1" in\n'))
        self.assertEqual(self.run_check("graphs"), 0, self.output)
        parity = self.steps("graphs")["parity"]
        self.assertEqual(parity["state"], "passed")
        self.assertIn("GTEST_FILTER=", parity["command"])
        self.assertIn(f"| {self.case} | 300 | 300 | 450 | 1.000 | 1.500 |",
                      (self.out / "report.md").read_text())

    def test_training_reports_accuracy_and_the_share_of_waiting(self):
        self.assertEqual(self.run_check("training"), 0, self.output)
        text = (self.out / "report.md").read_text()
        self.assertIn("| quickstart | 0.5000 | 120.0 |", text)
        self.assertIn("| quickstart twin | 0.4000 | 200.0 |", text)
        self.assertIn("50.0 %", text)
        for step, command in [("layers", "train"), ("layers, eval", "eval"), ("layers, predict", "predict")]:
            self.assertEqual(self.steps("training")[step]["state"], "passed")
            started = self.steps("training")[step]["command"].split()
            self.assertEqual((started[1], "--model.arch=layers" in started), (command, True))

    def test_without_photographs_mosaics_are_made_and_named(self):
        (self.bundle / "data/photos.beton").unlink()
        self.assertEqual(self.run_check("training"), 0, self.output)
        report = (self.out / "report.md").read_text()
        self.assertIn("end to end from mosaics", report)  # the wording is tested: a line of the report

    def test_results_of_several_calls_become_one_report(self):
        self.assertEqual(self.run_check("baseline"), 0)
        first = self.out
        self.out, self.state = self.scratch / "second", self.scratch / "second_state"
        self.write("twin/twin_step.py", TWIN_STEP.replace("200", "100"))
        self.assertEqual(self.run_check("speed"), 0)
        merged = self.scratch / "merged.md"
        command = [sys.executable, self.bundle / "gpu_check", "report", first, self.out, "-o", merged]
        self.assertEqual(subprocess.run(command).returncode, 0)
        self.assertIn(f"| {self.case} | 300 | 200 | 250 | 1.500 | 1.200 |", merged.read_text())
        self.assertIn("0.500. **", merged.read_text())  # the second card is half as fast
        self.assertEqual(subprocess.run([*command[:3], self.scratch, "-o", merged],
                                        stderr=subprocess.DEVNULL).returncode, 2)


class Rehearsal(Bundle):
    def rehearse(self, *stages):
        return self.run_check(*stages, "--rehearse")

    def test_starts_everything_and_says_that_there_is_no_gpu(self):
        self.torch("2.11.0+cu130", gpus=0)
        self.assertEqual(self.rehearse(), 6)
        self.assertIn("there is no GPU", self.output)  # the wording is tested: a line of the report
        started = " ".join(self.calls())
        for word in ["kernel_bench --json", "engine_gpu_test", "bench allreduce", "cuda_graphs=on",
                     "rn18_16px.yaml", "rn50_16_epochs.yaml", "--dist.world_size=1"]:
            self.assertIn(word, started)

    def test_on_a_host_with_a_gpu_it_ends_with_0(self):
        self.assertEqual(self.rehearse("correctness"), 0, self.output)

    def faults(self, stage, name, program):
        self.program(name, program)
        self.assertEqual(self.rehearse(stage), 1, self.output)

    def test_a_wrong_option_is_found(self):
        self.faults("scaling", "precast", PRECAST.replace(
            'case "$1" in write', 'case "$*" in *allreduce*) echo unknown option >&2; exit 2;; esac\n'
            'case "$1" in write'))
        self.assertIn("unknown option", self.output)
        self.assertIn("all-reduce", self.output)

    def test_a_crash_a_missing_library_and_a_program_that_needs_no_gpu_are_found(self):
        self.faults("speed", "kernel_bench", START + "kill -SEGV $$\n")
        self.faults("speed", "kernel_bench", "#!/bin/sh\necho cannot open shared object file >&2; exit 127\n")
        self.assertIn("cannot open shared object file", self.output)  # the wording is tested: a line of the report
        self.faults("speed", "kernel_bench", START + "echo '[]'\n")

    def test_a_test_program_that_fails_is_found(self):
        self.faults("correctness", "engine_gpu_test", START + "exit 1\n")


class Commit(unittest.TestCase):
    def test_builds_of_changed_sources_have_different_names(self):
        sys.path.insert(0, str(TOOLS))
        from gpu_host import bundle
        names = []
        with tempfile.TemporaryDirectory() as folder:
            for described, program in (("abc", "1"), ("abc", "2"), ("abc-dirty", "1"), ("abc-dirty", "2")):
                (pathlib.Path(folder) / "program").write_text(program)
                done = subprocess.CompletedProcess([], 0, stdout=described + "\n")
                with unittest.mock.patch.object(bundle.subprocess, "run", return_value=done):
                    names.append(bundle.commit(pathlib.Path(folder)))
        self.assertEqual(names[:2], ["abc", "abc"])
        self.assertNotEqual(names[2], names[3])
        self.assertTrue(all(name.startswith("abc-dirty-") for name in names[2:]), names)


class Options(unittest.TestCase):
    def test_the_twin_has_the_options_of_bench_step(self):
        """`bench step` checks its options in the rehearsal of a bundle; the twin needs torch to start."""
        sys.path.insert(0, str(TOOLS))
        sys.path.insert(0, str(TOOLS / "peers/torch_twin"))
        from gpu_host import cases
        with unittest.mock.patch.dict(sys.modules, {"torch": unittest.mock.MagicMock(),
                                                    "recipe": unittest.mock.MagicMock()}):
            import twin_step
        for case in cases.CASES:
            command = case.compiled(pathlib.Path("cache")).command
            args = twin_step.arguments([str(part) for part in command[2:]])
            self.assertEqual((args.image_size, args.batch_size, args.steps),
                             (case.size_px, case.batch, case.steps))


if __name__ == "__main__":
    unittest.main()
