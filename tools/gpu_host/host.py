"""Facts about the GPU host: the folder of its torch, the libraries that programs load, and whether its torch matches
the bundle."""

import glob
import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

from gpu_host.problem import EXIT_ENVIRONMENT, EXIT_USAGE, Problem

# The folder of gpu_check: the unpacked bundle, or tools/ in the tree.
HOME = pathlib.Path(__file__).resolve().parents[1]
# Where hosts and containers have the driver's libraries if LD_LIBRARY_PATH does not name their folder.
DRIVER_FOLDERS = ["/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu",
                  "/usr/lib64", "/usr/lib/wsl/lib"]
CUDA_TOOLS = ["/usr/local/cuda/bin"]
PROBE = """import json, torch
gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
print(json.dumps({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "gpus": gpus,
                  "names": [torch.cuda.get_device_name(i) for i in range(gpus)]}))"""


def torch_folder():
    found = importlib.util.find_spec("torch")
    if found is None:
        raise Problem(EXIT_ENVIRONMENT, f"expected a Python with torch, got {sys.executable}, which has "
                      "none. Call this script with a python3 that has torch")
    return pathlib.Path(found.submodule_search_locations[0])


def torch_facts():
    """Returns the version and the git_version of torch without importing it."""
    text = (torch_folder() / "version.py").read_text()
    facts = {}
    for key, name in [("torch", "__version__"), ("torch_git_version", "git_version")]:
        match = re.search(rf"^{name}\b.*= ['\"](.*)['\"]", text, re.MULTILINE)
        facts[key] = match[1] if match else "unknown"
    return facts


def library_path(old):
    """Returns LD_LIBRARY_PATH: the folders of the bundle, the wheel, its CUDA libraries, the previous value, the
    driver."""
    torch = torch_folder()
    folders = [HOME / "lib", torch / "lib", *sorted(glob.glob(str(torch.parent / "nvidia/*/lib"))),
               *[part for part in old.split(":") if part], *DRIVER_FOLDERS]
    return ":".join(dict.fromkeys(map(str, folders)))


def environment(**more):
    """Returns the environment for the bundle's programs. Do not start other programs with it: they could load the
    bundle's libraries."""
    return os.environ | {"LD_LIBRARY_PATH": library_path(os.environ.get("LD_LIBRARY_PATH", "")),
                         "PRECAST_GOLDEN_DIR": str(HOME / "golden")} | more


def find_tool(name):
    """Returns the path of a program of the CUDA toolkit, or None."""
    return shutil.which(name, path=":".join([os.environ.get("PATH", ""), *CUDA_TOOLS]))


def bundle_facts():
    file = HOME / "bundle.json"
    if not file.exists():
        raise Problem(EXIT_USAGE, f"expected this script to be in an unpacked bundle, got {HOME}. Create one with "
                      "tools/gpu_check bundle")
    return json.loads(file.read_text())


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)]


def check_libraries(bundle):
    """Checks that the host's torch and glibc suit the bundle. libtorch's binary interface changes with its sources: a
    wheel of the same version but of another commit would load and then crash."""
    host = torch_facts()
    for key in ["torch_git_version", "torch"]:
        built_with = bundle[key]
        if host[key].split("+")[0] != built_with.split("+")[0]:
            raise Problem(EXIT_ENVIRONMENT, f"expected {key} {built_with}, as when the bundle was built, "
                          f"got {host[key]} ({torch_folder()}). Call this script with a python3 that has that torch")
    wanted, here = bundle.get("needs", {}).get("GLIBC", "0"), platform.libc_ver()[1] or "0"
    if numbers(here) < numbers(wanted):
        raise Problem(EXIT_ENVIRONMENT, f"expected glibc {wanted} or newer, got {here}. Build the bundle "
                      "on an older system")


def probe(limit_s=120):
    """Returns what Python's torch reports about the GPUs. Runs in a separate process, because a driver may hang."""
    try:
        done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True,
                              timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise Problem(EXIT_ENVIRONMENT, f"expected torch to start within {limit_s} s, got no answer") from None
    if done.returncode != 0:
        raise Problem(EXIT_ENVIRONMENT, f"expected torch to load, got:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def facts():
    return torch_facts() | {"host": platform.node(), "glibc": platform.libc_ver()[1],
                            "python": platform.python_version(), "system": platform.platform(),
                            "cores": len(os.sched_getaffinity(0)),
                            "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
