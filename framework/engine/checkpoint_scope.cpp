#include "framework/engine/checkpoint_scope.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/core/archive/checkpoint_files.h"
#include "framework/core/archive/weights_file.h"
#include "framework/engine/checkpoint_state.h"
#include "framework/engine/state_archive.h"

namespace precast::engine {
namespace {

bool has_state_of(const WeightsFile& file, const std::string& method) {
  return std::ranges::any_of(file.records(), [&](const TensorRecord& record) {
    return record.name.starts_with(method + "/");
  });
}

}  // namespace

std::vector<std::unique_ptr<Method::EvalGuard>> enter_checkpoint_scope(
    Model& model, const std::vector<NamedMethod>& methods,
    const std::filesystem::path& checkpoint) {
  const WeightsFile file = load_weights(checkpoint / kMethodsFile, WrapperPrefixes::keep);
  std::vector<std::unique_ptr<Method::EvalGuard>> guards;
  for (const NamedMethod& named : methods) {
    if (!has_state_of(file, named.name)) continue;
    named.method->on_train_begin(model);
    std::vector<NamedTensor> tensors;
    for (NamedTensor& entry : named.method->state().tensors)
      tensors.push_back({named.name + "/" + entry.name, std::move(entry.tensor)});
    restore_tensors(file.path(), tensors, /*partial=*/true);
    named.method->restore(counters_of(read_state(checkpoint), checkpoint, named.name));
    guards.push_back(named.method->eval_scope(model));
  }
  return guards;
}

}  // namespace precast::engine
