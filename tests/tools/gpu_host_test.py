"""Tests the modules of tools/gpu_host: device properties, small datasets, killed ranks."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
sys.dont_write_bytecode = True

from gpu_host import bundle, cases, datasets, device_properties, host, report, stages, step  # noqa: E402


class FakeCard:
    """Returns 1000 + N for attribute N."""

    def name(self, device):
        return f"Card {device}"

    def version(self):
        return 13000

    def memory_bytes(self, device):
        return 1 << 37

    def attribute(self, device, number):
        return {75: 9, 76: 0}.get(number, 1000 + number)


class Properties(unittest.TestCase):
    def test_have_the_names_that_cudnn_reads(self):
        described = device_properties.describe(FakeCard(), 1)
        self.assertEqual(described["deviceName"], "Card 1")
        self.assertEqual(described["deviceVer"], 900)
        self.assertEqual(described["l2CacheSize"], 1038)
        self.assertEqual(described["maxGridSize"], [1005, 1006, 1007])
        wanted = {"cudaDeviceId", "driverVer", "isTccDriver", "maxBlockSize", "maxCtasPerSM",
                  "maxRegistersPerSM", "maxSharedMemoryPerBlock", "maxSharedMemoryPerBlockOptin",
                  "maxThreadsPerBlock", "maxThreadsPerSM", "memClockRateKHz", "multiProcessorCount",
                  "pciDeviceId", "regsPerBlock", "reservedSharedMemoryPerBlock", "smClockRateKHz",
                  "supportCoopLaunch", "totalGlobalMem", "warpSize"}
        self.assertEqual(wanted - set(described), set())

    def test_a_call_that_fails_is_named(self):
        class Broken:
            cuInit = staticmethod(lambda flags: 100)
        with self.assertRaisesRegex(
                OSError, "cuInit returned CUDA error 100"):  # the wording is tested: a line of the report
            device_properties.Driver(Broken()).count()


class Datasets(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        for stem in datasets.STEMS.values():
            images, labels = datasets.idx_paths(self.folder, stem)
            datasets.write_idx(images, (3, 2, 2), bytes(range(12)))
            datasets.write_idx(labels, (3,), bytes([7, 8, 9]))

    def test_a_subset_has_the_first_images_and_their_labels(self):
        target = self.folder / "subset"
        target.mkdir()
        datasets.write_subset(self.folder, target, {"train": 2, "val": 9})
        images, labels = datasets.idx_paths(target, "train")
        self.assertEqual(datasets.read_idx(images), ((2, 2, 2), bytes(range(8))))
        self.assertEqual(datasets.read_idx(labels), ((2,), bytes([7, 8])))
        self.assertEqual(datasets.read_idx(datasets.idx_paths(target, "t10k")[0])[0], (3, 2, 2))

    def test_arrays_are_rgb_npy_files(self):
        datasets.write_arrays(self.folder, self.folder)
        raw = (self.folder / "train_images.npy").read_bytes()
        size = int.from_bytes(raw[8:10], "little")
        self.assertEqual((10 + size) % 64, 0)
        self.assertIn(b"'shape': (3, 2, 2, 3)", raw)
        self.assertEqual(raw[10 + size:][:6], bytes([0, 0, 0, 1, 1, 1]))

    def test_mosaics_begin_with_the_image_whose_label_they_have(self):
        datasets.write_mosaics(self.folder, self.folder, count=2)
        images, labels = datasets.idx_paths(self.folder, "mosaics", suffix="")
        side = 2 * datasets.MOSAIC_SIDE
        raw = images.read_bytes()
        self.assertEqual(len(raw), 16 + 2 * side * side)
        second = raw[16 + side * side:]
        self.assertEqual(second[:2] + second[side:side + 2], bytes([4, 5, 6, 7]))
        self.assertEqual(labels.read_bytes()[8:], bytes([7, 8]))


class Plans(unittest.TestCase):
    def test_default_stages_fit_into_26_minutes_and_each_into_nine(self):
        self.assertLessEqual(sum(stages.LIMITS_S[name] for name in stages.DEFAULT_STAGES), 26 * 60)
        self.assertLess(max(stages.LIMITS_S.values()), 9 * 60)

    def test_names_are_unique_and_every_case_has_both_sides(self):
        place = stages.Place(pathlib.Path("/state"), gpus=8)
        names = {stage: [one.name for one in stages.plan(stage, place)] for stage in stages.LIMITS_S}
        for stage in names.values():
            self.assertEqual(len(stage), len(set(stage)))
        for case in cases.CASES:
            self.assertIn(f"eager: {case.name}", names["baseline"])
            self.assertIn(f"precast: {case.name}", names["speed"])
        self.assertTrue(any("8 ranks" in name for name in names["scaling"]))

    def test_ranks_are_no_more_than_gpus(self):
        names = [one.name for one in stages.plan("scaling", stages.Place(pathlib.Path("/state"), gpus=1))]
        self.assertFalse(any("2 ranks" in name for name in names))
        self.assertTrue(any(name.startswith("training step, 1 ranks") for name in names))


class Bundles(unittest.TestCase):
    def test_a_build_has_a_job_for_each_usable_core_or_as_many_as_asked_for(self):
        with unittest.mock.patch.dict(os.environ, {"PRECAST_JOBS": "7"}):
            self.assertEqual(bundle.jobs(), "7")
            del os.environ["PRECAST_JOBS"]
            cores = os.sched_getaffinity(0)
            self.addCleanup(os.sched_setaffinity, 0, cores)
            os.sched_setaffinity(0, {min(cores)})
            self.assertEqual(bundle.jobs(), "1")

    def test_needed_versions_are_text(self):
        self.assertEqual(bundle.needs_text({"GLIBCXX": "3.4.30", "GLIBC": "2.36"}), "GLIBC 2.36, GLIBCXX 3.4.30")


class Reports(unittest.TestCase):
    def test_only_a_step_that_passed_has_a_rate(self):
        figures = {"images_per_second": 5}
        self.assertEqual(report.rate({"state": "passed", "figures": figures}), 5)
        for record in (None, {"state": "failed", "figures": figures}, {"state": "passed"}):
            self.assertIsNone(report.rate(record))


class Steps(unittest.TestCase):
    def test_a_command_that_outlasts_its_limit_is_ended_with_its_children(self):
        with tempfile.TemporaryDirectory() as folder:
            late = step.Step("late", ["sh", "-c", "echo begun; sleep 60 & wait"], 0.5, ours=False)
            record = step.run(late, pathlib.Path(folder) / "late.log", 100)
            self.assertIn("timed out", record["problem"])  # the wording is tested: a line of the report
            self.assertLess(record["seconds"], 10)
            self.assertEqual((pathlib.Path(folder) / "late.out").read_text(), "begun\n")

    def test_a_program_that_is_not_there_fails_the_step(self):
        with tempfile.TemporaryDirectory() as folder:
            record = step.run(step.Step("none", ["/none/such"], 5, ours=False),
                              pathlib.Path(folder) / "none.log", 100)
            self.assertEqual(record["state"], "failed")

    def test_versions_compare_as_numbers(self):
        self.assertLess(host.numbers("2.9"), host.numbers("2.36"))


RANK = """
import os, signal, sys, time
if os.environ["RANK"] == "1":
    assert os.environ["PRECAST_FAILPOINTS"] == "trainer.before_step=kill@12%1"
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(0.2)
print("error: rank 1 is gone", file=sys.stderr)
sys.exit(CODE)
"""


class Ranks(unittest.TestCase):
    def kill(self, code):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, TOOLS / "gpu_host/kill_rank.py", "--ranks", "2", "--at_step", "12",
                 "--limit", "5", "--run", pathlib.Path(folder) / "run", "--", sys.executable, "-c",
                 RANK.replace("CODE", str(code))], capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout)

    def test_survivors_must_end_with_13_and_name_the_cause(self):
        code, figures = self.kill(13)
        self.assertEqual((code, figures["codes"]), (0, [13, -9]))
        self.assertEqual(figures["cause"], ["error: rank 1 is gone"])
        self.assertEqual(self.kill(0)[0], 1)
        self.assertEqual(self.kill(6)[0], 1)


if __name__ == "__main__":
    unittest.main()
