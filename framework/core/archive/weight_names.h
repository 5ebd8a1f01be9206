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
  /// Constants that precast's models do not store.
  std::vector<std::string> left_out;
};

/// Undoes what ffcv-imagenet's antialiasing (BlurPoolConv2d) does to names: where there is a
/// `P.blur_filter`, it is left out and `P.conv.weight` becomes `P.weight`, likewise `P.conv.bias`.
/// All other names stay, so that a custom model may have a part called `conv`.
/// @param source names the file in messages. @throws CheckpointError for a name that then occurs
/// twice
[[nodiscard]] PRECAST_API TorchvisionNames
torchvision_names(const std::vector<TensorRecord>& records, const std::string& source);

}  // namespace precast
