#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>

#include "framework/core/export.h"
#include "framework/engine/checkpointer.h"

namespace precast::engine {

/// Checks that the state of a run (the tensors of the model, the optimiser and the methods) can be
/// saved and restored. Not thread-safe.
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
  /// @throws Error naming a part if the names, shapes or types of its tensors have changed since
  /// start(). Does nothing if start() was not called.
  void check_unchanged() const;
  /// On rank 0, warns about methods whose state differs between the ranks, because a checkpoint
  /// contains only rank 0's state. Methods that evaluate averages are not compared: their state
  /// contains averages of running statistics, which differ between ranks. Only the first call
  /// compares. Collective.
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
