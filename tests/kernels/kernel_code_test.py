"""Prints how many registers nvcc uses for each kernel, and fails if a kernel uses local memory.

    PRECAST_NVCC=nvcc python3 tests/kernels/kernel_code_test.py

Local memory is in DRAM: a kernel that stores an array or spilled registers there is slower than its source suggests.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NVCC = [os.environ.get("PRECAST_NVCC", "nvcc")]
# ccache also stores the messages of the compiler, which this test reads.
if shutil.which("ccache"):
    NVCC.insert(0, "ccache")
FOLDERS = ["data", "framework", "models", "recipes"]
ARCHITECTURES = ["80", "90", "100"]

Kernel = collections.namedtuple("Kernel", "name architecture registers shared stack spilled")


def sources():
    return sorted(source for folder in FOLDERS for source in (ROOT / folder).rglob("*.cu"))


def kernels_of(source, architectures=ARCHITECTURES):
    """The registers and bytes of memory that ptxas reports for each kernel and each architecture."""
    targets = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in architectures]
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([*NVCC, "-std=c++20", "-O3", "--expt-relaxed-constexpr", "--expt-extended-lambda",
                               f"-I{ROOT}", *targets, "-Xptxas", "-v", "-c", source,
                               "-o", f"{scratch}/code.o"], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"nvcc cannot compile {source}:\n{done.stderr[-3000:]}")
    said = subprocess.run(["c++filt"], input=done.stderr, capture_output=True, text=True, check=True).stdout
    pattern = re.compile(r"Compiling entry function '(?P<name>[^\n]+)' for 'sm_(?P<architecture>\w+)'"
                         r".*?(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
                         r"(?P<loads>\d+) bytes spill loads"
                         r".*?Used (?P<registers>\d+) registers(?P<rest>[^\n]*)", re.DOTALL)
    kernels = []
    for found in pattern.finditer(said):
        shared = re.search(r"(\d+) bytes smem", found["rest"])
        kernels.append(Kernel(short(found["name"]), found["architecture"], int(found["registers"]),
                              int(shared[1]) if shared else 0, int(found["stack"]),
                              int(found["stores"]) + int(found["loads"])))
    return kernels


def short(name):
    """The kernel's name without namespaces and parameters."""
    name = re.sub(r"\(anonymous namespace\)::|\bprecast::(\w+::)*|^void ", "", name)
    return re.sub(r"\([^()]*\)$", "", name)


class KernelCode(unittest.TestCase):
    def test_no_kernel_uses_local_memory(self):
        self.assertTrue(sources())
        print(f"{'kernel':48} sm  registers  shared B  stack B  spilled B")
        for source in sources():
            kernels = kernels_of(source)
            self.assertTrue(kernels, f"no kernel in {source}")
            for kernel in kernels:
                print(f"{kernel.name:46} {kernel.architecture:>4} {kernel.registers:10} {kernel.shared:9} "
                      f"{kernel.stack:8} {kernel.spilled:10}")
                with self.subTest(kernel=kernel.name, architecture=kernel.architecture):
                    self.assertEqual((kernel.stack, kernel.spilled), (0, 0))

    def test_local_memory_is_seen(self):
        with tempfile.TemporaryDirectory() as scratch:
            source = pathlib.Path(scratch) / "planted.cu"
            source.write_text("__global__ void indexed(const int* in, float* out) {\n"
                              "  float values[64];\n"
                              "  for (int i = 0; i < 64; ++i) values[in[i] % 64] = out[i];\n"
                              "  out[threadIdx.x] = values[in[threadIdx.x] % 64];\n"
                              "}\n"
                              "__global__ void __launch_bounds__(1024, 2) crowded(float* out) {\n"
                              "  float values[96];\n"
                              "#pragma unroll\n"
                              "  for (int i = 0; i < 96; ++i) values[i] = out[i * 1024 + threadIdx.x];\n"
                              "  __syncthreads();\n"
                              "#pragma unroll\n"
                              "  for (int i = 0; i < 96; ++i) out[i * 1024 + threadIdx.x] = values[95 - i];\n"
                              "}\n")
            kernels = {kernel.name: kernel for kernel in kernels_of(source, ["90"])}
        self.assertGreaterEqual(kernels["indexed"].stack, 256)
        self.assertGreater(kernels["crowded"].spilled, 0)

    def test_the_build_compiles_each_source_as_cpp20_alone(self):
        commands = pathlib.Path(os.environ.get("PRECAST_COMPILE_COMMANDS", ""))
        built = {}
        if commands.is_file():
            built = {pathlib.Path(entry["file"]).resolve(): entry["command"]
                     for entry in json.loads(commands.read_text())
                     if entry["file"].endswith(".cu")}
        if not built:
            self.skipTest("a build without CUDA")
        self.assertEqual(sorted(built), sources())
        for source, command in built.items():
            self.assertEqual(re.findall(r"-std=(\S+)", command), ["c++20"], source)


if __name__ == "__main__":
    unittest.main()
