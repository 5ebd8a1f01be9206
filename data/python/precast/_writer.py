"""The writer."""
from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import warnings
import weakref
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from ._dataset import PathLike, StoredArray
from ._errors import ConfigError, DataError
from ._library import (
    ARRAY,
    BYTES,
    FLOATING,
    INTEGER,
    MAX_DIMS,
    TEXT,
    ValueStruct,
    as_options,
    check,
    function,
    new_handle,
)

# Such as <f4, <U5 and <M8[ns]; the group is the number of bytes, or of Unicode characters.
_PLAIN_TYPE = re.compile(r"[<>|=][biufcSVUmM](\d+)(?:\[\w+\])?")


class Writer:
    """Writes a .beton file, sample by sample. The file appears when the `with` block ends without an exception, or in
    close(). A writer that is neither finished nor closed discards the file, with a RuntimeWarning.

        with precast.Writer("out.beton", {"image": {"image": {"mode": "raw"}}, "label": "int"}, samples=100) as writer:
            for pixels, label in samples:  # uint8 [H, W, 3], or the bytes of a JPEG, PNG or WebP file
                writer.add(image=pixels, label=label)

    Samples are encoded in the calling thread, without holding the GIL. `precast write` uses all cores.
    """

    def __init__(self, path: PathLike, fields: Mapping[str, str | Mapping[str, Any]], samples: int, *,
                 page_size: int | None = None, checksums: bool = True, seed: int = 0,
                 classes: Mapping[str, Sequence[str]] | None = None) -> None:
        """
        fields  by name: a type (image, int, float, bytes, json, ndarray, tensor, pixels, ragged), or {TYPE: OPTIONS}.
                Arrays need their type: {"ndarray": {"dtype": "<f4", "shape": [4]}}, {"pixels": {"dtype": "<u2",
                "channels": 1}}, {"ragged": {"dtype": "<i4", "dims": 1}}.
        samples the maximum number of samples that will be added. The file has space for the metadata of all of them,
                8 to 16 bytes per field, even if fewer are added
        classes {FIELD: [NAME OF LABEL 0, NAME OF LABEL 1, ...]} for int fields; stored with the checksums. The field
                then accepts only these labels

        @raises ConfigError, IoError
        """
        options: dict[str, Any] = {"checksums": checksums, "seed": seed}
        if page_size is not None:
            options["page_size"] = page_size
        if classes is not None:
            options["classes"] = classes
        self._path = os.fsdecode(path)
        self._samples = 0
        self._fields = list(fields)
        self._types = [kind if isinstance(kind, str) else next(iter(kind), "") for kind in fields.values()]
        self._handle = new_handle("writer_open", os.fsencode(path), as_options(fields), samples, as_options(options))
        # Alive as long as the writer is open.
        self._finalizer = weakref.finalize(self, _abandon, self._path, self._handle, os.getpid())

    def add(self, sample: Sequence[Any] | Mapping[str, Any] | None = None, **values: Any) -> None:
        """Adds a sample: values in the order of the fields, or by name.

        int     a number (also a scalar of NumPy or torch) or a bool
        float   a number
        bytes   bytes, or an array [N] of uint8
        json    anything that json.dumps() accepts: a str becomes a JSON string; bytes are stored as the JSON text
        image   uint8 [H, W, 3], or the bytes of an image file
        all other types: an array

        @raises TypeError, DataError naming file, sample and field; the sample is then not added.
        ConfigError for missing or unknown fields, or if the writer is closed; IoError
        """
        self._check_open()
        given = self._in_order(sample, values)
        structs = (ValueStruct * max(1, len(given)))()
        self._check_pictures(given)
        kept = []
        for struct, name, kind, value in zip(structs, self._fields, self._types, given, strict=False):
            try:
                kept.append(_fill(struct, kind, value))
            except TypeError as error:
                raise TypeError(f"{self._path}: sample {self._samples}, field '{name}': {error}") from None
            except (ValueError, OverflowError) as error:
                raise DataError(f"{self._path}: sample {self._samples}, field '{name}': {error}") from None
        check(function("writer_add")(self._handle, structs, len(given)))
        self._samples += 1
        del kept

    def _in_order(self, sample: Sequence[Any] | Mapping[str, Any] | None, values: Mapping[str, Any]) -> list[Any]:
        """Returns the arguments of add() in the order of the fields. @raises ConfigError"""
        if sample is not None and not isinstance(sample, Mapping):
            if values:
                raise ConfigError(f"{self._path}: expected all values in a list or all by name, got a list and also "
                                  f"{', '.join(values)}")
            return list(sample)
        named = {**(sample or {}), **values}
        if set(named) != set(self._fields):
            raise ConfigError(f"{self._path}: sample {self._samples}: expected values for {', '.join(self._fields)}, "
                              f"got {', '.join(map(str, named)) or 'none'}")
        return [named[name] for name in self._fields]

    def finish(self) -> None:
        """Writes the remaining data, makes the file visible and closes the writer. Called by the `with` statement.

        @raises DataError if no sample was added, ConfigError if the writer is closed, IoError. The file is then
        discarded
        """
        self._check_open()
        try:
            check(function("writer_finish")(self._handle))
        finally:
            self.discard()

    def close(self) -> None:
        """Calls finish(), unless the writer is closed.

        If no sample was added, or while an exception other than StopIteration is handled, the file is discarded with a
        RuntimeWarning: a part of a dataset must not replace a complete one.

        @raises IoError
        """
        if not self._finalizer.alive:
            return
        error = sys.exc_info()[0]
        if self._samples and (error is None or issubclass(error, StopIteration)):
            self.finish()
            return
        self.discard()
        reason = (f"expected close() without an exception, got {error.__name__}" if self._samples
                  else "expected at least one sample before close(), got none")
        warnings.warn(f"{self._path}: {reason}. No file was written", RuntimeWarning, stacklevel=2)

    def discard(self) -> None:
        """Closes the writer without writing the file; an older file of that name stays. Does nothing if the writer is
        closed."""
        if self._finalizer.detach():
            function("writer_destroy")(self._handle)

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise ConfigError(f"{self._path}: expected an open writer, got a finished, closed or discarded writer")

    def _check_pictures(self, values: Sequence[Any]) -> None:
        """Rejects Pillow images in a mode other than RGB: the three channels of YCbCr would be stored as if RGB."""
        for name, kind, value in zip(self._fields, self._types, values, strict=False):
            mode = getattr(value, "mode", None)
            if kind == "image" and isinstance(mode, str) and mode != "RGB" and hasattr(value, "__array_interface__"):
                raise DataError(f"{self._path}: sample {self._samples}, field '{name}': expected a Pillow image of "
                                f"mode RGB, got mode {mode}. Convert it with image.convert(\"RGB\")")

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if kind is not None:
            self.discard()
        elif self._finalizer.alive:
            self.finish()

    def __reduce__(self) -> Any:
        raise TypeError("a precast.Writer cannot be pickled")


