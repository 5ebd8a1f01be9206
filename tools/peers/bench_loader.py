#!/usr/bin/env python3
"""Compares precast's loader with FFCV, torchvision, WebDataset and DALI (CPU) on the same images.

    bench_loader.py PHOTOS.tar [--table comparison|seeds|composer] [--only TEXT] [--rounds 5] [--json OUT.json]
    bench_loader.py PHOTOS.tar --kinds jpg raw --formats u8 f16 --sides 176 224 --workers 1 2 --peers ffcv dali

PHOTOS.tar contains class folders or CLASS_NAME.JPEG files. precast writes .beton files from it: jpg (quality 90,
longer side at most 512 px), raw (256 px), mix (512 px, half of the images raw), raw512. FFCV reads these files; the
other peers read the JPEGs of the jpg file, extracted byte for byte (as files, or as tar shards). All loaders read in
random order (precast_quasi and ffcv_quasi: in quasi-random order), apply a random resized crop and a flip, and return
uint8 (u8) or normalised float16 (f16). A row is one combination of settings. The rows are those of --table or, if a
list option such as --kinds is given, all combinations of the list options.

Each loader is pinned to one core per worker, counted over all its processes. The peers of a row start and warm up
before the first round; precast, which starts in milliseconds, is started for each measurement. In each round, the
loaders run one after the other, in reverse order in every second round, so that other load on the machine affects all
of them. A ratio is the median over the rounds of precast's figure divided by the peer's figure in the same round. CPU
seconds are those of a process and all its children. The files are in the page cache.

--table seeds has the rows of `precast bench loader --table seeds`, which measures precast alone and needs no Python.

In the rows with a slow disk (--table seeds), all loaders read through a control group that limits bytes per second,
after the files were dropped from the page cache. This needs root; without it, the rows are skipped and the reason is
printed.
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from loader_files import Files
from loader_rows import KINDS, PRECAST, PYTHON_PEERS, TABLES, product, seeds
from read_limit import ReadLimit, cached_share, forget

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIGURES = ("per_second", "per_cpu_second")


class PeerFailed(Exception):
    """Raised if a peer cannot run a row. The failure is reported, and the other peers continue."""


def call(*command, before=None):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, preexec_fn=before)
    if done.returncode != 0:
        raise PeerFailed(f"exit code {done.returncode} of {' '.join(map(str, command))}: {done.stderr[-1000:]}")
    return done.stdout


def pinned(row):
    cores = sorted(os.sched_getaffinity(0))[:row.workers * row.processes]
    return ["taskset", "-c", ",".join(map(str, cores))]


class PythonPeer:
    """The processes of one peer for one row; they wait for requests to measure."""

    def __init__(self, peer, row, source, seconds, limit):
        spec = {"source": str(source), "workers": row.workers, "side": row.side, "batch": row.batch,
                "format": row.format, "seconds": seconds, "slow_disk": row.slow_disk}
        self.source, self.slow_disk = source, row.slow_disk
        self.messages = tempfile.TemporaryFile("w+")  # noqa: SIM115 it lives as long as the processes
        command = [*pinned(row), sys.executable, pathlib.Path(__file__).with_name("peer_loaders.py"), peer,
                   json.dumps(spec)]
        self.processes = [
            subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=self.messages, text=True,
                             preexec_fn=limit.enter if row.slow_disk else None) for _ in range(row.processes)]
        try:
            self.answers()
        except BaseException:  # also KeyboardInterrupt
            self.stop()
            raise

    def answers(self):
        found = []
        for process in self.processes:
            line = process.stdout.readline()
            if not line:
                self.messages.seek(0)
                raise PeerFailed(f"the peer exited with code {process.wait()}: {self.messages.read()[-500:]}")
            answer = json.loads(line)
            if "error" in answer:
                raise PeerFailed(answer["error"])
            found.append(answer)
        return found

    def measure(self):
        cached = None
        if self.slow_disk:
            forget(self.source)
            cached = cached_share(self.source)
        with contextlib.suppress(BrokenPipeError):  # the process has ended; answers() reports this
            for process in self.processes:
                process.stdin.write("measure\n")
                process.stdin.flush()
        runs = self.answers()
        return combined(runs) | ({} if cached is None else {"cached_before": cached})

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()


def machine_of(answer):
    """Returns precast's description of the CPU. `cores` is the number of cores that this script may use, not of those
    to which precast was pinned."""
    return {"processor": answer["processor"], "cores": len(os.sched_getaffinity(0)), "simd": answer["simd"],
            "caches_kib": answer["caches_kib"]}


class Precast:
    """Starts precast for each measurement, because that takes only milliseconds. precast warms up by itself."""

    machine = {}  # machine_of() of the last measurement

    def __init__(self, program, row, source, seconds, limit, options=()):
        self.command = [*pinned(row), program, "bench", "loader", source, "--json", "--runs", 1,
                        "--workers", row.workers, "--processes", row.processes, "--image-size", row.side,
                        "--batch-size", row.batch, "--format", row.format, *options]
        self.command += ["--cold", "--passes", 1] if row.slow_disk else ["--seconds", seconds]
        self.before = limit.enter if row.slow_disk else None

    def measure(self):
        answer = json.loads(call(*self.command, before=self.before))
        Precast.machine = machine_of(answer)
        run = answer["points"][0]["runs"][0]
        return run | {"per_second": run["images_per_second"], "per_cpu_second": run["images_per_cpu_second"]}

    def stop(self):
        pass


def combined(runs):
    """Combines the figures of processes that ran at the same time.

    Images, CPU seconds, images per second and memory are added. `seconds` is that of the slowest process;
    `per_cpu_second` is computed from the sums.
    """
    images, cpu = sum(r["images"] for r in runs), sum(r["cpu_seconds"] for r in runs)
    return {"images": images, "seconds": max(r["seconds"] for r in runs), "cpu_seconds": cpu,
            "per_second": sum(r["images"] / r["seconds"] for r in runs), "per_cpu_second": images / cpu,
            **{key: sum(r[key] for r in runs) for key in runs[0] if key.endswith("_bytes")}}


def measure_row(row, files, args, limit):
    """Returns {peer: [measurement of each round]} and {peer: why it cannot run the row}."""
    ready, failed, runs = {}, {}, {}
    copies = KINDS[row.kind][2] if row.slow_disk else 1
    with contextlib.ExitStack() as stack:
        for peer in row.peers:
            try:
                print(f"{row.name()}: starting {peer}", file=sys.stderr, flush=True)
                source = files.source(peer, row.kind, copies)
                ready[peer] = (Precast(args.precast, row, source, args.seconds, limit, PRECAST[peer]) if peer in PRECAST
                               else PythonPeer(peer, row, source, args.seconds, limit))
                stack.callback(ready[peer].stop)
            except PeerFailed as failure:
                failed[peer] = str(failure)
                print(f"{row.name()}, {peer}: cannot run: {failure}", file=sys.stderr, flush=True)
        for number in range(args.rounds):
            for peer in list(ready)[::1 if number % 2 == 0 else -1]:
                load = os.getloadavg()[0]
                try:
                    run = ready[peer].measure() | {"load": load}
                except PeerFailed as failure:
                    failed[peer] = str(failure)
                    ready.pop(peer).stop()
                    runs.pop(peer, None)
                    print(f"{row.name()}, {peer}: cannot run: {failure}", file=sys.stderr, flush=True)
                    continue
                runs.setdefault(peer, []).append(run)
                print(f"{row.name()}, round {number + 1}, {peer}: {run['per_second']:.0f} img/s, "
                      f"{run['per_cpu_second']:.0f} img/CPU-s, {run['seconds']:.1f} s, load {load:.1f}"
                      + (f", {run['cached_before']:.0%} were cached" if run.get("cached_before") else ""),
                      file=sys.stderr, flush=True)
    return runs, failed


def summarise(row, runs, failed):
    """Returns one line per peer: medians, minimum and maximum, and the median ratios of precast's figures to the peer's
    in the same round."""
    setting = {"file": row.kind, "side": row.side, "format": row.format, "processes": row.processes,
               "workers": row.workers, "batch": row.batch, "slow_disk": row.slow_disk}
    lines = []
    for peer in row.peers:
        line = setting | {"peer": peer}
        if peer in failed:
            lines.append(line | {"cannot": failed[peer]})
            continue
        for figure in FIGURES:
            values = [r[figure] for r in runs[peer]]
            line |= {figure: statistics.median(values), f"{figure}_min": min(values), f"{figure}_max": max(values)}
            for way in PRECAST.keys() & runs.keys():
                ours = [r[figure] for r in runs[way]]
                line[f"{way}_over_peer_{figure}"] = statistics.median(o / v for o, v in zip(ours, values, strict=True))
        for key in ("anonymous_bytes", "proportional_bytes", "peak_resident_bytes"):
            line[key] = statistics.median(r[key] for r in runs[peer])
        lines.append(line | {"runs": runs[peer]})
    return lines


def cells(line):
    """Returns the table's cells for a line of summarise()."""
    setting = [line["file"] + (" (slow disk)" if line["slow_disk"] else ""), str(line["side"]), line["format"],
               (f"{line['processes']} x " if line["processes"] > 1 else "") + str(line["workers"]), str(line["batch"]),
               line["peer"]]
    if "cannot" in line:
        return [*setting, "cannot run: " + line["cannot"].splitlines()[0][:90], *[""] * (len(HEAD) - len(setting) - 1)]
    ratios = [f"{line[key]:.2f}" if line["peer"] not in PRECAST and key in line else "" for key in RATIOS]
    return [*setting, f"{line['per_second']:.0f}", f"{line['per_cpu_second']:.0f}",
            f"{line['per_cpu_second_min']:.0f} - {line['per_cpu_second_max']:.0f}", *ratios,
            f"{line['anonymous_bytes'] / 1e6:.0f}", f"{line['proportional_bytes'] / 1e6:.0f}"]


