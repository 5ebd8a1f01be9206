"""precast's data loader: .beton files to batches, without torch.

    import precast, torch

    loader = precast.Loader("train.beton", batch_size=256, order="random", workers=8,
                            pipeline=["random_resized_crop", "horizontal_flip"], convert=torch.from_dlpack)
    for epoch in range(16):
        for image, label in loader:  # uint8 [N, H, W, 3], int64 [N]
            ...

Loader reads batches, Dataset reads single stored values, and Writer writes a file.
"""
from ._batch import Batch, Tensor
from ._dataset import Dataset, Field
from ._errors import ConfigError, DataError, Error, IoError, ResourceError
from ._library import library_version as _library_version
from ._loader import Loader
from ._writer import Writer

__version__ = _library_version()
__all__ = ["Batch", "ConfigError", "DataError", "Dataset", "Error", "Field", "IoError", "Loader", "ResourceError",
           "Tensor", "Writer"]
