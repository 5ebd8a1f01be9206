#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "framework/api/batch.h"
#include "framework/api/named_tensor.h"
#include "framework/core/config/part.h"
#include "framework/core/export.h"

namespace precast {

struct ModelSpec;

/// A network. Not thread-safe.
class Model {
 public:
  virtual ~Model() = default;

  /// @param batch on the model's device. A model reads only the inputs; targets, and fields that
  /// only the loss reads, may be missing.
  /// @return outputs, floating point, [N, ...]: one row per sample. Classifiers return logits
  /// [N, num_classes].
  [[nodiscard]] virtual at::Tensor forward(const Batch& batch) = 0;
  /// The parameters, which are leaves of the autograd graph, in the order of Python's
  /// named_parameters(). A tensor that several layers share is listed only once, because each entry
  /// is updated.
  [[nodiscard]] virtual std::vector<NamedTensor> parameters() const = 0;
  /// Parameters and buffers in the order and with the names of Python's state_dict().
  /// The tensors share memory with the model.
  [[nodiscard]] virtual std::vector<NamedTensor> state() const = 0;
  /// Switches between training mode (batch statistics and dropout on) and evaluation mode.
  virtual void train(bool training) = 0;
  /// Moves parameters and buffers; `channels_last` changes the layout of 4-d weights.
  virtual void to(at::Device device, bool channels_last) = 0;
};

/// A network that classifies images: it reads the first input and returns logits.
class ImageModel : public Model {
 public:
  /// @param images [N, ModelSpec::in_channels, H, W], float, on the model's device.
  /// @return logits [N, num_classes].
  [[nodiscard]] virtual at::Tensor classify(const at::Tensor& images) = 0;
  [[nodiscard]] at::Tensor forward(const Batch& batch) final { return classify(batch.images()); }
};

/// Returns the floating-point tensors of the state that are not parameters, such as the running
/// statistics of batch norms. The tensors share memory with the model.
[[nodiscard]] PRECAST_API std::vector<at::Tensor> statistics_of(const Model& model);

/// Models draw their weights from libtorch's default CPU generator. A model that torchvision also
/// has draws them in torchvision's order: after at::manual_seed(s), it has the same weights as
/// torchvision's model after torch.manual_seed(s).
using ModelRegistry = PartRegistry<Model, const ModelSpec&>;

/// Builds the architecture `spec.arch` with the options in `spec.params`. @throws ConfigError like
/// PartRegistry::make()
[[nodiscard]] PRECAST_API std::unique_ptr<Model> make_model(const ModelRegistry& models,
                                                            const ModelSpec& spec);

}  // namespace precast
