#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>

#include "framework/core/export.h"
#include "framework/engine/checkpointer.h"

namespace precast::engine {

/// Checks that a run can save its state and resume from it: the tensors of the model, the optimiser
/// and the methods. Not thread-safe.
class PRECAST_API StateChecks {
 public:
  /// @param parts borrowed.
  explicit StateChecks(const CheckpointParts& parts) : parts_(parts) {}

  /// Call before the first step, after the methods' on_train_begin(). Records which tensors the
  /// optimiser and the methods have, and which buffers of the model are not finite, such as masks
  /// of -inf. Waits for the device.
  /// @throws ConfigError naming a part with a tensor that checkpoints cannot store
  void start();
  /// Whether the sum of the losses and all weights and buffers are finite, except for buffers that
  /// were not finite in start(). Waits for the device.
  [[nodiscard]] bool finite(const at::Tensor& loss_sum) const;
  /// Does nothing without start(). @throws Error naming a part whose tensors have other names,
  /// shapes or types than in start()
  void check_unchanged() const;
  /// On rank 0, warns about methods whose state differs between the ranks: a checkpoint contains
  /// only rank 0's. Does not compare the state of methods that evaluate averages, because it
  /// contains averages of running statistics, which differ between ranks. Only the first call does
  /// this. Collective.
  void compare_ranks();

 private:
  CheckpointParts parts_;
  /// For the optimiser and each method: name, type and shape of each tensor.
  std::map<std::string, std::set<std::string>> layouts_;
  /// Names of the buffers that were not finite.
  std::set<std::string> not_finite_;
  bool compared_ = false;
};

}  // namespace precast::engine
