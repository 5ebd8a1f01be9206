#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/api/model.h"

namespace precast {

/// The state that a part must keep across a restart, so that the run continues as if it had not
/// stopped.
struct State {
  /// The tensors share memory with the part: saving reads them, restoring writes into them.
  std::vector<NamedTensor> tensors;
  /// State that is not a tensor, such as numbers of steps and restarts.
  std::map<std::string, std::int64_t> counters;
};

/// A part with a state: optimisers, methods, the gradient scaler. The names of its tensors and
/// counters are unique within the part and the same in every run of a recipe, whatever the number
/// of ranks.
class Stateful {
 public:
  virtual ~Stateful() = default;
  /// Empty for parts without a state.
  [[nodiscard]] virtual State state() const { return {}; }
  /// Restores the counters; the tensors of state() have already been written.
  virtual void restore(const std::map<std::string, std::int64_t>& /*counters*/) {}
};

}  // namespace precast
