#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "framework/api/named_tensor.h"
#include "framework/core/export.h"

namespace precast {

/// The samples of one step, read by models, losses, metrics and methods. The tensors are
/// reference-counted: their memory is never reused while a Batch (or a copy of a tensor) lives. Do
/// not write to a source's tensors (as `mul_` does): the tensors of a ring are in read-only memory,
/// so writing to them crashes the process. A method that changes a batch must replace its tensors.
struct PRECAST_API Batch {
  /// One tensor per output of the pipeline (by default one per field, in the file's order), on the
  /// device of the run, with one row per sample. Integer fields are [N] int64, float fields [N]
  /// float64. Images are [N, C, H, W]; unless the pipeline says otherwise, they are floating point,
  /// channels_last and normalised.
  std::vector<NamedTensor> fields;
  /// The samples' indices in the dataset, [N]; batches that methods make may have none.
  std::vector<std::uint64_t> sample_ids;
  /// The recipe's data.inputs and data.targets, in the recipe's order, as indices into `fields`.
  /// There may be no targets (TargetKind::none).
  std::vector<std::size_t> inputs = {0};
  std::vector<std::size_t> targets = {1};

  [[nodiscard]] at::Tensor& input(std::size_t i = 0) { return fields.at(inputs.at(i)).tensor; }
  [[nodiscard]] const at::Tensor& input(std::size_t i = 0) const {
    return fields.at(inputs.at(i)).tensor;
  }
  /// @throws ConfigError if the batch has no target with index i.
  [[nodiscard]] at::Tensor& target(std::size_t i = 0);
  [[nodiscard]] const at::Tensor& target(std::size_t i = 0) const;
  /// The first input and the first target, under the names used in image classification.
  [[nodiscard]] at::Tensor& images() { return input(); }
  [[nodiscard]] const at::Tensor& images() const { return input(); }
  [[nodiscard]] at::Tensor& labels() { return target(); }
  [[nodiscard]] const at::Tensor& labels() const { return target(); }

  /// The tensor of the field called `name`. @throws ConfigError if there is no such field; the
  /// message suggests a similar name or lists the fields.
  [[nodiscard]] const at::Tensor& field(std::string_view name) const;
  /// Number of samples: the first dimension of the first input. Do not use the size of sample_ids
  /// instead: methods may make batches without sample ids.
  [[nodiscard]] std::int64_t size() const;
  /// Samples `first` to `first` + `count` - 1. The tensors are views that share memory with this
  /// batch.
  [[nodiscard]] Batch narrow(std::int64_t first, std::int64_t count) const;
  /// A copy of the samples at the given indices ([K] int64, on the batch's device). The copy has no
  /// sample ids, because reading the indices on the host would wait for the device.
  [[nodiscard]] Batch index_select(const at::Tensor& indices) const;
};

/// Makes a synthetic batch with the fields, shapes and dtypes that a source delivers. Used to test
/// a model before training.
using BatchMaker = std::function<Batch(std::int64_t samples, std::int64_t image_size_px)>;

/// Converts inputs in channels_last layout to PyTorch's default (contiguous) layout.
PRECAST_API void make_inputs_contiguous(Batch& batch);

/// A batch with one input and, if given, one target; without sample ids.
[[nodiscard]] PRECAST_API Batch make_batch(at::Tensor input, at::Tensor target = {});

}  // namespace precast
