#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/api/communicator.h"
#include "framework/api/stateful.h"
#include "framework/core/archive/tensor_record.h"
#include "framework/core/export.h"

namespace precast::engine {

/// Tensors of a state on the CPU, contiguous, as a file stores them: a copy that training no longer
/// changes.
class PRECAST_API StateCopy {
 public:
  explicit StateCopy(const std::vector<NamedTensor>& tensors);
  /// The records view this copy.
  [[nodiscard]] std::vector<TensorRecord> records() const;
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  std::vector<NamedTensor> tensors_;
};

/// Collects on rank 0 the tensors that are spread over the ranks (ZeRO); the others get nothing.
/// Collective.
[[nodiscard]] std::vector<NamedTensor> gather_tensors(const std::vector<NamedTensor>& mine,
                                                      Communicator& ranks, at::Device device);

/// Writes a file's tensors into those of a state. @param partial the file may have more.
/// @throws CheckpointError naming what is missing, unexpected or of another shape or type; the
/// state is then unchanged.
void restore_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& targets,
                     bool partial);

/// Which element type of a file is which of libtorch. @throws CheckpointError for types that files
/// do not hold.
[[nodiscard]] DType dtype_of(const at::Tensor& tensor);
[[nodiscard]] at::ScalarType scalar_type(DType dtype);
/// A tensor that views a record's bytes. Do not write to it.
[[nodiscard]] at::Tensor view_record(const TensorRecord& record);

}  // namespace precast::engine
