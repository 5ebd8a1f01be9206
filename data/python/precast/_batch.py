"""Batches: views of the loader's memory."""
from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from ctypes import byref, c_void_p
from typing import Any

from ._library import TensorStruct, check, function

# Indexed by precast_data_dtype: name, NumPy's type string, format of a memoryview; "": there is none.
_TYPES = [("uint8", "|u1", "B"), ("float32", "<f4", "f"), ("int64", "<i8", "q"), ("float64", "<f8", "d"),
          ("float16", "<f2", ""), ("bfloat16", "", ""), ("int8", "|i1", "b"), ("int16", "<i2", "h"),
          ("int32", "<i4", "i"), ("uint16", "<u2", "H"), ("uint32", "<u4", "I"), ("uint64", "<u8", "Q"),
          ("bool", "|b1", "?")]
_SIZES = [1, 4, 8, 8, 2, 2, 1, 2, 4, 2, 4, 8, 1]
_CPU = (1, 0)  # kDLCPU, device 0

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = [c_void_p, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = c_void_p
_api.PyCapsule_GetPointer.argtypes = [c_void_p, ctypes.c_char_p]


class _Managed(ctypes.Structure):
    """DLManagedTensor: a DLTensor of 48 bytes, then its owner and its deleter."""
    _fields_ = [("tensor", ctypes.c_byte * 48), ("context", c_void_p), ("deleter", ctypes.CFUNCTYPE(None, c_void_p))]


class _ManagedVersioned(ctypes.Structure):
    """The first part of DLManagedTensorVersioned."""
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", c_void_p),
                ("deleter", ctypes.CFUNCTYPE(None, c_void_p))]


@ctypes.PYFUNCTYPE(None, c_void_p)
def _free_capsule(capsule: int) -> None:
    """Frees the tensor, unless a library has consumed it: such a library has renamed the capsule."""
    for name, struct in ((b"dltensor", _Managed), (b"dltensor_versioned", _ManagedVersioned)):
        if _api.PyCapsule_IsValid(capsule, name):
            pointer = _api.PyCapsule_GetPointer(capsule, name)
            struct.from_address(pointer).deleter(pointer)


class _Lease:
    """Owns a batch of the library.

    The memory returns to the loader when nothing refers to this object any more and no DLPack tensor uses the memory.
    """

    def __init__(self, handle: int) -> None:
        self.handle = handle
        # Not at exit: views may be in use until the process ends.
        weakref.finalize(self, function("batch_release"), handle).atexit = False

    def __copy__(self) -> _Lease:
        return self

    def __deepcopy__(self, memo: Any) -> _Lease:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a precast.Batch or precast.Tensor cannot be pickled: convert the tensors to numpy or torch "
                        "first")


class Tensor:
    """One tensor of a batch, in the loader's memory, in C order. Writable.

    numpy.asarray(t), torch.from_dlpack(t), jax.dlpack.from_dlpack(t) and t.buffer (a memoryview) are views without a
    copy. The memory goes back to the loader when the batch, this object and all views have been deleted; until then it
    is never overwritten. A copy made with copy.copy() or copy.deepcopy() shares the memory; a tensor cannot be pickled.
    """

    __slots__ = ("_lease", "_index", "_pointer", "_type", "name", "shape", "__weakref__")

    def __init__(self, lease: _Lease, index: int, struct: TensorStruct) -> None:
        self._lease, self._index = lease, index
        self._pointer, self._type = struct.data, struct.dtype
        #: Name of the pipeline's output.
        self.name: str = struct.name.decode()
        #: [N, ...]; images: [N, H, W, C], or [N, C, H, W] with `layout: {order: nchw}`.
        self.shape: tuple[int, ...] = tuple(struct.shape[:struct.ndim])

    @property
    def dtype(self) -> str:
        """`uint8`, `float32`, `bfloat16` ..."""
        return _TYPES[self._type][0]

    @property
    def nbytes(self) -> int:
        count = _SIZES[self._type]
        for side in self.shape:
            count *= side
        return count

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"precast.Tensor({self.name!r}, {list(self.shape)}, {self.dtype})"

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """For NumPy. @raises TypeError for bfloat16, which NumPy does not have."""
        typestr = _TYPES[self._type][1]
        if not typestr:
            raise TypeError(f"{self.name}: NumPy has no {self.dtype}; use DLPack")
        return {"version": 3, "shape": self.shape, "typestr": typestr, "data": (self._pointer, False)}

    @property
    def buffer(self) -> memoryview:
        """A memoryview of the tensor, or of its bytes if memoryview lacks the type or the tensor is empty."""
        raw = (ctypes.c_char * self.nbytes).from_address(self._pointer)
        raw._lease = self._lease  # the view keeps `raw` alive
        view = memoryview(raw).cast("B")
        code = _TYPES[self._type][2]
        # memoryview.cast() rejects dimensions of size 0.
        return view.cast(code, list(self.shape)) if code and self.nbytes else view

    def __buffer__(self, flags: int) -> memoryview:
        """The buffer protocol, from Python 3.12 on."""
        return self.buffer

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """Returns a DLPack capsule that keeps the memory alive. @raises BufferError for a copy or another device."""
        if copy or (dl_device is not None and tuple(dl_device) != _CPU):
            raise BufferError(f"{self.name}: expected a view on the CPU, got copy={copy}, dl_device={dl_device}")
        versioned = max_version is not None and max_version[0] >= 1
        pointer = c_void_p()
        check(function("batch_dlpack")(self._lease.handle, self._index, int(versioned), byref(pointer)))
        return _api.PyCapsule_New(pointer, b"dltensor_versioned" if versioned else b"dltensor",
                                  ctypes.cast(_free_capsule, c_void_p))


class Batch:
    """The samples of one step: a sequence of named tensors, in the order of the pipeline's outputs.

        image, label = batch
        batch["label"], batch[1], batch.names, batch.sample_ids
    """

    __slots__ = ("_lease", "_tensors")

    def __init__(self, handle: int) -> None:
        self._lease = _Lease(handle)
        self._tensors = []
        struct = TensorStruct()
        for index in range(function("batch_tensors")(handle)):
            check(function("batch_tensor")(handle, index, byref(struct)))
            self._tensors.append(Tensor(self._lease, index, struct))

    @property
    def names(self) -> list[str]:
        return [tensor.name for tensor in self._tensors]

    @property
    def samples(self) -> int:
        """Number of samples in the batch."""
        return function("batch_samples")(self._lease.handle)

    @property
    def sample_ids(self) -> list[int]:
        """The ids of the samples: their indices in the dataset."""
        pointer = function("batch_sample_ids")(self._lease.handle)
        return list((ctypes.c_uint64 * self.samples).from_address(pointer)) if self.samples else []

    def __len__(self) -> int:
        return len(self._tensors)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._tensors)

    def __getitem__(self, key: int | str) -> Tensor:
        if isinstance(key, int):
            return self._tensors[key]
        for tensor in self._tensors:
            if tensor.name == key:
                return tensor
        raise KeyError(f"{key!r}; the outputs are {', '.join(self.names)}")

    def __repr__(self) -> str:
        return f"precast.Batch({self._tensors})"
