#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "framework/core/archive/tensor_record.h"
#include "framework/core/export.h"

namespace precast {

/// Records under the names that torchvision's models give them.
struct TorchvisionNames {
  std::vector<TensorRecord> records;
  std::size_t renamed = 0;
  /// Constants that no model of ours keeps.
  std::vector<std::string> left_out;
};

/// Undoes what ffcv-imagenet's antialiasing (BlurPoolConv2d) does to names: beside a
/// `P.blur_filter`, which is left out, `P.conv.weight` becomes `P.weight`, and so `P.conv.bias`.
/// All else keeps its name, so that a model of its own may have a part called `conv`.
/// @param source names the file in messages. @throws CheckpointError for a name that is then there
/// twice
[[nodiscard]] PRECAST_API TorchvisionNames
torchvision_names(const std::vector<TensorRecord>& records, const std::string& source);

}  // namespace precast
