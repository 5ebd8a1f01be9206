#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace precast::distributed {

/// A copy of several tensors of one element type as one flat tensor, so that all of them are sent
/// in one message. Elements are in the order in which the tensors store them, so the tensors must
/// have the same layout on all ranks.
class FlatTensors {
 public:
  /// @param tensors dense, on one device.
  explicit FlatTensors(const std::vector<at::Tensor>& tensors);
  /// The copy; undefined if there are no tensors.
  [[nodiscard]] at::Tensor& flat() { return flat_; }
  /// Copies the current contents of flat() back into the tensors.
  void copy_back();

 private:
  /// Flat views of the tensors' memory.
  std::vector<at::Tensor> pieces_;
  at::Tensor flat_;
};

/// Divides the tensors, in their order, into groups of one element type and at most `bytes` bytes
/// each. A tensor larger than that forms its own group.
[[nodiscard]] std::vector<std::vector<at::Tensor>> group_tensors(
    const std::vector<at::Tensor>& tensors, std::size_t bytes);

}  // namespace precast::distributed
