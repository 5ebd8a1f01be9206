#include "tests/models/golden_model.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <set>

#include "models/register.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/paths.h"

namespace precast::test {
namespace {

double formula(const NamedTensor& entry, double u) {
  const at::Tensor& tensor = entry.tensor;
  if (tensor.dim() >= 2)
    return u * (4 / std::sqrt(static_cast<double>(tensor.numel() / tensor.size(0))));
  if (entry.name.ends_with("running_var")) return 1 + u;
  if (entry.name.ends_with("weight")) return 1 + 0.5 * u;
  return 0.2 * u;
}

}  // namespace

const nlohmann::json& torchvision_golden() {
  static const nlohmann::json golden =
      nlohmann::json::parse(std::ifstream(test::golden_dir() + "/torchvision/models.json"));
  return golden;
}

std::unique_ptr<Model> make_model(const ModelSpec& spec) {
  ModelRegistry registry("model");
  models::register_models(registry);
  return make_model(registry, spec);
}

ConfigNode params(const std::string& yaml) {
  Diagnostics diagnostics;
  ConfigNode node = parse_override(yaml, {"test", 1, 1}, diagnostics);
  diagnostics.throw_if_errors();
  return node;
}

std::uint64_t weights_checksum(const Model& model) {
  std::uint64_t total = 0;
  for (const NamedTensor& parameter : model.parameters()) {
    const at::Tensor values = parameter.tensor.detach().contiguous();
    const float* value = values.const_data_ptr<float>();
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < values.numel(); ++i)
      sum += std::bit_cast<std::uint32_t>(value[i]) * static_cast<std::uint64_t>(i + 1);
    total = total * 31 + sum;
  }
  return total;
}

void fill_by_formula(Model& model) {
  std::uint32_t stream = 0;
  for (const NamedTensor& entry : model.state()) {
    const std::uint32_t current = stream++;
    if (entry.name.ends_with("num_batches_tracked")) continue;
    at::Tensor values = noise_tensor(current, entry.tensor.sizes());
    float* value = values.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      // The noise has 24 bits, so its values are exact in float and in double.
      value[i] = static_cast<float>(formula(entry, static_cast<double>(value[i])));
    }
    entry.tensor.copy_(values);
  }
}

void to_double(Model& model) {
  const at::NoGradGuard no_grad;
  std::set<std::string> done;
  for (const NamedTensor& parameter : model.parameters()) {
    parameter.tensor.set_data(parameter.tensor.to(at::kDouble));
    done.insert(parameter.name);
  }
  for (const NamedTensor& buffer : model.state()) {
    if (done.contains(buffer.name) || !buffer.tensor.is_floating_point()) continue;
    buffer.tensor.set_data(buffer.tensor.to(at::kDouble));
  }
}

}  // namespace precast::test
