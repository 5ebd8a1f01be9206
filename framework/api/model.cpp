#include "framework/api/model.h"

#include <set>

#include "framework/api/model_spec.h"

namespace precast {

std::unique_ptr<Model> make_model(const ModelRegistry& models, const ModelSpec& spec) {
  return models.make({spec.arch, spec.params, "model.params"}, spec);
}

std::vector<at::Tensor> statistics_of(const Model& model) {
  std::set<const void*> parameters;
  for (const NamedTensor& parameter : model.parameters())
    parameters.insert(parameter.tensor.const_data_ptr());
  std::vector<at::Tensor> statistics;
  for (const NamedTensor& entry : model.state()) {
    if (entry.tensor.is_floating_point() && !parameters.contains(entry.tensor.const_data_ptr()))
      statistics.push_back(entry.tensor.detach());
  }
  return statistics;
}

}  // namespace precast
