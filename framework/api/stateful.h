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
  /// The tensors share memory with the part: saving reads them, restoring writes into them. From
  /// the first step on, the names, shapes and types stay the same. So create all tensors in the
  /// constructor or, in a method, in on_train_begin(). Only the element types of weights files
  /// (DType) are allowed, which exclude complex numbers.
  std::vector<NamedTensor> tensors;
  /// State that is not a tensor, such as numbers of steps and restarts.
  std::map<std::string, std::int64_t> counters;
};

/// A part with a state: optimisers, methods, the gradient scaler. The names of its tensors and
/// counters are unique within the part and the same in every run of a recipe, whatever the number
/// of ranks.
///
/// A checkpoint contains the state of rank 0, and all ranks restore it. So the state of a method
/// must be the same on all ranks; values that differ between ranks must be computed from
/// RunFacts::rank and the step. When the first checkpoint is saved, a warning names methods whose
/// state differs, except those that evaluate averages: their averages of running statistics differ
/// like the statistics themselves. An optimiser that updates only some parameters (dist.zero) has
/// state only for these.
class Stateful {
 public:
  virtual ~Stateful() = default;
  /// Empty for parts without a state.
  [[nodiscard]] virtual State state() const { return {}; }
  /// Restores the counters; the tensors of state() have already been written.
  virtual void restore(const std::map<std::string, std::int64_t>& /*counters*/) {}
};

}  // namespace precast
