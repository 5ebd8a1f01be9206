"""The loader."""
from __future__ import annotations

import json
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import byref, c_char_p, c_void_p
from typing import Any

from . import _library
from ._batch import Batch, Tensor
from ._dataset import Dataset, PathLike
from ._errors import ConfigError
from ._library import as_options, check, function, info_of, new_handle

# The longest wait in one call of the library. Python handles signals between calls.
_POLL_MS = 100
# The options that determine which sample is at which position.
_POSITION = ("batch_size", "order", "subset", "filter", "repeats", "label_field", "shuffle_window_mb", "seed",
             "drop_last", "rank", "world")
# The options of Dataset.
_DATASET = ("in_memory", "direct_io", "cache_dir", "http_retry_s", "fields")


class Loader:
    """Loads the batches of .beton files in threads of the library. Each `iter()` starts the next epoch.

    Images are uint8 [N, H, W, 3], or with `normalize=True` normalised float32; the pipeline can convert them to other
    types and layouts. Images that the pipeline converts are normalised only by its item `normalize`; `normalize=True`
    without that item is an error. For all other fields, see data/transforms/README.md.

    A batch is a precast.Batch, or, with `convert`, a tuple of convert(tensor) for each tensor: torch.from_dlpack,
    numpy.asarray and jax.dlpack.from_dlpack create views without a copy.

    A loader belongs to the process that created it. In a forked process it raises ResourceError, and it cannot be
    pickled: create the loader in the process that uses it.
    """

    def __init__(self, path: PathLike | Sequence[PathLike] | Dataset, batch_size: int, *,
                 pipeline: Sequence[Any] | Mapping[str, Any] | None = None,
                 order: str | Mapping[str, Mapping[str, Any]] = "sequential", seed: int = 0, workers: int = 0,
                 distributed: tuple[int, int] = (0, 1), image_size: int = 224, normalize: bool = False,
                 drop_last: bool = False, convert: Callable[[Tensor], Any] | None = None, **options: Any) -> None:
        """
        path        a file, several files that are read as one, a URL, or an open Dataset
        pipeline    as in a recipe: ["random_resized_crop", {"cutout": {"crop_size": 8}}] for images, or {OUTPUT: ...};
                    default: a centre crop of 224/256 of the image
        order       a registered name: "random", "quasi_random", "sequential" ..., or {NAME: {OPTION: VALUE}}
        seed        of order and augmentation
        workers     threads; 0: one per usable core
        distributed (rank, world): position p of the order belongs to rank p % world
        image_size  side of the images in px; can be changed between epochs
        options     subset, filter, repeats, label_field, shuffle_window_mb, batches_ahead, on_corrupt, verify,
                    jpeg_dct, jpeg_index_mb, cache_mb: as data.* in recipes; label_field, shuffle_window_mb and
                    cache_mb are errors where they have no effect. For cache_mb, open the dataset with in_memory=0:
                    Loader(Dataset(path, in_memory=0), 64, cache_mb=64)

        @raises ConfigError, IoError, DataError
        """
        for name in ("rank", "world"):
            if name in options:
                raise ConfigError(f"{name}: expected distributed=(rank, world), got {name}={options[name]!r}")
        for name in _DATASET:
            if name in options:
                raise ConfigError(f"{name}: expected Loader(Dataset(path, {name}={options[name]!r}), ...), got "
                                  f"{name} as an option of Loader")
        self.dataset = path if isinstance(path, Dataset) else Dataset(path)
        rank, world = distributed
        options.update(batch_size=batch_size, order=order, seed=seed, workers=workers, image_size=image_size,
                       normalize=normalize, drop_last=drop_last, rank=rank, world=world)
        if pipeline is not None:
            options["pipeline"] = pipeline
        self._handle = new_handle("loader_open", self.dataset._handle, as_options(options))
        self._close = weakref.finalize(self, function("loader_destroy"), self._handle)
        info = info_of("loader_info", self._handle)
        #: The names of a batch's tensors.
        self.outputs: list[str] = info["outputs"]
        #: Side of the images in px, from the next epoch on.
        self.image_size = image_size
        self._convert = convert
        self._position = {name: info["resolved"].get(name, info["options"][name]) for name in _POSITION}
        self._position["fingerprint"] = self.dataset.fingerprint
        # The current epoch (between epochs: the next one), and the number of its batches returned so far.
        self._epoch, self._batch = 0, 0
        self._running: object = None
        self._resumes = True
        self._length: int = function("loader_batches")(self._handle)
        #: The number of samples in this rank's part of an epoch.
        self.samples: int = function("loader_samples")(self._handle)

    def __len__(self) -> int:
        """The number of batches in this rank's part of an epoch."""
        return self._length

    @property
    def epoch(self) -> int:
        """The current epoch; between epochs, the epoch that the next `iter()` starts."""
        return self._epoch

    def __iter__(self) -> Iterator[Any]:
        """Ends a running epoch and starts the next one (after load_state_dict(): the rest of the saved epoch)."""
        epoch, batch = (self._epoch, self._batch) if self._resumes else (self._epoch + 1, 0)
        running = self._running = object()
        # The position changes only if the epoch begins, so an error does not skip an epoch.
        check(function("loader_begin_epoch")(self._handle, epoch, batch, operator.index(self.image_size)))
        self._epoch, self._batch, self._resumes = epoch, batch, False
        return self._batches(running)

    def _batches(self, running: object) -> Iterator[Any]:
        next_batch, handle, convert = function("loader_next"), c_void_p(), self._convert
        while self._running is running:
            # Returns regularly, so that Ctrl-C works.
            status = next_batch(self._handle, _POLL_MS, byref(handle))
            if status == _library.TIMEOUT:
                continue
            if status != _library.OK:
                break
            self._batch += 1
            assert handle.value is not None
            batch = Batch(handle.value)
            yield batch if convert is None else tuple(convert(tensor) for tensor in batch)
        else:
            raise RuntimeError("precast: expected one iterator at a time, got a request from an earlier iterator")
        self._running = None
        if status != _library.END:
            raise _library.error_of(status)
        self._epoch, self._batch, self._resumes = self._epoch + 1, 0, True

    def state_dict(self) -> dict[str, Any]:
        """Returns a JSON-compatible dict with which load_state_dict() continues after the last batch returned."""
        return {"version": 1, "epoch": self._epoch, "batch": self._batch, "position": dict(self._position)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from the saved position: the next `iter()` yields the rest of the saved epoch.

        @raises ConfigError if file, samples, order, seed, batch size or ranks differ.
        """
        if state.get("version") != 1:
            raise ConfigError(f"state_dict: expected version 1, got {state.get('version')!r}")
        wrong = [f"{name}: expected {state['position'].get(name)!r}, got {value!r}"
                 for name, value in self._position.items() if state["position"].get(name) != value]
        if wrong:
            raise ConfigError("state_dict: this loader differs from the one that was saved. " + "; ".join(wrong))
        self._running = None
        self._epoch, self._batch, self._resumes = int(state["epoch"]), int(state["batch"]), True

    def statistics(self) -> dict[str, Any]:
        """Returns statistics since the loader was created: samples, bytes, seconds of the threads, replaced samples."""
        text = c_char_p()
        check(function("loader_statistics")(self._handle, byref(text)))
        return json.loads(text.value or b"{}")

    def close(self) -> None:
        """Stops the threads. Batches stay valid; the loader can no longer be used."""
        self._running = None
        self._close()
        self._handle = None

    def __reduce__(self) -> Any:
        raise TypeError("a precast.Loader cannot be pickled: create it in the process that uses it")
