#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "framework/api/model.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/export.h"

namespace precast::engine {

/// Writes the model's parameters and buffers under `<stem>.safetensors` and `<stem>.pt`, contiguous
/// and with torchvision's names, or ffcv-imagenet's for layers that `spec` lists as blurred. Python
/// reads the `.pt` with torch.load(weights_only=True) as a state_dict. Each file appears complete
/// or not at all. @param spec stored in the files. @throws IoError
PRECAST_API void save_model_weights(const Model& model, const std::filesystem::path& stem,
                                    const std::optional<WeightsSpec>& spec = std::nullopt);

/// What to do with a last layer for another number of classes: a file with 1000, a model with 10.
enum class OtherHead {
  refuse,
  /// For fine-tuning: tensors whose first dimension is the model's number of classes, which differs
  /// in the file, keep the values that were drawn, with a warning.
  keep_drawn,
};

/// Copies a weights file (safetensors, or Python's .pt/.pth) into the model; dtypes are converted.
/// Accepts ffcv-imagenet's names for antialiased convolutions (`conv1.conv.weight`, `blur_filter`),
/// and DDP's `module.` prefix. A missing `num_batches_tracked` counts as 0.
/// @throws CheckpointError with number and first names of missing, unexpected and mis-shaped
/// tensors; the model is then unchanged.
PRECAST_API void load_model_weights(Model& model, const std::filesystem::path& path,
                                    OtherHead head = OtherHead::refuse);

}  // namespace precast::engine
