#include "tests/recipes/saved_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include <algorithm>

namespace precast::test {

SavedState::SavedState(const Stateful& part) {
  const State state = part.state();
  for (const NamedTensor& entry : state.tensors)
    tensors_[entry.name] = entry.tensor.detach().clone(at::MemoryFormat::Contiguous);
  counters_ = state.counters;
}

void SavedState::restore_into(Stateful& part) const {
  const at::NoGradGuard no_grad;
  for (const NamedTensor& entry : part.state().tensors) entry.tensor.copy_(tensors_.at(entry.name));
  part.restore(counters_);
}

bool SavedState::operator==(const SavedState& other) const {
  return counters_ == other.counters_ &&
         std::ranges::equal(tensors_, other.tensors_, [](const auto& a, const auto& b) {
           return a.first == b.first && at::equal(a.second, b.second);
         });
}

}  // namespace precast::test
