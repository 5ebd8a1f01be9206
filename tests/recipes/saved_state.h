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
  /// Restores the state into a part, as resuming does. The tensors of the part may have another
  /// layout.
  void restore_into(Stateful& part) const;
  /// Whether names, counters and all values of the tensors are exactly equal (-0 equals 0).
  [[nodiscard]] bool operator==(const SavedState& other) const;

 private:
  std::map<std::string, at::Tensor> tensors_;
  std::map<std::string, std::int64_t> counters_;
};

}  // namespace precast::test
