#include "framework/api/batch.h"

#include <fmt/format.h>

#include <utility>

#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast {

const at::Tensor& Batch::target(std::size_t i) const {
  if (i < targets.size()) return fields.at(targets[i]).tensor;
  throw ConfigError(fmt::format(
      "batch: expected a target with index {}, got {} targets. Add an output to data.targets", i,
      targets.size()));
}

at::Tensor& Batch::target(std::size_t i) {
  return const_cast<at::Tensor&>(std::as_const(*this).target(i));
}

const at::Tensor& Batch::field(std::string_view name) const {
  std::vector<std::string> names;
  for (const NamedTensor& field : fields) {
    if (field.name == name) return field.tensor;
    names.push_back(field.name);
  }
  throw ConfigError(fmt::format("batch: expected a field '{}', got none with that name. {}", name,
                                suggest(name, names)));
}

std::int64_t Batch::size() const {
  const at::Tensor& first = input();
  return first.defined() && first.dim() > 0 ? first.size(0) : 0;
}

Batch Batch::narrow(std::int64_t first, std::int64_t count) const {
  Batch part{.fields = fields, .sample_ids = {}, .inputs = inputs, .targets = targets};
  for (NamedTensor& field : part.fields) {
    if (field.tensor.defined()) field.tensor = field.tensor.narrow(0, first, count);
  }
  if (!sample_ids.empty()) {
    const auto begin = sample_ids.begin() + first;
    part.sample_ids.assign(begin, begin + count);
  }
  return part;
}

Batch Batch::index_select(const at::Tensor& indices) const {
  Batch chosen{.fields = fields, .sample_ids = {}, .inputs = inputs, .targets = targets};
  for (NamedTensor& field : chosen.fields) {
    if (!field.tensor.defined()) continue;
    const at::MemoryFormat layout = field.tensor.suggest_memory_format();
    field.tensor = field.tensor.index_select(0, indices).contiguous(layout);
  }
  return chosen;
}

void make_inputs_contiguous(Batch& batch) {
  for (const std::size_t index : batch.inputs) {
    at::Tensor& input = batch.fields.at(index).tensor;
    input = input.contiguous();
  }
}

Batch make_batch(at::Tensor input, at::Tensor target) {
  return {.fields = {{"image", std::move(input)}, {"label", std::move(target)}}, .sample_ids = {}};
}

}  // namespace precast
