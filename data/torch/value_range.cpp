#include "data/torch/value_range.h"

#include <ATen/TensorIndexing.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <variant>
#include <vector>

#include "data/beton/field_tag.h"
#include "data/loader/sample_bytes.h"
#include "data/torch/batch_views.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Returns the type of the stored numbers; nothing if the output is not an array or a mask with one
/// channel.
std::optional<at::ScalarType> stored_type(const Output& output) {
  if (is<ArrayOutput>(output)) return scalar_type(output.type);
  const auto* const mask = std::get_if<MaskOutput>(&output.kind);
  if (mask == nullptr || mask->channels != 1) return std::nullopt;
  return at::kByte;
}

/// Returns the numbers of a value, without the header of a pixels field; empty if it is damaged.
std::span<const std::byte> numbers_in(const FieldInfo& field, std::span<const std::byte> value) {
  if (field.tag.kind == FieldTag::Kind::none) return value;
  std::vector<std::uint64_t> extents;
  try {
    return shaped_elements(field.tag, value, extents);
  } catch (const DataError&) {
    return {};
  }
}

}  // namespace

std::optional<ArrayNumber> find_out_of_range(const BetonReader& reader, const Output& output,
                                             const ValueRange& range, std::uint64_t samples) {
  const std::optional<at::ScalarType> type = stored_type(output);
  if (!type) return std::nullopt;
  const std::uint64_t stride = std::max<std::uint64_t>(reader.size() / samples, 1);
  DirectWindow direct;
  for (std::uint64_t sample = 0; sample < reader.size(); sample += stride) {
    const auto window = direct.read(reader, range_of(reader, {output.field}, sample));
    std::span<const std::byte> bytes;
    try {
      const std::span<const std::byte> value = reader.blob(sample, output.field, window);
      reader.check_value(sample, output.field, value);
      bytes = numbers_in(reader.fields()[output.field], value);
    } catch (const DataError&) {
      continue;
    }
    if (bytes.empty()) continue;
    const at::Tensor stored =
        at::empty({static_cast<std::int64_t>(bytes.size() / c10::elementSize(*type))}, *type);
    std::memcpy(stored.mutable_data_ptr(), bytes.data(), stored.nbytes());
    const at::Tensor numbers = stored.to(at::kDouble);
    at::Tensor inside = numbers.ge(range.low).logical_and_(numbers.le(range.high));
    if (range.extra) inside.logical_or_(numbers.eq(*range.extra));
    const at::Tensor outside = numbers.index({inside.logical_not_()});
    if (outside.numel() > 0) return ArrayNumber{sample, outside[0].item<double>()};
  }
  return std::nullopt;
}

}  // namespace precast::data
