#pragma once

#include <map>
#include <string>

#include "framework/api/stateful.h"

namespace precast::test {

/// The state of a part as a checkpoint stores it: row-major copies of its tensors by name, and its
/// counters.
class SavedState {
 public:
  explicit SavedState(const Stateful& part);
  /// Writes into a part that has the same tensors, whatever their layout, as resuming does.
  void restore_into(Stateful& part) const;
  /// Equal names and counters, and tensors equal bit for bit (-0 counts as 0).
  [[nodiscard]] bool operator==(const SavedState& other) const;

 private:
  std::map<std::string, at::Tensor> tensors_;
  std::map<std::string, std::int64_t> counters_;
};

}  // namespace precast::test
