#include "data/outside/field_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/outside/producer_error.h"
#include "data/ring/item.h"

namespace precast::data {
namespace {

/// `|u1 or <f4 [64, 128, 128, 3]`; -1 is `*`.
std::string form_text(std::span<const ElementType> types, std::span<const std::int64_t> shape) {
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

}  // namespace

const HostTensor& find_output(std::span<const HostTensor> outputs, const FieldForm& form,
                              std::int64_t samples, std::string_view batch) {
  const auto found = std::ranges::find(outputs, form.name, &HostTensor::name);
  if (found == outputs.end()) {
    std::vector<std::string> names;
    for (const HostTensor& output : outputs) names.push_back(output.name);
    throw ProducerError(fmt::format("{}: expected an output '{}', got {}", batch, form.name,
                                    fmt::join(names, ", ")));
  }
  std::vector<std::int64_t> shape = {samples};
  shape.insert(shape.end(), form.shape.begin(), form.shape.end());
  if (std::ranges::find(form.types, found->type) == form.types.end() || !has_shape(*found, shape)) {
    const ElementType type[] = {found->type};
    throw ProducerError(fmt::format("{}: expected '{}' as {}, got {}", batch, form.name,
                                    form_text(form.types, shape), form_text(type, found->shape)));
  }
  return *found;
}

void check_labels(std::span<const std::int64_t> labels, std::int64_t classes, std::string_view name,
                  std::string_view batch) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    throw ProducerError(fmt::format("{}: expected '{}' in [0, {}), got {} in sample {}", batch,
                                    name, classes, labels[i], i));
  }
}

}  // namespace precast::data
