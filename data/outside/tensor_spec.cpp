#include "data/outside/tensor_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "data/outside/producer_error.h"
#include "data/ring/item.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Formats types and a shape for messages: `|u1 or <f4 [64, 128, 128, 3]`; a size of -1 becomes
/// `*`.
std::string spec_text(std::span<const ElementType> types, std::span<const std::int64_t> shape) {
  std::vector<std::string_view> names;
  for (const ElementType type : types) names.push_back(ring_dtype_name(type));
  std::vector<std::string> sides;
  for (const std::int64_t side : shape) sides.push_back(side < 0 ? "*" : fmt::to_string(side));
  return fmt::format("{} [{}]", fmt::join(names, " or "), fmt::join(sides, ", "));
}

bool has_shape(const HostTensor& output, std::span<const std::int64_t> shape) {
  return std::ranges::equal(output.shape, shape, [](std::int64_t got, std::int64_t wanted) {
    return wanted < 0 || got == wanted;
  });
}

template <typename T>
void check_values(const HostTensor& output, const ClassRange& classes, std::string_view batch) {
  const std::span<const T> values = output.values<const T>();
  const auto is_class = [&](T value) {
    return (std::cmp_greater_equal(value, 0) && std::cmp_less(value, classes.count)) ||
           (classes.ignored && std::cmp_equal(value, *classes.ignored));
  };
  const auto wrong = std::ranges::find_if_not(values, is_class);
  if (wrong == values.end()) return;
  const auto at = static_cast<std::size_t>(wrong - values.begin());
  const std::size_t of_sample = values.size() / static_cast<std::size_t>(output.shape.at(0));
  throw ProducerError(fmt::format(
      "{}: expected '{}' in [0, {}){}, got {} in sample {}", batch, output.name, classes.count,
      classes.ignored ? fmt::format(" or {}", *classes.ignored) : "", *wrong, at / of_sample));
}

}  // namespace

const HostTensor& find_output(std::span<const HostTensor> outputs, const TensorSpec& spec,
                              std::int64_t samples, std::string_view batch) {
  const auto found = std::ranges::find(outputs, spec.name, &HostTensor::name);
  if (found == outputs.end()) {
    std::vector<std::string> names;
    for (const HostTensor& output : outputs) names.push_back(output.name);
    throw ProducerError(fmt::format("{}: expected an output '{}', got {}", batch, spec.name,
                                    fmt::join(names, ", ")));
  }
  std::vector<std::int64_t> shape = {samples};
  shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
  if (std::ranges::find(spec.types, found->type) == spec.types.end() || !has_shape(*found, shape)) {
    const ElementType type[] = {found->type};
    throw ProducerError(fmt::format("{}: expected '{}' as {}, got {}", batch, spec.name,
                                    spec_text(spec.types, shape), spec_text(type, found->shape)));
  }
  return *found;
}

void check_classes(const HostTensor& output, const ClassRange& classes, std::string_view batch) {
  switch (output.type) {
    case ElementType::u8:
    case ElementType::boolean:
      return check_values<std::uint8_t>(output, classes, batch);
    case ElementType::i8:
      return check_values<std::int8_t>(output, classes, batch);
    case ElementType::i16:
      return check_values<std::int16_t>(output, classes, batch);
    case ElementType::u16:
      return check_values<std::uint16_t>(output, classes, batch);
    case ElementType::i32:
      return check_values<std::int32_t>(output, classes, batch);
    case ElementType::u32:
      return check_values<std::uint32_t>(output, classes, batch);
    case ElementType::i64:
      return check_values<std::int64_t>(output, classes, batch);
    case ElementType::u64:
      return check_values<std::uint64_t>(output, classes, batch);
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::f32:
    case ElementType::f64:
      break;
  }
  require(false, "classes are integers");
}

}  // namespace precast::data
