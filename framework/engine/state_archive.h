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

/// A contiguous copy of a state's tensors on the CPU, in the layout of weights files. Later
/// training steps do not change the copy.
class PRECAST_API StateCopy {
 public:
  explicit StateCopy(const std::vector<NamedTensor>& tensors);
  /// The copy's tensors; the records refer to its memory.
  [[nodiscard]] std::vector<TensorRecord> records() const;
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  std::vector<NamedTensor> tensors_;
};

/// Whether all floating-point values are finite. Waits for the device.
[[nodiscard]] bool all_finite(const std::vector<NamedTensor>& tensors, at::Device device);

/// Returns, on rank 0, the tensors of all ranks (with ZeRO, each rank has only some of them); on
/// other ranks, only `mine`. Collective.
[[nodiscard]] std::vector<NamedTensor> gather_tensors(const std::vector<NamedTensor>& mine,
                                                      Communicator& ranks, at::Device device);

/// Copies the tensors of a checkpoint's file into the tensors of a state. @param partial whether
/// the file may contain more tensors than `targets`.
/// @throws CheckpointError naming the tensors that are missing or of a different shape or type,
/// with the number of unexpected tensors; the state is then unchanged.
void restore_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& targets,
                     bool partial);
/// The same for the records of a file. @param path names the file in messages.
void restore_tensors(const std::vector<TensorRecord>& saved, const std::filesystem::path& path,
                     const std::vector<NamedTensor>& targets, bool partial);

/// Checks that weights files and checkpoints can store a state, so that a run fails before it
/// trains. @param part names the owner of the state in messages. @throws ConfigError naming a
/// tensor with a dtype that files cannot store, or a name that occurs twice
PRECAST_API void check_storable(const std::vector<NamedTensor>& state,
                                const std::string& part = "model");

/// The element type of a weights file that corresponds to the tensor's dtype. @throws
/// CheckpointError for dtypes that files cannot store.
[[nodiscard]] DType dtype_of(const at::Tensor& tensor);
[[nodiscard]] at::ScalarType scalar_type(DType dtype);
/// A tensor that views a record's bytes. Do not write to it.
[[nodiscard]] at::Tensor view_record(const TensorRecord& record);

}  // namespace precast::engine
