"""The C library libprecast_data_c.so (precast_data.h) through ctypes, which releases the GIL in each call."""
from __future__ import annotations

import ctypes
import json
import os
import pathlib
import re
import sys
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

from ._errors import BY_STATUS, ConfigError, Error

ABI_VERSION = 1
OK, END, TIMEOUT = 0, 100, 101
MAX_DIMS = 32
_PLACE = re.compile(r"\b(?:options|fields):\d+:\d+: ")
INTEGER, FLOATING, BYTES, TEXT, ARRAY, IMAGE_FILE = range(6)


class TensorStruct(ctypes.Structure):
    """precast_data_tensor"""
    _fields_ = [("name", c_char_p), ("dtype", c_int32), ("ndim", c_int32), ("shape", POINTER(c_int64)),
                ("data", c_void_p)]


class ValueStruct(ctypes.Structure):
    """precast_data_value"""
    _fields_ = [("kind", c_int32), ("ndim", c_int32), ("integer", c_int64), ("floating", c_double), ("data", c_void_p),
                ("bytes", c_uint64), ("dtype", c_char_p), ("shape", c_int64 * MAX_DIMS)]


# The result and the arguments of each function; c_int32 results are a precast_data_status, except in abi_version.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "abi_version": (c_int32,),
    "version": (c_char_p,),
    "error_message": (c_char_p,),
    "dataset_open": (c_int32, POINTER(c_char_p), c_size_t, c_char_p, POINTER(c_void_p)),
    "dataset_destroy": (None, c_void_p),
    "dataset_info": (c_char_p, c_void_p),
    "dataset_read": (c_int32, c_void_p, c_int64, c_size_t, POINTER(ValueStruct)),
    "loader_open": (c_int32, c_void_p, c_char_p, POINTER(c_void_p)),
    "loader_destroy": (None, c_void_p),
    "loader_info": (c_char_p, c_void_p),
    "loader_batches": (c_int64, c_void_p),
    "loader_samples": (c_int64, c_void_p),
    "loader_begin_epoch": (c_int32, c_void_p, c_int64, c_int64, c_int64),
    "loader_next": (c_int32, c_void_p, c_int64, POINTER(c_void_p)),
    "loader_statistics": (c_int32, c_void_p, POINTER(c_char_p)),
    "batch_samples": (c_int64, c_void_p),
    "batch_tensors": (c_size_t, c_void_p),
    "batch_tensor": (c_int32, c_void_p, c_size_t, POINTER(TensorStruct)),
    "batch_sample_ids": (c_void_p, c_void_p),
    "batch_dlpack": (c_int32, c_void_p, c_size_t, c_int32, POINTER(c_void_p)),
    "batch_release": (None, c_void_p),
    "writer_open": (c_int32, c_char_p, c_char_p, c_int64, c_char_p, POINTER(c_void_p)),
    "writer_add": (c_int32, c_void_p, POINTER(ValueStruct), c_size_t),
    "writer_finish": (c_int32, c_void_p),
    "writer_destroy": (None, c_void_p),
}
_NAME = "libprecast_data_c.so"


def _find() -> str:
    """Returns the value of PRECAST_DATA_LIBRARY, the path of the wheel's library, or a name for the dynamic linker."""
    given = os.environ.get("PRECAST_DATA_LIBRARY")
    if given:
        return given
    packaged = pathlib.Path(__file__).with_name(_NAME)
    return str(packaged) if packaged.exists() else _NAME


def _load() -> ctypes.CDLL:
    path = _find()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"precast: expected {path}, got: {error}. Install the wheel (pip install ./data/python in a "
                          "virtual environment), or build the library (ninja -C build precast_data_c) and set "
                          "PRECAST_DATA_LIBRARY=build/lib/libprecast_data_c.so") from error
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, "precast_data_" + name)
        function.restype, function.argtypes = result, arguments
    found = library.precast_data_abi_version()
    if found != ABI_VERSION:
        raise ImportError(f"precast: expected version {ABI_VERSION} of the C interface, got {found} ({path})")
    return library


_library = _load()


def function(name: str) -> Any:
    """Returns the function precast_data_NAME."""
    return getattr(_library, "precast_data_" + name)


def library_version() -> str:
    return function("version")().decode()


def error_of(status: int) -> Exception:
    """Returns the exception for the last error of this thread."""
    message = function("error_message")().decode("utf-8", "replace")
    # Remove positions in the JSON of as_options(), which the caller never sees.
    return BY_STATUS.get(status, Error)(_PLACE.sub("", message))


def check(status: int) -> None:
    """Raises the exception for a status other than OK."""
    if status != OK:
        raise error_of(status)


def new_handle(name: str, *arguments: Any) -> int:
    """Calls precast_data_NAME, which stores a new handle in its last argument, and returns the handle."""
    handle = c_void_p()
    check(function(name)(*arguments, byref(handle)))
    assert handle.value is not None
    return handle.value


def as_options(options: Mapping[str, Any]) -> bytes:
    """Returns the options as JSON. The library parses YAML, which has no escaped surrogate pairs, so non-ASCII
    characters are not escaped.

    @raises ConfigError naming the option for a value that JSON cannot represent
    """
    texts = []
    for name, value in options.items():
        try:
            text = json.dumps(value, ensure_ascii=False, default=_plain)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{name}: expected numbers, strings, lists and dicts, got another object: "
                              f"{error}") from None
        texts.append(f"{json.dumps(str(name), ensure_ascii=False)}: {text}")
    return f"{{{', '.join(texts)}}}".encode()


def _plain(value: Any) -> Any:
    """Converts a NumPy scalar to a number, an array to a list, a NumPy type to its string (`<f4`). @raises TypeError"""
    numpy = sys.modules.get("numpy")
    if numpy and (isinstance(value, numpy.dtype) or isinstance(value, type) and issubclass(value, numpy.generic)):
        return numpy.dtype(value).str
    if isinstance(value, type) or not hasattr(value, "tolist"):
        raise TypeError(f"{value!r} of type {type(value).__name__}")
    return value.tolist()


def info_of(name: str, handle: int) -> Any:
    return json.loads(function(name)(handle))
