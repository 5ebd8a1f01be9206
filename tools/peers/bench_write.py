#!/usr/bin/env python3
"""Compares `precast write` with FFCV's DatasetWriter on the same photos, with the same mode and workers.

    bench_write.py PHOTOS.tar [--repeat 3] [--rounds 5] [--workers 1 2] [--rows jpg512 raw256 ...] [--json OUT.json]

PHOTOS.tar contains class folders or CLASS_NAME.JPEG files; each photo is copied --repeat times into class folders.
precast reads these folders, and FFCV reads them as a torchvision ImageFolder, as in its documentation (Pillow decodes).
Each writer runs in a process that is pinned to one core per worker. The writers alternate, in reverse order in
every second round; a ratio is the median over the rounds of precast's images per CPU-second divided by FFCV's in the
same round. CPU seconds are those of the process and all its children; FFCV's imports are not counted. `passthrough`
copies JPEGs of at most 512 px unchanged (FFCV cannot, and encodes them again). The share of precast's time in libjpeg
is measured by `perf record`, with one worker; without perf it is left out.

Runs in .venv-peers (tools/peers/setup).
"""
import argparse
import dataclasses
import hashlib
import json
import multiprocessing
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Row:
    """One setting: options of `precast write` and the corresponding options of FFCV's RGBImageField."""
    precast: tuple
    ffcv: dict
    folder: str = "photos"


JPG = ("--image.mode", "jpg")
ROWS = {
    "jpg512": Row((*JPG, "--image.max_resolution", "512"), {"write_mode": "jpg", "max_resolution": 512}),
    "jpg256": Row((*JPG, "--image.max_resolution", "256"), {"write_mode": "jpg", "max_resolution": 256}),
    "mix500": Row(("--image.mode", "proportion", "--image.compress_probability", "0.5",
                   "--image.max_resolution", "500"),
                  {"write_mode": "proportion", "compress_probability": 0.5, "max_resolution": 500}),
    "raw256": Row(("--image.mode", "raw", "--image.max_resolution", "256"),
                  {"write_mode": "raw", "max_resolution": 256}),
    "passthrough": Row((*JPG, "--image.max_resolution", "512", "--image.passthrough"),
                       {"write_mode": "jpg", "max_resolution": 512}, "small"),
}


def class_and_name(member):
    parts = pathlib.PurePosixPath(member).parts
    return (parts[-2], parts[-1]) if len(parts) > 1 else member.split("_", 1)


def make_folders(tar_path, folder, repeat):
    """Makes photos/CLASS/COPY_NAME with `repeat` copies of each photo, and small/ with the RGB photos of at most
    512 px, which need no resize."""
    from PIL import Image

    with tarfile.open(tar_path) as tar:
        for member in filter(tarfile.TarInfo.isfile, tar):
            content = tar.extractfile(member).read()
            label, name = class_and_name(member.name)
            first = folder / "photos" / label / f"0_{name}"
            first.parent.mkdir(parents=True, exist_ok=True)
            first.write_bytes(content)
            with Image.open(first) as image:
                small = max(image.size) <= 512 and image.mode == "RGB"
            for copy in range(repeat):
                for kind in ("photos", "small") if small else ("photos",):
                    target = folder / kind / label / f"{copy}_{name}"
                    target.parent.mkdir(parents=True, exist_ok=True)
                    if target != first:
                        target.write_bytes(content)


def pinned(workers):
    cores = sorted(os.sched_getaffinity(0))[:workers]
    return ["taskset", "-c", ",".join(map(str, cores))]


