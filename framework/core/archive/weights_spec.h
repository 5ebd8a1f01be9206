#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/archive/torch_zip.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/export.h"

namespace precast {

/// The facts that are needed to use weights: the network to which they belong, and the images on
/// which it was trained. They cannot be derived from the tensors: if weights are loaded into the
/// same architecture with different options, there may be no error, but worse predictions.
///
/// Stored as a JSON object: in safetensors files, including those of checkpoints, in the metadata
/// under kWeightsSpecKey; in `.pt` files as the zip entry `extra/precast_spec`, which torch.load
/// ignores. framework/core/README.md describes the format.
struct WeightsSpec {
  /// `resnet18`
  std::string arch = {};
  /// The options of `model.params` that differ from their defaults, each with its value as JSON:
  /// {"squeeze_excite.latent_channels", "64.0"}.
  std::map<std::string, std::string> params = {};
  bool blurpool = false;
  /// The convolutions that BlurPool blurs, each with its number of input channels:
  /// {"layer2.0.conv1", 64}. Empty without BlurPool.
  std::map<std::string, std::int64_t> blurred = {};
  /// Channels of the images, >= 1. Written only if it is not 3.
  std::int64_t in_channels = 3;
  /// Outputs of the last layer, >= 1.
  std::int64_t num_classes = 1;
  /// The name of each class; empty if unknown.
  std::vector<std::string> class_names = {};
  /// Mean and standard deviation of each channel, for pixels in 0..255; empty if images are not
  /// normalised.
  std::vector<double> mean = {}, std = {};
  /// Side of the images in evaluation, px; 0 if unknown.
  std::int64_t resolution_px = 0;

  bool operator==(const WeightsSpec&) const = default;
};

/// `precast_spec`, the key in the metadata.
inline constexpr std::string_view kWeightsSpecKey = kTorchMetadataKey;
inline constexpr std::size_t kMaxWeightsSpecBytes = 16U << 20U;

/// A key in the metadata of a checkpoint's weights. Its value is the name of the method (ema, swa)
/// whose averages the run evaluated in place of these weights, or empty if the run evaluated these
/// weights. Without this key, it is not known which weights the run evaluated.
inline constexpr std::string_view kAveragesKey = "precast_averages";

/// The spec as JSON; bytes that are not UTF-8 are replaced.
[[nodiscard]] PRECAST_API std::string weights_spec_text(const WeightsSpec& spec);

/// Parses a spec strictly: one format version, no unknown or repeated key, at most
/// kMaxWeightsSpecBytes. Needs memory in proportion to the length of the JSON, even if it is deeply
/// nested. @param source names the file in messages.
/// @throws CheckpointError naming the key
[[nodiscard]] PRECAST_API WeightsSpec parse_weights_spec(std::string_view text,
                                                         const std::string& source);

/// Removes the class names if the spec with them is longer than kMaxWeightsSpecBytes.
/// @return whether it removed them
[[nodiscard]] PRECAST_API bool drop_long_class_names(WeightsSpec& spec);

/// The metadata for a weights file with this spec: the spec, after drop_long_class_names(), and
/// `format: pt`, which shows other programs that the tensors come from PyTorch.
[[nodiscard]] PRECAST_API std::map<std::string, std::string> weights_metadata(
    const WeightsSpec& spec);

/// The spec that the file contains; nothing for files of other programs and of older versions of
/// precast.
/// @throws CheckpointError if the spec is damaged
[[nodiscard]] PRECAST_API std::optional<WeightsSpec> spec_of(const WeightsFile& file);
/// Returns spec_of() for the file at `path`. @throws the errors of load_weights() and of spec_of()
[[nodiscard]] PRECAST_API std::optional<WeightsSpec> read_weights_spec(
    const std::filesystem::path& path);

}  // namespace precast