def _abandon(path: str, handle: int, process: int) -> None:
    """Frees a writer that was deleted, or still open when the program ended, without being finished or discarded."""
    function("writer_destroy")(handle)
    # A forked process has a copy of its parent's writer, but the file is the parent's.
    if os.getpid() == process:
        # Python hides a ResourceWarning by default, and the missing file would be a surprise.
        warnings.warn(f"{path}: expected close() or the end of a `with` block after the last sample, got neither: the "
                      "file was discarded", RuntimeWarning, stacklevel=1)


def _fill(struct: ValueStruct, field: str, value: Any) -> Any:
    """Sets the struct to the value. @return the objects that must stay alive until the struct has been used."""
    if field == "json" and not isinstance(value, bytes):
        value = json.dumps(value)
    if isinstance(value, str):
        return _fill_bytes(struct, TEXT, value.encode("utf-8", "surrogateescape"))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _fill_bytes(struct, BYTES, bytes(value))
    # Scalars and 0-dimensional arrays of NumPy and torch become Python numbers.
    if hasattr(value, "item") and not getattr(value, "shape", None):
        value = value.item()
    if hasattr(value, "__index__") and not getattr(value, "shape", ()):
        number = value.__index__()
        if -2**63 <= number < 2**63:
            struct.kind, struct.integer = INTEGER, number
        else:
            # Float fields round the number, int fields reject it.
            struct.kind, struct.floating = FLOATING, float(number)
        return value
    if hasattr(value, "__float__") and not getattr(value, "shape", ()):
        struct.kind, struct.floating = FLOATING, float(value)
        return value
    kept = _fill_array(struct, value)
    if field == "bytes" and struct.dtype == b"|u1" and struct.ndim == 1:
        struct.kind = BYTES
    return kept


def _fill_bytes(struct: ValueStruct, kind: int, content: bytes) -> Any:
    struct.kind, struct.bytes = kind, len(content)
    return _point_to_copy(struct, content)


def _point_to_copy(struct: ValueStruct, content: bytes | memoryview) -> Any:
    """Makes the struct's data point to a copy of the content. @return the copy"""
    kept = (ctypes.c_char * len(content)).from_buffer_copy(content) if content else None
    struct.data = ctypes.addressof(kept) if kept is not None else None
    return kept


def _item_bytes(typestr: str) -> int:
    """Returns the size in bytes of an element of NumPy's type `typestr`."""
    found = _PLAIN_TYPE.fullmatch(typestr)
    if not found:
        raise TypeError(f"expected an array of numbers, strings, bytes or times, got elements of type {typestr}")
    # Unicode characters take 4 bytes each.
    return int(found[1]) * (4 if typestr[1] == "U" else 1)


def _fill_array(struct: ValueStruct, value: Any) -> Any:
    """Implements _fill() for arrays with `__array_interface__` (NumPy) or `__array__` (torch's tensors).

    Values are stored in C order.
    """
    if not hasattr(value, "__array_interface__") and hasattr(value, "__array__"):
        value = value.__array__()
    interface = getattr(value, "__array_interface__", None)
    if not isinstance(interface, dict):  # in an array class, it is not a dict
        raise TypeError(f"expected a number, a string, bytes or an array, got {type(value).__name__}")
    if interface.get("strides") is not None:
        if not hasattr(value, "copy"):
            raise TypeError("expected an array in C order without gaps, got an array with strides")
        value = value.copy(order="C") if not isinstance(value, StoredArray) else value
        interface = value.__array_interface__
    shape = interface["shape"]
    if len(shape) > MAX_DIMS:
        raise TypeError(f"expected at most {MAX_DIMS} dimensions, got {len(shape)}")
    struct.kind, struct.ndim = ARRAY, len(shape)
    struct.dtype = interface["typestr"].encode()
    struct.bytes = _item_bytes(interface["typestr"])
    for axis, side in enumerate(shape):
        struct.shape[axis] = side
        struct.bytes *= side
    data = interface.get("data")
    if isinstance(data, tuple):
        struct.data = data[0]
        return value, interface
    # `data` is an object with the buffer protocol (bytes for Pillow's images). None: `value` itself is one.
    content = memoryview(value if data is None else data).cast("B")[interface.get("offset", 0):][:struct.bytes]
    if len(content) < struct.bytes:
        raise TypeError(f"expected {struct.bytes} bytes for an array {list(shape)} of {interface['typestr']}, got "
                        f"{len(content)}")
    return _point_to_copy(struct, content)
