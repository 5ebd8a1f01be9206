#!/usr/bin/env python3
"""Tests tools/test, tools/coverage, tools/fuzz, tools/setup and .ci/run in a tree that contains only these scripts,
without building anything."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
EXIT_FAILED, EXIT_USAGE, EXIT_IO = 1, 2, 5

# libFuzzer keeps the input of a finding in the folder of -artifact_prefix.
FINDS = """for word; do case $word in -artifact_prefix=*) echo input >"${word#*=}crash-1" ;; esac; done; exit 77"""


class Scripts(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        (self.root / "tools").mkdir()
        for name in ("lib.sh", "test", "coverage", "fuzz", "setup"):
            shutil.copy(TOOLS / name, self.root / "tools")

    def write(self, path, text="exit 0"):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def run_script(self, name, *arguments, folder="."):
        """Runs a script in that folder of the tree, with the programs in bin/ before those of the system."""
        environment = os.environ | {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        environment.pop("PRECAST_BUILD_DIR", None)
        return subprocess.run([self.root / "tools" / name, *arguments], cwd=self.root / folder, env=environment,
                              text=True, capture_output=True)


class Options(Scripts):
    def setUp(self):
        super().setUp()
        self.write("tools/setup", "exit 99")

    def test_one_sanitizer_at_a_time(self):
        self.assertEqual(self.run_script("test", "--asan", "--tsan").returncode, EXIT_USAGE)
        self.assertEqual(self.run_script("test", "--asan", "--asan").returncode, 99)

    def test_coverage_takes_folders_and_no_options(self):
        done = self.run_script("coverage", "data/beton", "--all")
        self.assertEqual(done.returncode, EXIT_USAGE)
        self.assertIn("'--all'", done.stderr)
        self.assertEqual(self.run_script("coverage", "data/beton").returncode, 99)


class AllChecks(Scripts):
    def test_arguments_are_refused_before_the_first_check(self):
        (self.root / ".ci").mkdir()
        shutil.copy(TOOLS.parent / ".ci/run", self.root / ".ci")
        self.write("tools/setup", "exit 99")
        done = self.run_script("../.ci/run", "lint")
        self.assertEqual(done.returncode, EXIT_USAGE)
        self.assertIn("'lint'", done.stderr)
        self.assertEqual(self.run_script("../.ci/run", "--help").returncode, 0)
        done = self.run_script("../.ci/run")
        self.assertEqual(done.returncode, EXIT_FAILED)
        self.assertIn("exit code 99", done.stdout)


@unittest.skipUnless(pathlib.Path("/usr/bin/dpkg-query").exists(), "tools/setup needs Debian")
class Setup(Scripts):
    def setUp(self):
        super().setUp()
        self.write("bin/df", "echo Avail; echo 1")
        # Reports every package as installed.
        self.write("bin/dpkg-query", 'shift 3; for package; do echo "ii  $package"; done')

    def fix(self, *arguments):
        done = self.run_script("setup", *arguments)
        self.assertEqual(done.returncode, EXIT_IO, done.stderr)
        return done.stderr

    def test_a_full_disk_is_reported_with_a_fix_that_helps(self):
        self.assertNotIn("--cpu", self.fix("--cpu"))
        self.write("bin/nvcc")
        self.assertIn("--cpu", self.fix())


class Coverage(Scripts):
    def test_folders_are_relative_to_the_tree_wherever_it_is_started(self):
        for program in ("tools/setup", "bin/cmake", "build-coverage/bin/data_beton_test",
                        "build-coverage/bin/data_loader_test"):
            self.write(program)
        # Prints its folder, because gcovr resolves filters relative to the current folder.
        self.write("build-coverage/venv/bin/gcovr", 'for word; do echo "$word"; done; echo "in $(pwd -P)"')
        for folder in (".", "tools"):
            done = self.run_script("coverage", "data/ring", folder=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = done.stdout.splitlines()
            self.assertIn("--filter=data/ring", lines)
            self.assertIn(f"in {self.root.resolve()}", lines)


class Fuzz(Scripts):
    def setUp(self):
        super().setUp()
        for program in ("tools/setup", "bin/cmake", "bin/llvm-symbolizer-19", "build-asan/bin/make_seeds"):
            self.write(program)

    def test_a_finding_is_not_a_target_that_did_not_start(self):
        for target, text in (("npy", "exit 0"), ("tar", FINDS), ("outside_message", "exit 127")):
            self.write(f"build-asan/bin/fuzz_{target}", text)
        done = self.run_script("fuzz", "npy", "tar", "outside_message")
        self.assertEqual(done.returncode, EXIT_FAILED, done.stderr)
        lines = {line.split()[0]: line for line in done.stdout.splitlines() if " executions, " in line}
        self.assertEqual({name for name, line in lines.items() if "FINDING" in line}, {"tar"})
        self.assertEqual({name for name, line in lines.items() if "FAILED" in line}, {"outside_message"})
        self.assertIn(" 127", lines["outside_message"])
        self.assertEqual(len({line.index(" executions, ") for line in lines.values()}), 1)
        # A later run does not report the finding of an earlier run.
        self.write("build-asan/bin/fuzz_tar")
        self.assertEqual(self.run_script("fuzz", "tar").returncode, 0)


if __name__ == "__main__":
    unittest.main()
