#!/usr/bin/env python3
"""Tests the code of tools/peers that needs no peer: rows, ratios, tables, paths of control groups. If the argument is a
build folder, also checks that the code understands the rows that this build's precast plans."""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "peers"))
sys.dont_write_bytecode = True

import bench_loader  # noqa: E402
import loader_rows  # noqa: E402
import read_limit  # noqa: E402

BUILD = sys.argv.pop() if len(sys.argv) > 1 and pathlib.Path(sys.argv[-1]).is_dir() else None


def run(per_second, per_cpu_second):
    return {"per_second": per_second, "per_cpu_second": per_cpu_second, "anonymous_bytes": 1e6,
            "proportional_bytes": 2e6, "peak_resident_bytes": 3e6}


class Rows(unittest.TestCase):
    def test_every_table_compares_precast_with_somebody_who_can_read_the_file(self):
        for table in loader_rows.TABLES.values():
            for cores in (1, 2, 16):
                rows = table(cores)
                self.assertEqual(len(rows), len(set(rows)))
                for row in rows:
                    self.assertEqual(row.peers[0], "precast")
                    self.assertGreater(len(row.peers), 1)
                    if row.kind != "jpg":
                        self.assertTrue(all(loader_rows.SOURCES[peer] == "beton" for peer in row.peers), row)

    def test_lists_make_all_combinations(self):
        rows = loader_rows.product(["jpg", "raw"], [176, 224], ["u8"], [1, 2], [1], [16, 256], ["dali", "ffcv"])
        self.assertEqual(len(set(rows)), 16)
        self.assertEqual({row.peers for row in rows if row.kind == "raw"}, {("precast", "ffcv")})
        self.assertEqual({row.peers for row in rows if row.kind == "jpg"},
                         {("precast", "precast_indexed", "dali", "ffcv")})


def planned(**changes):
    row = {"from": "memory", "file": "raw", "mode": "raw", "max_resolution": 256, "image_size": 224, "workers": 2,
           "loader": "precast", "copies": 1}
    return row | changes


class Seeds(unittest.TestCase):
    def test_variants_of_precast_in_one_setting_are_one_row_with_those_who_can_read_the_file(self):
        jpg = {"file": "jpg", "mode": "jpg", "max_resolution": 512}
        plan = {"format": "f16", "batch_size": 64,
                "rows": [planned(), planned(**jpg), planned(**jpg, loader="precast_indexed"),
                         planned(**jpg, workers=4), planned(**{"from": "disk"}, copies=2)]}
        rows = loader_rows.seeds(plan)
        self.assertEqual([(row.kind, row.workers, row.slow_disk) for row in rows],
                         [("raw", 2, False), ("jpg", 2, False), ("jpg", 4, False), ("raw", 2, True)])
        self.assertEqual({(row.format, row.batch, row.side, row.processes) for row in rows}, {("f16", 64, 224, 1)})
        self.assertEqual(rows[0].peers, ("precast", "ffcv"))
        self.assertEqual(rows[1].peers, ("precast", "precast_indexed", "ffcv", "torchvision", "webdataset", "dali"))
        self.assertEqual(rows[3].peers, ("precast", "ffcv", "ffcv_quasi"))

    def test_a_file_that_is_not_written_alike_is_an_error(self):
        for other in ({"max_resolution": 512}, {"mode": "jpg"}, {"copies": 2}):
            with self.assertRaises(ValueError):
                loader_rows.seeds({"format": "u8", "batch_size": 256, "rows": [planned(**other)]})

    @unittest.skipUnless(BUILD, "no build folder was given")
    def test_the_rows_of_precast_itself_are_understood(self):
        with tempfile.TemporaryDirectory() as folder:
            beton = str(pathlib.Path(folder) / "d.beton")
            zipped = pathlib.Path(__file__).parents[1] / "golden" / "beton" / "img_jpg_w3.beton.gz"
            pathlib.Path(beton).write_bytes(gzip.decompress(zipped.read_bytes()))
            output = subprocess.run([f"{BUILD}/bin/precast", "bench", "loader", beton, "--table", "seeds", "--dry-run",
                                     "--json"], check=True, capture_output=True).stdout
        plan = json.loads(output)
        rows = loader_rows.seeds(plan)
        self.assertEqual(sum(peer in loader_rows.PRECAST for row in rows for peer in row.peers), len(plan["rows"]))
        self.assertEqual({row.kind for row in rows if row.slow_disk}, set(loader_rows.KINDS))
        for row in rows:
            self.assertTrue(row.kind == "jpg" or all(loader_rows.SOURCES[peer] == "beton" for peer in row.peers), row)
        self.assertTrue(all(row["quality"] in (None, 90) for row in plan["rows"]))


