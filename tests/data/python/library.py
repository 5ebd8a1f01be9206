"""Loads the Python package with a library of the build, which is the first argument of the test program.

Exits with code 77 (skipped) if NumPy is not installed. `torch` is None if torch is not installed.
"""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
SKIPPED = 77
if len(sys.argv) < 2:
    sys.exit(sys.modules["__main__"].__doc__)
os.environ["PRECAST_DATA_LIBRARY"] = str(pathlib.Path(sys.argv.pop(1)).resolve())
# For programs that a test starts.
os.environ["PYTHONPATH"] = str(ROOT / "data/python")
sys.path.insert(0, os.environ["PYTHONPATH"])
try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed; tools/setup installs it into .venv")
    sys.exit(SKIPPED)
try:
    import torch
except ImportError:
    torch = None
import precast  # noqa: E402

__all__ = ["ROOT", "np", "precast", "torch"]
