#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/archive/tensor_record.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/export.h"

namespace precast {

/// Records with the names that torchvision's models use.
struct TorchvisionNames {
  std::vector<TensorRecord> records;
  std::size_t renamed = 0;
  /// The names of the records `P.blur_filter`, which are left out because precast's models do not
  /// store these constants.
  std::vector<std::string> left_out;
};

/// Undoes the renaming that wrapping in ffcv-imagenet's BlurPoolConv2d causes: for each
/// `P.blur_filter`, `P.conv.weight` becomes `P.weight` and `P.conv.bias` becomes `P.bias`. The
/// filters are left out. All other names stay unchanged, so that a custom model may have a layer
/// called `conv`.
/// @param source names the file in messages. @param spec the file's model spec, as for
/// filtered_layers(). @throws CheckpointError if a name then occurs twice
[[nodiscard]] PRECAST_API TorchvisionNames
torchvision_names(const std::vector<TensorRecord>& records, const std::string& source,
                  const std::optional<WeightsSpec>& spec = std::nullopt);

/// Records with the names that ffcv-imagenet uses. Move-only, because the records of a copy would
/// view the original's memory.
struct FfcvNames {
  std::vector<TensorRecord> records;
  std::size_t renamed = 0;
  /// The values that the records called `blur_filter` view.
  std::vector<float> filters;

  FfcvNames() = default;
  FfcvNames(const FfcvNames&) = delete;
  FfcvNames& operator=(const FfcvNames&) = delete;
  FfcvNames(FfcvNames&&) noexcept = default;
  FfcvNames& operator=(FfcvNames&&) noexcept = default;
  ~FfcvNames() = default;
};

/// Renames the weights of blurred layers as in ffcv-imagenet, which wraps these layers in
/// BlurPoolConv2d: for each blurred layer P, `P.weight` becomes `P.conv.weight`, `P.bias` becomes
/// `P.conv.bias`, and `P.blur_filter` is added: [channels, 1, 3, 3] float32, [1, 2, 1] x [1, 2, 1]
/// / 16. A network without BlurPool rejects these names.
/// @param records with torchvision's names. @param blurred the blurred layers and their numbers of
/// input channels.
/// @param source names the file in messages. @throws CheckpointError naming a layer that has no
/// weight with that number of channels
[[nodiscard]] PRECAST_API FfcvNames ffcv_names(const std::vector<TensorRecord>& records,
                                               const std::map<std::string, std::int64_t>& blurred,
                                               const std::string& source);

/// The names P of the layers for which there is a `P.blur_filter`.
/// @param spec the model spec of the records' file, if it has one. Layers that it does not list as
/// blurred are then ignored, because a custom model may have other tensors called `blur_filter`.
[[nodiscard]] PRECAST_API std::vector<std::string> filtered_layers(
    const std::vector<TensorRecord>& records,
    const std::optional<WeightsSpec>& spec = std::nullopt);
/// Whether the record is a filter with the values that ffcv_names() writes, in any floating-point
/// type.
[[nodiscard]] PRECAST_API bool is_blur_filter(const TensorRecord& record);

}  // namespace precast