# Ratios in the table: images per second and per CPU-second without the JPEG index, per CPU-second with the index.
RATIOS = ["precast_over_peer_per_second", "precast_over_peer_per_cpu_second",
          "precast_indexed_over_peer_per_cpu_second"]
HEAD = ["file", "px", "format", "workers", "batch", "loader", "img/s", "img/CPU-s", "min - max",
        "precast / peer, img/s", "precast / peer, img/CPU-s", "indexed / peer, img/CPU-s", "own MB", "PSS MB"]


def format_table(lines, markdown):
    rows = [HEAD, *map(cells, lines)]
    if markdown:
        return "\n".join("| " + " | ".join(row) + " |" + ("\n|" + " --- |" * len(row) if row is HEAD else "")
                         for row in rows)
    widths = [max(len(row[i]) for row in rows if not row[6].startswith("cannot")) for i in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) if i in (0, 5) else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
                     for row in rows)


def chosen_rows(args):
    cores = len(os.sched_getaffinity(0))
    lists = {"kinds": ["jpg"], "sides": [176], "formats": ["u8"], "workers": [1], "processes": [1], "batches": [256],
             "peers": ["ffcv", "torchvision", "webdataset", "dali"]}
    if any(getattr(args, name) for name in lists):
        rows = product(**{name: getattr(args, name) or standard for name, standard in lists.items()})
    elif args.table == "seeds":
        rows = seeds(json.loads(call(args.precast, "bench", "loader", args.photos, "--table", "seeds", "--dry-run",
                                     "--json")))
    else:
        rows = TABLES[args.table](cores)
    return [row for row in rows if args.only in row.name()]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path, metavar="PHOTOS.tar")
    parser.add_argument("--table", choices=[*TABLES, "seeds"], default="comparison", help="default: %(default)s")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose name (see --dry-run) contains TEXT")
    parser.add_argument("--kinds", nargs="+", choices=KINDS)
    parser.add_argument("--sides", nargs="+", type=int, metavar="PX")
    parser.add_argument("--formats", nargs="+", choices=["u8", "f16"])
    parser.add_argument("--workers", nargs="+", type=int)
    parser.add_argument("--processes", nargs="+", type=int)
    parser.add_argument("--batches", nargs="+", type=int)
    parser.add_argument("--peers", nargs="+", choices=PYTHON_PEERS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3,
                        help="approximate duration of a measurement in seconds; default: %(default)s")
    parser.add_argument("--read_limit", type=float, default=40, metavar="MB/S",
                        help="read limit of the slow disk; default: %(default)s")
    parser.add_argument("--scratch", type=pathlib.Path,
                        help="folder for the files, on the disk that is slowed down; default: build/")
    parser.add_argument("--dry-run", action="store_true", help="only print the rows' names")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", type=pathlib.Path, metavar="OUT.json", help="write every measurement")
    parser.add_argument("--precast", default=ROOT / "build/bin/precast", type=pathlib.Path)
    args = parser.parse_args()
    for path in (args.photos, args.precast):
        if not path.exists():
            parser.error(f"expected an existing path, got {path}")
    if args.rounds < 1 or args.seconds <= 0 or args.read_limit <= 0:
        parser.error("expected --rounds, --seconds and --read_limit above 0")
    return args


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the exit stops the peers and removes the files
    rows = chosen_rows(args)
    if args.dry_run or not rows:
        print("\n".join(row.name() + ": " + ", ".join(row.peers) for row in rows) or
              f"no row's name contains '{args.only}'")
        return 0 if rows else 2
    lines, begin = [], time.perf_counter()
    args.scratch = args.scratch or ROOT / "build"
    args.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="peers_", dir=args.scratch) as scratch:
        files = Files(call, args.precast, args.photos, pathlib.Path(scratch))
        with ReadLimit(args.scratch, int(args.read_limit * 1e6)) as limit:
            for row in rows:
                if row.slow_disk and limit.reason:
                    print(f"{row.name()}: skipped: {limit.reason}", file=sys.stderr)
                    continue
                lines += summarise(row, *measure_row(row, files, args, limit))
                if args.json:
                    answer = {"rounds": args.rounds, **Precast.machine, "rows": lines}
                    args.json.write_text(json.dumps(answer, indent=1))
    print(json.dumps(Precast.machine))
    print(format_table(lines, args.markdown))
    print(f"{time.perf_counter() - begin:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
