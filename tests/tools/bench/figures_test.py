"""Tests the scripts for figures 5b and 5c of FFCV's paper on datasets that take seconds, and shared_loading.py.

    figures_test.py BUILD_FOLDER
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BENCH = pathlib.Path(__file__).resolve().parents[3] / "tools/bench"
PRECAST = pathlib.Path(sys.argv.pop() if len(sys.argv) > 1 else "build") / "bin/precast"
SKIPPED = 77

# A precast whose server prints more than a pipe holds before the consumer ends.
TALKING_PRECAST = """#!/bin/sh
case $1 in
serve)
  echo "serving ring://$4" >&2
  head -c 300000 /dev/zero | tr '\\0' x >&2
  echo end >FIFO
  echo '{"cpu_seconds": 3, "samples_decoded": 10}'
  ;;
bench)
  read -r word <FIFO
  echo '{"cpu_seconds": 1, "samples_per_second": 5}'
  ;;
esac
"""


class SharedLoadingTest(unittest.TestCase):
    def test_a_server_that_prints_much_does_not_stop(self):
        sys.path.insert(0, str(BENCH))
        sys.dont_write_bytecode = True
        import shared_loading
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        (folder / "bin").mkdir()
        os.mkfifo(folder / "FIFO")
        (folder / "bin/precast").write_text(TALKING_PRECAST.replace("FIFO", str(folder / "FIFO")))
        (folder / "bin/precast").chmod(0o755)
        arguments = argparse.Namespace(build=folder, file="d.beton", workers=1, repeats=1, image_size=32, batch_size=4,
                                       epochs=1)
        self.assertEqual(shared_loading.Bench(arguments, folder).shared(1), (5, 0.4))


class FiguresTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def measure(self, script, *options):
        """Runs a script. If the script skips, so does the test. @return the finished process, its JSON and its
        chart."""
        files = [pathlib.Path(self.folder.name) / name for name in ("out.json", "out.svg")]
        done = subprocess.run([sys.executable, BENCH / script, "--precast", PRECAST, "--rounds", "1",
                               "--json", files[0], "--svg", files[1], *options], capture_output=True, text=True)
        if done.returncode == SKIPPED:
            self.assertIn("skipped: ", done.stderr)
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        chart = xml.etree.ElementTree.parse(files[1]).getroot()
        return done, json.loads(files[0].read_text()), chart

    def test_models_train_at_the_same_time(self):
        done, result, chart = self.measure("concurrent_training.py", "--models", "1,2", "--samples", "64", "--px", "32",
                                           "--epochs", "1")
        self.assertEqual([point["models"] for point in result["points"]], [1, 2])
        one, two = result["points"]
        self.assertEqual(len(two["rounds"][0]["images_per_second"]), 2)
        self.assertAlmostEqual(two["images_per_second_all"], sum(two["rounds"][0]["images_per_second"]))
        self.assertGreater(two["proportional_bytes"], one["proportional_bytes"])
        self.assertEqual(len(done.stdout.splitlines()), 4)
        self.assertEqual(len(chart.findall("{http://www.w3.org/2000/svg}polyline")), 2)

    def test_a_run_that_fails_ends_the_script_with_its_message(self):
        done = subprocess.run([sys.executable, BENCH / "concurrent_training.py", "--precast", PRECAST, "--rounds", "1",
                               "--models", "1", "--samples", "64", "--px", "32", "--", "--lr.lr=none"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("lr.lr", done.stderr)

    def test_a_file_larger_than_memory_is_read_in_three_ways(self):
        done, result, chart = self.measure("low_memory.py", "--samples", "512", "--px", "224", "--limits", "0.7,2",
                                           "--passes", "1")
        self.assertGreater(result["file_bytes"], 512 * 224 * 224 * 3)
        self.assertEqual([point["way"] for point in result["points"]], 2 * ["random", "quasi_random", "own cache"])
        for point in result["points"]:
            self.assertGreater(point["images_per_second"], 0, point)
        self.assertEqual(len(done.stdout.splitlines()), 4)
        self.assertEqual(len(chart.findall("{http://www.w3.org/2000/svg}polyline")), 3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
