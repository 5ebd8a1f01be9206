#include "framework/core/archive/weight_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "framework/core/error.h"

namespace precast {
namespace {

constexpr std::string_view kFilter = ".blur_filter";
constexpr std::array<float, 9> kFilterValues = {1. / 16, 2. / 16, 1. / 16, 2. / 16, 4. / 16,
                                                2. / 16, 1. / 16, 2. / 16, 1. / 16};

/// The bit patterns of 1/16, 2/16 and 4/16.
struct FilterBits {
  DType dtype;
  std::array<std::uint64_t, 3> bits;
};
constexpr std::array<FilterBits, 4> kFilterBits = {{
    {DType::f64, {0x3FB0000000000000, 0x3FC0000000000000, 0x3FD0000000000000}},
    {DType::f32, {0x3D800000, 0x3E000000, 0x3E800000}},
    {DType::f16, {0x2C00, 0x3000, 0x3400}},
    {DType::bf16, {0x3D80, 0x3E00, 0x3E80}},
}};
/// For each position of a filter, the index of its value in FilterBits::bits.
constexpr std::array<std::size_t, 9> kFilterPattern = {0, 1, 0, 1, 2, 1, 0, 1, 0};

/// Whether `weight` can belong to a convolution with `channels` input channels. Its shape is
/// [out, in / groups, height, width], and the number of groups must divide `out`. The check also
/// limits the memory that a wrong file can request.
bool has_channels(const TensorRecord& weight, std::int64_t channels) {
  const auto& shape = weight.shape;
  return shape.size() == 4 && shape[0] > 0 && shape[1] > 0 && channels % shape[1] == 0 &&
         shape[0] % (channels / shape[1]) == 0 &&
         static_cast<std::uint64_t>(channels) <= weight.bytes.size();
}

/// Splits `P.weight` into `P` and `.weight`.
std::pair<std::string, std::string> split_name(const std::string& name) {
  const std::size_t dot = std::min(name.rfind('.'), name.size());
  return {name.substr(0, dot), name.substr(dot)};
}

/// The P of a filter's name `P.blur_filter`; nothing if the tensor is not a filter.
/// @param spec as for filtered_layers()
std::optional<std::string> filtered_layer(const std::string& name,
                                          const std::optional<WeightsSpec>& spec) {
  if (!name.ends_with(kFilter)) return std::nullopt;
  std::string layer = name.substr(0, name.size() - kFilter.size());
  if (spec && !spec->blurred.contains(layer)) return std::nullopt;
  return layer;
}

}  // namespace

TorchvisionNames torchvision_names(const std::vector<TensorRecord>& records,
                                   const std::string& source,
                                   const std::optional<WeightsSpec>& spec) {
  const std::vector<std::string> layers = filtered_layers(records, spec);
  const std::set<std::string> wrappers(layers.begin(), layers.end());
  TorchvisionNames result;
  std::set<std::string> names;
  for (TensorRecord record : records) {
    if (filtered_layer(record.name, spec)) {
      result.left_out.push_back(record.name);
      continue;
    }
    for (const std::string_view wrapped : {".conv.weight", ".conv.bias"}) {
      if (!record.name.ends_with(wrapped)) continue;
      const std::string wrapper = record.name.substr(0, record.name.size() - wrapped.size());
      if (!wrappers.contains(wrapper)) continue;
      record.name = wrapper + std::string(wrapped.substr(wrapped.rfind('.')));
      ++result.renamed;
      break;
    }
    if (!names.insert(record.name).second) {
      throw CheckpointError(fmt::format("{}: tensor '{}' occurs twice, with and without '.conv'",
                                        source, record.name));
    }
    result.records.push_back(std::move(record));
  }
  return result;
}

FfcvNames ffcv_names(const std::vector<TensorRecord>& records,
                     const std::map<std::string, std::int64_t>& blurred,
                     const std::string& source) {
  FfcvNames result;
  std::int64_t widest = 0;
  for (const auto& [layer, channels] : blurred) {
    const auto weight = std::ranges::find(records, layer + ".weight", &TensorRecord::name);
    if (weight == records.end() || channels < 1 || !has_channels(*weight, channels)) {
      throw CheckpointError(fmt::format(
          "{}: expected '{}.weight' of a convolution with {} input channels, got {}", source, layer,
          channels, weight == records.end() ? "none" : shape_text(weight->shape)));
    }
    widest = std::max(widest, channels);
  }
  for (std::int64_t i = 0; i < widest; ++i)
    result.filters.insert(result.filters.end(), kFilterValues.begin(), kFilterValues.end());
  const auto filters = std::as_bytes(std::span(result.filters));
  for (TensorRecord record : records) {
    const auto [layer, last] = split_name(record.name);
    const auto found = blurred.find(layer);
    if (found != blurred.end() && (last == ".weight" || last == ".bias")) {
      // Adds the filter before the weight, as in Python's state_dict(), where a module's buffers
      // come before its submodules.
      if (last == ".weight") {
        const std::int64_t channels = found->second;
        const std::size_t bytes = static_cast<std::size_t>(channels) * sizeof kFilterValues;
        result.records.push_back(
            {layer + std::string(kFilter), DType::f32, {channels, 1, 3, 3}, filters.first(bytes)});
      }
      record.name = layer + ".conv" + last;
      ++result.renamed;
    }
    result.records.push_back(std::move(record));
  }
  return result;
}

std::vector<std::string> filtered_layers(const std::vector<TensorRecord>& records,
                                         const std::optional<WeightsSpec>& spec) {
  std::vector<std::string> layers;
  for (const TensorRecord& record : records) {
    if (auto layer = filtered_layer(record.name, spec)) layers.push_back(*std::move(layer));
  }
  return layers;
}

bool is_blur_filter(const TensorRecord& record) {
  const auto known = std::ranges::find(kFilterBits, record.dtype, &FilterBits::dtype);
  const auto& shape = record.shape;
  if (known == kFilterBits.end() || shape.size() != 4 || shape[1] != 1 || shape[2] != 3 ||
      shape[3] != 3)
    return false;
  const std::size_t size = dtype_info(record.dtype).size_bytes;
  for (std::size_t i = 0; i < record.bytes.size() / size; ++i) {
    std::uint64_t bits = 0;  // little-endian, like the file
    std::memcpy(&bits, record.bytes.data() + i * size, size);
    if (bits != known->bits[kFilterPattern[i % kFilterPattern.size()]]) return false;
  }
  return true;
}

}  // namespace precast