class Figures(unittest.TestCase):
    row = loader_rows.Row("jpg", peers=("precast", "ffcv", "dali"))

    def test_a_ratio_is_the_median_of_the_rounds_own_ratios(self):
        runs = {"precast": [run(300, 30), run(100, 10), run(200, 20)], "ffcv": [run(100, 10), run(20, 5), run(200, 20)]}
        precast, ffcv, dali = bench_loader.summarise(self.row, runs, {"dali": "no GPU"})
        self.assertEqual(precast["per_second"], 200)
        self.assertEqual((ffcv["per_second"], ffcv["per_second_min"], ffcv["per_second_max"]), (100, 20, 200))
        self.assertEqual(ffcv["precast_over_peer_per_second"], 3)  # the median of 3, 5 and 1
        self.assertEqual(ffcv["precast_over_peer_per_cpu_second"], 2)  # the median of 3, 2 and 1
        self.assertEqual(dali["cannot"], "no GPU")

    def test_the_machine_is_what_precast_says_with_all_cores_of_this_process(self):
        answer = {"processor": "EPYC", "cores": 1, "simd": "AVX3", "caches_kib": {"l1d": 32}, "points": []}
        self.assertEqual(bench_loader.machine_of(answer),
                         {"processor": "EPYC", "cores": len(os.sched_getaffinity(0)), "simd": "AVX3",
                          "caches_kib": {"l1d": 32}})

    def test_processes_at_once_add_up(self):
        one = {"images": 100, "seconds": 2.0, "cpu_seconds": 1.0, "anonymous_bytes": 5}
        two = {"images": 300, "seconds": 3.0, "cpu_seconds": 3.0, "anonymous_bytes": 7}
        both = bench_loader.combined([one, two])
        self.assertEqual((both["images"], both["seconds"], both["cpu_seconds"]), (400, 3.0, 4.0))
        self.assertEqual((both["per_second"], both["per_cpu_second"], both["anonymous_bytes"]), (150, 100, 12))

    def test_tables_have_a_cell_for_each_column_and_say_who_could_not(self):
        lines = bench_loader.summarise(self.row, {"precast": [run(3, 3)], "ffcv": [run(1, 1)]},
                                       {"dali": "no GPU\nlong story"})
        for line in bench_loader.format_table(lines, markdown=True).splitlines():
            self.assertEqual(line.count("|"), len(bench_loader.HEAD) + 1)
        text = bench_loader.format_table(lines, markdown=False)
        self.assertIn("no GPU", text)
        self.assertNotIn("long story", text)
        self.assertIn("3.00", text)


class ReadLimits(unittest.TestCase):
    def test_control_groups_that_limit_reads_are_found(self):
        mounts = ("cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
                  "cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n"
                  "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n/dev/vda / ext4 rw 0 0\n")
        self.assertEqual(read_limit.mounted_groups(mounts),
                         [(1, pathlib.Path("/sys/fs/cgroup/blkio")), (2, pathlib.Path("/sys/fs/cgroup/unified"))])

        self.assertEqual([version for version, _ in read_limit.mounted_groups(mounts, "memory")], [1, 2])

    def limits(self, delegated, *names):
        """Creates limited groups in a folder that imitates a mounted hierarchy of version 2."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        (folder / "cgroup.subtree_control").write_text(delegated)
        groups = []
        with unittest.mock.patch.object(read_limit, "mounted_groups", return_value=[(2, folder)]):
            for name in names:
                limits = {version: (name, name + ".max", "5") for version in (1, 2)}
                groups.append(read_limit.ControlGroup("test", limits, groups[0] if groups else None))
        return folder, *groups

    def test_a_controller_of_version_2_that_is_not_delegated_is_named(self):
        folder, memory = self.limits("cpu io\n", "memory")
        self.assertIsNone(memory.group)
        for fact in ("memory", str(folder / "cgroup.subtree_control")):
            self.assertIn(fact, memory.reason)

    def test_two_limits_of_version_2_are_those_of_one_group(self):
        _, memory, reads = self.limits("cpu io memory\n", "memory", "io")
        self.assertIsNone(memory.reason or reads.reason)
        self.assertEqual(memory.group, reads.group)
        self.assertTrue(memory.made and not reads.made)
        self.assertEqual({file.name: file.read_text() for file in memory.group.iterdir()},
                         {"memory.max": "5", "io.max": "5"})

    def test_bytes_read_are_those_of_the_disk_itself(self):
        first = "254:16 Read 7\n254:0 Read 4096\n254:0 Write 9\n254:0 Total 4105\nTotal 4112\n"
        self.assertEqual(read_limit.counted_bytes(first, "254:0"), 4096)
        second = "8:0 rbytes=7 wbytes=1\n254:0 rbytes=4096 wbytes=9 rios=1\n"
        self.assertEqual(read_limit.counted_bytes(second, "254:0"), 4096)
        self.assertEqual(read_limit.counted_bytes("Total 0\n", "254:0"), 0)

    def test_a_file_system_in_memory_has_no_disk_and_says_so(self):
        if not pathlib.Path("/dev/shm").is_dir():
            self.skipTest("no /dev/shm")
        self.assertIsNone(read_limit.disk_below("/dev/shm"))
        with read_limit.ReadLimit("/dev/shm", 1_000_000) as limit:
            self.assertIn("/dev/shm", limit.reason)

    def test_cached_share_of_a_file_just_written_is_all(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "f"
            file.write_bytes(bytes(100_000))
            self.assertEqual(read_limit.cached_share(file), 1.0)
            self.assertEqual(read_limit.cached_share(file.parent), 1.0)


if __name__ == "__main__":
    unittest.main()
