#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "framework/api/model.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/export.h"

namespace precast::engine {

/// Writes the model's parameters and buffers to `<stem>.safetensors` and `<stem>.pt`, as contiguous
/// tensors with the model's names; layers that `spec` lists as blurred have ffcv-imagenet's names.
/// Python reads the `.pt` with torch.load(weights_only=True) as a state_dict. Each file is written
/// atomically. @param spec stored in the files. @throws IoError; CheckpointError if the model does
/// not have a layer that `spec` lists as blurred
PRECAST_API void save_model_weights(const Model& model, const std::filesystem::path& stem,
                                    const std::optional<WeightsSpec>& spec = std::nullopt);

/// For fine-tuning: the numbers of classes of a file and of the model that loads it, such as 1000
/// and 10. If a tensor in the file and the tensor in the model differ only in dimension 0, and
/// their sizes there are `file` and `model`, the model's tensor keeps its random initial values,
/// and a warning is logged. Examples are weights [classes, features], convolutions [classes,
/// channels, height, width] and biases [classes].
struct NumClasses {
  /// 0: unknown; any number is accepted.
  std::int64_t file = 0;
  std::int64_t model = 0;
};

/// Copies the tensors of a weights file (safetensors, or Python's .pt/.pth) into the model;
/// converts dtypes. Accepts ffcv-imagenet's names for antialiased convolutions
/// (`conv1.conv.weight`, `blur_filter`; if the file has a model spec, only for the layers that the
/// spec lists as blurred). Also accepts names with the prefixes of DDP and torch.compile
/// (WrapperPrefixes), unless a name in the model starts with one of them. A missing
/// `num_batches_tracked` counts as 0.
/// @throws CheckpointError with the number and the first names of the tensors that are missing,
/// unexpected or of a different shape; the model is then unchanged.
/// @param other_head if empty, a different number of classes is also an error.
PRECAST_API void load_model_weights(Model& model, const std::filesystem::path& path,
                                    const std::optional<NumClasses>& other_head = std::nullopt);

}  // namespace precast::engine
