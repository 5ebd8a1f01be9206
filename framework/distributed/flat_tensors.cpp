#include "framework/distributed/flat_tensors.h"

#include <ATen/ops/cat.h>

#include <map>

#include "framework/core/error.h"

namespace precast::distributed {

FlatTensors::FlatTensors(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    require(tensor.is_non_overlapping_and_dense(), "a tensor's elements fill its memory");
    pieces_.push_back(tensor.detach().as_strided({tensor.numel()}, {1}));
  }
  if (!pieces_.empty()) flat_ = at::cat(pieces_);
}

void FlatTensors::copy_back() {
  std::int64_t at = 0;
  for (at::Tensor& piece : pieces_) {
    piece.copy_(flat_.narrow(0, at, piece.numel()));
    at += piece.numel();
  }
}

std::vector<std::vector<at::Tensor>> group_tensors(const std::vector<at::Tensor>& tensors,
                                                   std::size_t bytes) {
  std::vector<std::vector<at::Tensor>> groups;
  struct Open {
    std::size_t group;
    std::size_t bytes;
  };
  std::map<at::ScalarType, Open> open;
  for (const at::Tensor& tensor : tensors) {
    const auto found = open.find(tensor.scalar_type());
    if (found == open.end() || found->second.bytes + tensor.nbytes() > bytes) {
      open[tensor.scalar_type()] = {groups.size(), tensor.nbytes()};
      groups.push_back({tensor});
    } else {
      groups[found->second.group].push_back(tensor);
      found->second.bytes += tensor.nbytes();
    }
  }
  return groups;
}

}  // namespace precast::distributed
