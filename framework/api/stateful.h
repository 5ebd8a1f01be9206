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
/// A checkpoint contains rank 0's state of each method, and all ranks restore it. So the state of a
/// method must be the same on all ranks; values that differ between ranks must be computed from
/// RunFacts::rank and the step. When the first checkpoint is saved, a warning names methods whose
/// state differs. Methods for which evaluates_averages() is true (ema, swa) are not compared: they
/// also average the running statistics, which differ between ranks. With dist.zero, each rank's
/// optimiser has state only for the parameters that it updates, and the checkpoint contains the
/// optimiser state of all ranks.
class Stateful {
 public:
  virtual ~Stateful() = default;
  /// Empty for parts without a state.
  [[nodiscard]] virtual State state() const { return {}; }
  /// Restores the counters; the tensors of state() have already been written.
  virtual void restore(const std::map<std::string, std::int64_t>& /*counters*/) {}
};

}  // namespace precast
