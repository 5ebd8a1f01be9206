"""Packs the files that a GPU host needs: programs, GPU tests, recipes, data, the Python twin, gpu_check itself."""

import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from gpu_host import datasets, host
from gpu_host.problem import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_USAGE, Problem, say

ROOT = host.HOME.parent
# Maximum size of the data that is copied to the host: the bundle and the tracked files of the tree.
MOST_BYTES = 64 * 2**20
PROGRAMS = ["precast", "precast-train"]
OPTIONAL = ["kernel_bench", "kernels_gpu_test"]
IMAGES = {"train": 8000, "val": 2000}
PHOTOS, PHOTO_SIDES_PX = 400, [500, 384, 256]
# The GPU host or its libtorch provides these libraries, so the bundle does not contain them.
HOST_LIBRARIES = re.compile(r"/(torch/lib|nvidia)/|/cuda|/(ld-linux|libc|libm|libdl|librt|libpthread|"
                            r"libresolv|libutil|libstdc\+\+|libgcc_s|libgomp|libcuda)[-.]")
TWIN = ["recipe.py", "resnet.py", "twin_data.py", "twin_step.py", "twin_train.py"]


def mib(size):
    return f"{size / 2**20:.1f} MiB"


def use_the_trees_torch():
    """Restarts in the Python of .venv, whose libtorch the programs use; runs tools/setup if .venv is missing."""
    python = ROOT / ".venv/bin/python"
    if pathlib.Path(sys.prefix) == ROOT / ".venv":
        return
    if not python.exists() and subprocess.run([ROOT / "tools/setup"]).returncode != 0:
        raise Problem(EXIT_ENVIRONMENT, "expected tools/setup to exit with code 0, got an error; see above")
    os.execv(python, [python, *sys.argv])


def build_folder():
    build = pathlib.Path(os.environ.get("PRECAST_BUILD_DIR", ROOT / "build")).resolve()
    cache = build / "CMakeCache.txt"
    if not cache.exists():
        say(f"configuring {build}; building takes minutes")
        configure = ["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DPRECAST_TESTS=ON"]
        if subprocess.run(configure, stdout=subprocess.DEVNULL).returncode != 0:
            raise Problem(EXIT_ENVIRONMENT, f"expected CMake to configure {build}, got an error; see above")
    if "CMAKE_BUILD_TYPE:STRING=Release" not in cache.read_text():
        raise Problem(EXIT_ENVIRONMENT, f"expected a Release build in {build}, got another build type. "
                      "Set PRECAST_BUILD_DIR to another folder")
    return build


