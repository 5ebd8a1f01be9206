#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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

/// Undoes what ffcv-imagenet's antialiasing (BlurPoolConv2d) does to names: for each
/// `P.blur_filter`, which is left out, `P.conv.weight` becomes `P.weight` and `P.conv.bias` becomes
/// `P.bias`. All other names stay unchanged, so that a custom model may have a part called `conv`.
/// @param source names the file in messages. @throws CheckpointError for a name that then occurs
/// twice
[[nodiscard]] PRECAST_API TorchvisionNames
torchvision_names(const std::vector<TensorRecord>& records, const std::string& source);

/// Records under the names that ffcv-imagenet gives them. Move-only: the records of a copy would
/// view the original.
struct FfcvNames {
  std::vector<TensorRecord> records;
  std::size_t renamed = 0;
  /// The memory that the records `blur_filter` refer to.
  std::vector<float> filters;

  FfcvNames() = default;
  FfcvNames(const FfcvNames&) = delete;
  FfcvNames& operator=(const FfcvNames&) = delete;
  FfcvNames(FfcvNames&&) noexcept = default;
  FfcvNames& operator=(FfcvNames&&) noexcept = default;
  ~FfcvNames() = default;
};

/// Applies what ffcv-imagenet's antialiasing does to names: for each blurred layer P, `P.weight`
/// becomes `P.conv.weight`, `P.bias` becomes `P.conv.bias`, and `P.blur_filter` is added:
/// [channels, 1, 3, 3] float32, [1, 2, 1] x [1, 2, 1] / 16. A network without the filter rejects
/// these names.
/// @param records under torchvision's names. @param blurred layers and their input channels.
/// @param source names the file in messages. @throws CheckpointError naming a layer that has no
/// weight with that number of channels
[[nodiscard]] PRECAST_API FfcvNames ffcv_names(const std::vector<TensorRecord>& records,
                                               const std::map<std::string, std::int64_t>& blurred,
                                               const std::string& source);

/// The layers P with `P.blur_filter`.
[[nodiscard]] PRECAST_API std::vector<std::string> filtered_layers(
    const std::vector<TensorRecord>& records);
/// Whether the record is a filter as ffcv_names() writes it, in any floating-point type.
[[nodiscard]] PRECAST_API bool is_blur_filter(const TensorRecord& record);

}  // namespace precast