def write_by_precast(program, source, out, row, workers, options=()):
    """Returns {images, seconds, cpu_seconds, peak_bytes, counts} of one run."""
    command = [*pinned(workers), str(program), "write", str(source), str(out), *row.precast, "--workers", str(workers),
               "--json", *options]
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(command, stdout=answer, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        answer.seek(0), messages.seek(0)
        if status != 0:
            sys.exit(f"bench_write: expected exit code 0 of precast write, got {process.returncode}: "
                     f"{messages.read().decode()[-500:]}")
        summary = json.loads(answer.read())
    return {"images": summary["samples"], "seconds": seconds, "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "peak_bytes": usage.ru_maxrss * 1024, "counts": summary["counts"]}


def write_by_ffcv(source, out, row, workers):
    """Returns the same for FFCV, without counts. FFCV runs in a separate process, so that only its own memory is
    measured."""
    command = [*pinned(workers), sys.executable, __file__, "--ffcv", str(source), str(out), json.dumps(row.ffcv),
               str(workers)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench_write: expected exit code 0 of FFCV, got {done.returncode}: {done.stderr[-1000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def cpu_seconds():
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def run_ffcv(source, out, options, workers):
    """The code of the process that write_by_ffcv() starts."""
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter
    from torchvision.datasets import ImageFolder

    dataset = ImageFolder(source)
    begin, cpu = time.perf_counter(), cpu_seconds()
    fields = {"image": RGBImageField(**json.loads(options)), "label": IntField()}
    DatasetWriter(out, fields, num_workers=int(workers)).from_indexed_dataset(dataset)
    for worker in multiprocessing.active_children():  # getrusage() includes a child only after it has been waited for
        worker.join()
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({"images": len(dataset), "seconds": time.perf_counter() - begin,
                      "cpu_seconds": cpu_seconds() - cpu, "peak_bytes": peak * 1024}), flush=True)
    os._exit(0)  # on a single core, numba hangs when it ends its threads


def libjpeg_share(program, source, out, row, scratch):
    """The share of precast's time in libjpeg according to perf; None without perf."""
    if not shutil.which("perf"):
        return None
    data = scratch / "perf.data"
    command = ["perf", "record", "-q", "-F", "499", "-o", data, *pinned(1), program, "write", source, out, *row.precast,
               "--workers", "1"]
    if subprocess.run(list(map(str, command)), capture_output=True).returncode != 0:
        return None
    report = subprocess.run(["perf", "report", "-i", data, "--sort", "dso", "--stdio"], capture_output=True,
                            text=True).stdout
    shares = {dso: float(share) for share, dso in re.findall(r"^\s*([\d.]+)%\s+(\S+)", report, re.MULTILINE)}
    return sum(share for dso, share in shares.items() if dso.startswith("libjpeg")) / 100


def summarise(name, workers, pairs, share):
    def median(who, figure):
        return statistics.median(figure(pair[who]) for pair in pairs)

    def per_cpu_second(run):
        return run["images"] / run["cpu_seconds"]

    ratios = [per_cpu_second(ours) / per_cpu_second(theirs) for ours, theirs in pairs]
    line = {"row": name, "workers": workers, "ratio": statistics.median(ratios), "ratio_min": min(ratios),
            "ratio_max": max(ratios), "libjpeg_share": share}
    for who, peer in enumerate(("precast", "ffcv")):
        line[peer] = {"images_per_cpu_second": median(who, per_cpu_second),
                      "images_per_second": median(who, lambda r: r["images"] / r["seconds"]),
                      "peak_bytes": median(who, lambda r: r["peak_bytes"])}
    return line


HEAD = ["row", "workers", "precast img/CPU-s", "FFCV img/CPU-s", "ratio (min - max)", "precast img/s", "FFCV img/s",
        "in libjpeg", "peak MB"]


def format_line(line):
    ours, theirs = line["precast"], line["ffcv"]
    share = "" if line["libjpeg_share"] is None else f"{100 * line['libjpeg_share']:.0f} %"
    return " | ".join(["", line["row"], str(line["workers"]),
                       f"{ours['images_per_cpu_second']:,.0f}", f"{theirs['images_per_cpu_second']:,.0f}",
                       f"**{line['ratio']:.2f}** ({line['ratio_min']:.2f} - {line['ratio_max']:.2f})",
                       f"{ours['images_per_second']:,.0f}", f"{theirs['images_per_second']:,.0f}", share,
                       f"{ours['peak_bytes'] / 1e6:.0f}, FFCV {theirs['peak_bytes'] / 1e6:.0f}", ""]).strip()


def measure(args, scratch):
    lines = []
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|", flush=True)
    for name in args.rows:
        row, source = ROWS[name], scratch / ROWS[name].folder
        for workers in args.workers:
            pairs = []
            for number in range(args.rounds):
                ours, theirs = scratch / "ours.beton", scratch / "theirs.beton"
                if number % 2:
                    other = write_by_ffcv(source, theirs, row, workers)
                    pairs.append((write_by_precast(args.precast, source, ours, row, workers), other))
                else:
                    pairs.append((write_by_precast(args.precast, source, ours, row, workers),
                                  write_by_ffcv(source, theirs, row, workers)))
            share = libjpeg_share(args.precast, source, scratch / "ours.beton", row, scratch) if workers == 1 else None
            lines.append(summarise(name, workers, pairs, share))
            print(format_line(lines[-1]), flush=True)
    return lines


def same_for_any_workers(args, scratch):
    """Returns whether 1 and 8 workers write the same bytes, and the SHA-256 of the file that 1 worker wrote."""
    sums = []
    for workers in (1, 8):
        write_by_precast(args.precast, scratch / "photos", scratch / "ours.beton", ROWS["mix500"], workers)
        sums.append(hashlib.sha256((scratch / "ours.beton").read_bytes()).hexdigest())
    return sums[0] == sums[1], sums[0]


def main():
    if sys.argv[1:2] == ["--ffcv"]:
        return run_ffcv(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tar", type=pathlib.Path, metavar="PHOTOS.tar")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--json", type=pathlib.Path, metavar="OUT.json")
    parser.add_argument("--precast", default=ROOT / "build/bin/precast", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        make_folders(args.tar, pathlib.Path(scratch), args.repeat)
        lines = measure(args, pathlib.Path(scratch))
        same, digest = same_for_any_workers(args, pathlib.Path(scratch))
    print(f"\n1 and 8 workers (mix500): {'the same bytes' if same else 'DIFFERENT bytes'}, sha256 {digest}")
    if args.json:
        args.json.write_text(json.dumps(lines, indent=1) + "\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