def jobs():
    """Returns the number of jobs of a build, which tools/lib.sh computes from PRECAST_JOBS, the usable cores and the
    memory."""
    command = ["bash", "-c", 'source "$0" && jobs_to_use', host.HOME / "lib.sh"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needs_text(newest):
    """Formats the result of newest_symbols(), such as "GLIBC 2.36, GLIBCXX 3.4.30"."""
    return ", ".join(f"{family} {version}" for family, version in sorted(newest.items()))


def programs(build):
    """Builds the programs of the bundle and returns their names; tests that need a GPU end in _gpu_test."""
    known = subprocess.run(["cmake", "--build", build, "--target", "help"], capture_output=True,
                           text=True, check=True).stdout
    targets = set(re.findall(r"^(?:\.\.\. )?(\w+_gpu_test|kernel_bench)\b", known, re.MULTILINE))
    for name in OPTIONAL:
        if name not in targets:
            say(f"warning: there is no target {name}; leaving out its step")
    names = PROGRAMS + sorted(targets)
    done = subprocess.run(["cmake", "--build", build, "-j", jobs(), "--target", *names])
    if done.returncode != 0:
        raise Problem(EXIT_FAILED, f"expected to build {', '.join(names)}, got an error; see above")
    return names


def linked_libraries(file):
    """Returns {name: path} of every library that the dynamic loader would load for `file`."""
    text = subprocess.run(["ldd", file], env=host.environment(), capture_output=True, text=True,
                          check=True).stdout
    missing = [name for name in re.findall(r"(\S+) => not found", text) if not name.startswith("libcuda.")]
    if missing:
        raise Problem(EXIT_ENVIRONMENT, f"{file}: expected all its shared libraries, got none for "
                      f"{', '.join(missing)} (ldd)")
    return dict(re.findall(r"(\S+) => (\S+) \(", text))


def copy_stripped(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    target.chmod(0o755)
    subprocess.run(["strip", "--strip-unneeded", target], check=True)


def copy_programs(build, names, folder):
    libraries = {}
    for name in names:
        libraries |= linked_libraries(build / "bin" / name)
        copy_stripped(build / "bin" / name, folder / "bin" / name)
    # The host may lack a library that is neither the system's nor libtorch's, or have another version of it.
    for name, path in libraries.items():
        if not HOST_LIBRARIES.search(path):
            copy_stripped(pathlib.Path(path).resolve(), folder / "lib" / name)


def newest_symbols(folder):
    """Returns the newest symbol versions of the system libraries that the programs need."""
    newest = {}
    for file in [*(folder / "bin").iterdir(), *(folder / "lib").iterdir()]:
        text = subprocess.run(["objdump", "-T", file], capture_output=True, text=True).stdout
        for family, version in re.findall(r"\((GLIBC|GLIBCXX|CXXABI)_([\d.]+)\)", text):
            newest[family] = max(newest.get(family, "0"), version, key=host.numbers)
    return newest


def copy_sources(folder):
    ignored = shutil.ignore_patterns("__pycache__")
    (folder / "twin").mkdir()
    for name in TWIN:
        shutil.copy(ROOT / "tools/peers/torch_twin" / name, folder / "twin")
    shutil.copytree(ROOT / "configs", folder / "configs")
    shutil.copytree(host.HOME / "gpu_host", folder / "gpu_host", ignore=ignored)
    shutil.copy(host.HOME / "gpu_check", folder)
    (folder / "golden/beton").mkdir(parents=True)
    for file in (ROOT / "tests/golden/beton").glob("*.gz"):
        shutil.copy(file, folder / "golden/beton")


def commit(folder):
    """Returns the commit; if the sources differ from it, followed by a hash of the files in `folder`, so that different
    builds have different names."""
    name = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True,
                          text=True).stdout.strip() or "unknown"
    if not name.endswith("-dirty"):
        return name
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(file.read_bytes())
    return f"{name}-{digest.hexdigest()[:8]}"


def fill(folder, images):
    build = build_folder()
    names = programs(build)
    copy_programs(build, names, folder)
    copy_sources(folder)
    (folder / "data").mkdir()
    if not all(file.exists() for file in datasets.idx_paths(images, "train")):
        raise Problem(EXIT_ENVIRONMENT, f"expected Fashion-MNIST in {images}, got none. Install "
                      "dataset-fashion-mnist, or give --images")
    datasets.write_subset(images, folder / "data", IMAGES)
    facts = {"commit": commit(folder), **host.torch_facts(), "programs": names,
             "needs": newest_symbols(folder), "built_on": platform.platform()}
    (folder / "bundle.json").write_text(json.dumps(facts, indent=1) + "\n")
    return facts


def tracked_bytes():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return sum(file.lstat().st_size for file in files if file.exists())


def pack(folder, out):
    """Writes the bundle to `out`, an archive or a folder. @return its size in bytes."""
    if ".tar" in out.name:
        with tarfile.open(out, f"w:{out.suffix[1:]}" if out.suffix != ".tar" else "w") as archive:
            archive.add(folder, arcname="gpu_check_bundle")
        return out.stat().st_size
    # Replaces an older bundle; any other folder must be empty.
    if (out / "bundle.json").exists():
        shutil.rmtree(out)
    elif out.exists() and any(out.iterdir()):
        raise Problem(EXIT_USAGE, f"expected {out} to be empty or a bundle, got a folder with other files")
    shutil.copytree(folder, out, dirs_exist_ok=True)
    return sum(file.stat().st_size for file in out.rglob("*") if file.is_file())


def count_photos(photos):
    with tarfile.open(photos) as archive:
        return sum(member.isfile() and member.name.lower().endswith((".jpg", ".jpeg"))
                   for member in archive)


def write_photos(folder, photos, side_px):
    file = folder / "data/photos.beton"
    command = [folder / "bin/precast", "write", photos, file, "--image.mode", "jpg",
               "--image.max_resolution", str(side_px), "--subset", str(min(PHOTOS, count_photos(photos)))]
    if subprocess.run(command, env=host.environment(), stdout=subprocess.DEVNULL).returncode != 0:
        raise Problem(EXIT_FAILED, f"{photos}: expected a .tar of photographs in class folders, got an error; "
                      "see above")
    say(f"photographs of at most {side_px} px: {mib(file.stat().st_size)}")


def pack_with_photos(folder, out, photos, room):
    """Packs the photographs at the largest of PHOTO_SIDES_PX that fits, or else at the smallest. @return the bundle's
    size in bytes."""
    for side_px in PHOTO_SIDES_PX:
        write_photos(folder, photos, side_px)
        size = pack(folder, out)
        if size <= room:
            break
    return size


def run(args):
    use_the_trees_torch()
    if args.photos and not tarfile.is_tarfile(args.photos):
        raise Problem(EXIT_USAGE, f"--photos: expected a .tar, got {args.photos}")
    out, tracked = pathlib.Path(args.out).resolve(), tracked_bytes()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "gpu_check_bundle"
        folder.mkdir()
        facts = fill(folder, args.images)
        if args.photos:
            size = pack_with_photos(folder, out, pathlib.Path(args.photos).resolve(),
                                    MOST_BYTES - tracked)
        else:
            size = pack(folder, out)
    say(f"{out}: bundle {mib(size)} + tracked files {mib(tracked)} = {mib(size + tracked)}, torch "
        f"{facts['torch']} ({facts['torch_git_version'][:10]}), needs at least {needs_text(facts['needs'])}")
    if size + tracked > MOST_BYTES:
        raise Problem(EXIT_FAILED, f"expected bundle and tracked files to be at most {mib(MOST_BYTES)} together, got "
                      f"{mib(size + tracked)}")
    return 0
