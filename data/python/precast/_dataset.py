"""Files and single stored values."""
from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Iterator, Sequence
from ctypes import byref, c_char_p
from typing import Any, NamedTuple

from ._library import ARRAY, FLOATING, INTEGER, TEXT, ValueStruct, as_options, check, function, info_of, new_handle

PathLike = str | os.PathLike[str]


class Field(NamedTuple):
    """A field of a file."""
    name: str
    #: image, int, float, bytes, json, ndarray, tensor, pixels, ragged or custom.
    type: str
    #: numpy's type string, for fields of arrays.
    dtype: str | None = None
    #: The shape of one value, for ndarray and tensor.
    shape: tuple[int, ...] | None = None


class StoredArray:
    """An array or the pixels of an image as the file stores them, read-only. numpy.asarray(a) is a view."""

    def __init__(self, owner: Dataset, value: ValueStruct) -> None:
        self._owner = owner
        self.dtype: str = value.dtype.decode()
        self.shape: tuple[int, ...] = tuple(value.shape[:value.ndim])
        self._pointer, self._bytes = value.data, value.bytes

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": self.shape, "typestr": self.dtype, "data": (self._pointer or 0, True)}

    def tobytes(self) -> bytes:
        return ctypes.string_at(self._pointer, self._bytes)


Value = int | float | bytes | str | StoredArray


class Dataset:
    """One or several .beton files, or http:// and https:// URLs of such files, opened for reading.

    A sequence of samples: `dataset[7]` is {FIELD: VALUE}. Values are int, float, str (JSON), bytes (bytes fields, JPEG
    files, and the metadata of custom fields) and StoredArray (images stored as pixels, arrays). Thread-safe.
    """

    def __init__(self, path: PathLike | Sequence[PathLike], *, in_memory: int = 1, direct_io: bool = False,
                 cache_dir: PathLike = "", http_retry_s: float = 300, fields: Sequence[str] = ()) -> None:
        """in_memory: 1: read through the page cache; 2: load the entire file now; 0: a loader reads the pages that it
        needs into a cache of `cache_mb` MiB, and single values cannot be read. direct_io: these reads bypass the page
        cache; only with in_memory=0. cache_dir, http_retry_s: for URLs, as data.* in recipes. fields: layouts of custom
        fields that FFCV wrote, "NAME=BYTES:ALIGNMENT" or "NAME=BYTES:ALIGNMENT:POINTER" (data/FORMAT.md).

        @raises ConfigError, IoError, and DataError for a damaged file.
        """
        paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        names = (c_char_p * len(paths))(*(os.fsencode(name) for name in paths))
        options = {"in_memory": in_memory, "direct_io": direct_io, "cache_dir": os.fspath(cache_dir),
                   "http_retry_s": http_retry_s, "fields": list(fields)}
        self._handle = new_handle("dataset_open", names, len(paths), as_options(options))
        self._close = weakref.finalize(self, function("dataset_destroy"), self._handle)
        info = info_of("dataset_info", self._handle)
        self.path: str = info["path"]
        #: A hash of the header, the field descriptors and the records.
        self.fingerprint: str = info["fingerprint"]
        #: Whether the file has checksums.
        self.checksums: bool = info["checksums"]
        self.fields: list[Field] = [
            Field(field["name"], field["type"], field.get("dtype"),
                  tuple(field["shape"]) if "shape" in field else None) for field in info["fields"]]
        #: {FIELD: [NAME OF LABEL 0, NAME OF LABEL 1, ...]}; empty if the file has no class names.
        self.classes: dict[str, list[str]] = info["classes"]
        self._samples: int = info["samples"]

    def __len__(self) -> int:
        return self._samples

    def __repr__(self) -> str:
        return f"precast.Dataset({self.path!r}, {len(self)} samples, {[field.name for field in self.fields]})"

    def read(self, sample: int, field: int | str) -> Value:
        """Returns one stored value. @raises IndexError, KeyError, DataError, IoError; ConfigError with in_memory=0"""
        number = self._number(field) if isinstance(field, str) else field
        for what, index, end in (("sample id", sample, len(self)), ("field index", number, len(self.fields))):
            if not 0 <= index < end:
                raise IndexError(f"{self.path}: expected a {what} from 0 to {end - 1}, got {index}")
        value = ValueStruct()
        check(function("dataset_read")(self._handle, sample, number, byref(value)))
        if value.kind == INTEGER:
            return value.integer
        if value.kind == FLOATING:
            return value.floating
        if value.kind == ARRAY:
            return StoredArray(self, value)
        data = ctypes.string_at(value.data, value.bytes) if value.bytes else b""
        return data.decode("utf-8", "surrogateescape") if value.kind == TEXT else data

    def __getitem__(self, sample: int) -> dict[str, Value]:
        return {field.name: self.read(sample, number) for number, field in enumerate(self.fields)}

    def __iter__(self) -> Iterator[dict[str, Value]]:
        return (self[sample] for sample in range(len(self)))

    def _number(self, name: str) -> int:
        for number, field in enumerate(self.fields):
            if field.name == name:
                return number
        raise KeyError(f"{name!r}; the fields are {', '.join(field.name for field in self.fields)}")

    def __reduce__(self) -> Any:
        raise TypeError("a precast.Dataset cannot be pickled: open it in the process that uses it")

