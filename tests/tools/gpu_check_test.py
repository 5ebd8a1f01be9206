"""tools/gpu_check run, in a bundle whose programs are scripts, with a torch that is a stub."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/gpu_check"
GTEST = """#!/bin/sh
out=${1#--gtest_output=json:}
echo '{"testsuites": [{"testsuite": [{"name": "Works", "result": "COMPLETED"}]}]}' > "$out"
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.bundle = pathlib.Path(self.scratch.name) / "bundle"
        (self.bundle / "bin").mkdir(parents=True)
        shutil.copy(SCRIPT, self.bundle / "gpu_check")
        self.write("bundle.json", json.dumps({"torch": "2.11.0+cu130"}))
        self.program("precast-train", "#!/bin/sh\necho '{\"torch\": \"2.11.0\"}'\n")
        for test in ["engine_gpu_test", "batch_source_gpu_test"]:
            self.program(test, GTEST)
        self.program("precast", "#!/bin/sh\necho '{\"images_per_second\": 300}'\n")
        self.write("twin/twin_step.py", "print('{\"images_per_second\": 200}')\n")
        self.torch("2.11.0+cu130", gpu=True)

    def write(self, name, text):
        file = self.bundle / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return file

    def program(self, name, text):
        self.write(f"bin/{name}", text).chmod(0o755)

    def torch(self, version, gpu):
        self.write("stub/torch.py", f"__version__ = '{version}'\n__path__ = [__file__]\n"
                   f"class cuda:\n    is_available = staticmethod(lambda: {gpu})\n")
        # A package, as the wheel's: gpu_check asks for its folder.
        package = self.bundle / "stub/torch"
        package.mkdir(exist_ok=True)
        (self.bundle / "stub/torch.py").rename(package / "__init__.py")

    def run_stages(self, *stages):
        done = subprocess.run(
            [sys.executable, self.bundle / "gpu_check", "run", *stages, "--out",
             self.bundle / "out", "--work", self.bundle, "--rounds", "2"], capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": str(self.bundle / "stub")})
        self.output = done.stdout + done.stderr
        return done.returncode

    def report(self):
        return json.loads((self.bundle / "out/report.json").read_text())

    def test_without_a_gpu_it_says_so_and_ends_with_6(self):
        self.torch("2.11.0+cu130", gpu=False)
        self.assertEqual(self.run_stages(), 6)
        self.assertIn("expected a GPU that torch can use, got none", self.output)

    def test_another_torch_is_refused(self):
        self.torch("2.10.0", gpu=True)
        self.assertEqual(self.run_stages(), 6)
        self.assertIn("expected torch 2.11.0+cu130", self.output)

    def test_outside_a_bundle_or_with_an_unknown_stage_it_is_wrong_usage(self):
        self.assertEqual(self.run_stages("tsets"), 2)
        (self.bundle / "bundle.json").unlink()
        self.assertEqual(self.run_stages(), 2)

    def test_steps_are_paired_and_compared(self):
        self.assertEqual(self.run_stages("versions", "tests", "steps"), 0, self.output)
        rows = self.report()["steps"]["figures"]
        self.assertEqual(len(rows), 8)
        row = rows["resnet50 224 px x 256 fp16"]
        self.assertEqual((len(row["precast"]), len(row["twin"]), row["ratio"]), (2, 2, 1.5))
        self.assertIn("| resnet50 224 px x 256 fp16 | 300 | 200 | 1.500 | 2 |",
                      (self.bundle / "out/report.md").read_text())

    def test_a_failed_stage_is_kept_and_done_again_the_others_are_not(self):
        self.program("engine_gpu_test", GTEST + "echo losses differ >&2; exit 1\n")
        self.assertEqual(self.run_stages("versions", "tests"), 1)
        self.assertIn("losses differ", self.report()["tests"]["problem"])
        first = self.report()["versions"]["seconds"]
        self.program("engine_gpu_test", GTEST)
        # Without data the last two stages fail; what had passed is not touched.
        self.program("precast-train", "#!/bin/sh\nexit 1\n")
        self.assertEqual(self.run_stages(), 1)
        self.assertEqual(self.report()["tests"]["state"], "passed")
        self.assertEqual(self.report()["versions"]["seconds"], first)
        self.assertEqual(self.report()["train"]["state"], "failed")


if __name__ == "__main__":
    unittest.main()
