#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/api/model.h"
#include "framework/api/optimizer.h"

namespace precast::recipes {

using Tensors = std::vector<at::Tensor>;

/// `found_inf` as an argument of libtorch's fused ops.
[[nodiscard]] inline std::optional<at::Tensor> found_inf(
    const std::optional<Optimizer::Scaled>& scaled) {
  return scaled ? std::optional<at::Tensor>(scaled->found_inf) : std::nullopt;
}

/// Options of every optimiser in this folder: which weights decay, and by how much.
struct DecayOptions {
  double weight_decay = 4e-5;
  /// Which weights decay. `legacy`: those without "bn" in their names, as in ffcv-imagenet
  /// (including the norms of shortcuts and fc.bias); `clean`: tensors of two or more dimensions.
  std::string decay_groups = "legacy";

  void options(Schema& schema);
};

/// The parameters of an optimiser, grouped by how they are updated, and for each parameter its
/// moments (velocity, mean of squares): tensors of the same shape and layout that start at 0. All
/// optimisers of this folder use this class, so decay groups and layouts have the same meaning in
/// each of them.
///
/// Borrows the parameters' memory, so create it after the model is on its device. Not thread-safe.
class ParameterGroups {
 public:
  /// The arguments of one call of a fused op. Entry i of every list belongs to parameter i and has
  /// the same memory layout.
  struct Group {
    /// 0 for parameters that do not decay.
    double weight_decay = 0;
    /// Whether the tensors have two or more dimensions, so that layer-wise rates apply to them.
    bool has_matrices = false;
    Tensors parameters;
    Tensors gradients;
    /// One list for each name given to the constructor.
    std::vector<Tensors> moments;
  };

  /// @param moments the names of the moments, as in State: "momentum" becomes
  /// "conv1.weight.momentum".
  ParameterGroups(const std::vector<NamedTensor>& parameters, const DecayOptions& options,
                  std::vector<std::string> moments);

  /// Calls `update` once for each group that is not empty, with the parameters that have a
  /// gradient. Autograd is off during the call. A gradient whose layout differs from its
  /// parameter's is passed as a copy.
  void for_each(const std::function<void(const Group&)>& update) const;
  /// The moments, in the order of the parameters.
  [[nodiscard]] std::vector<NamedTensor> state() const;
  /// Whether there are no parameters, as on a rank whose parameters are all updated by other ranks.
  [[nodiscard]] bool empty() const { return members_.empty(); }
  /// The parameters' device; the CPU if there are none.
  [[nodiscard]] at::Device device() const;

 private:
  struct Member {
    NamedTensor parameter;
    bool decays;
    Tensors moments;
  };

  double weight_decay_;
  std::vector<std::string> moment_names_;
  std::vector<Member> members_;
};

}  // namespace precast::recipes
