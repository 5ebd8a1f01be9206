#include "models/described.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "framework/core/config/schema.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"
#include "models/detail/batch_norm.h"
#include "models/detail/blur_conv.h"
#include "models/detail/max_pool.h"
#include "models/detail/module_model.h"

namespace precast::models {
namespace {

using at::Tensor;

constexpr const char* kLayersKey = "model.params.layers";

/// The shape of the values that flow from one layer to the next.
struct LayerShape {
  /// Number of channels; after flatten, number of features.
  std::int64_t channels = 3;
  /// Side of the square images; 0: unknown.
  std::int64_t side = 0;
  bool flat = false;

  [[nodiscard]] std::string text() const {
    if (flat) return fmt::format("{} features", channels);
    if (side == 0) return fmt::format("{} channels of any size", channels);
    return fmt::format("{} channels of {} x {} px", channels, side, side);
  }
  bool operator==(const LayerShape&) const = default;
};

/// Layers in sequence. Layers that are modules are submodules, named by their indices.
struct Chain : torch::nn::Module {
  Tensor forward(const Tensor& input) {
    try {
      Tensor x = input;
      for (const auto& step : steps) x = step(x);
      return x;
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const c10::Error&) {
      if (explain_failure) explain_failure(input);
      throw;
    }
  }
  std::vector<std::function<Tensor(const Tensor&)>> steps;
  /// Called with the input if a layer fails on it: throws an error that names the layer, or returns
  /// if it cannot.
  std::function<void(const Tensor&)> explain_failure;
  /// The last step, if it is a norm.
  detail::BatchNorm2d last_norm = nullptr;
};

struct Residual : torch::nn::Module {
  Tensor forward(const Tensor& x) {
    const Tensor y = layers->forward(x);
    const Tensor other = shortcut != nullptr ? shortcut->forward(x) : x;
    // Otherwise, an image of 1 x 1 px would be broadcast.
    TORCH_CHECK(y.sizes() == other.sizes(), "residual: expected outputs of shape ", other.sizes(),
                ", got ", y.sizes());
    return y + other;
  }
  std::shared_ptr<Chain> layers;
  std::shared_ptr<Chain> shortcut;
};

/// One entry of a list of layers, and the chain to which its layer is added.
struct Entry {
  const ConfigNode& node;
  std::string name;
  const ConfigNode& options;
  /// For messages: `model.params.layers[2].conv`.
  std::string key;
  Chain& chain;
  /// The layer's index, which is its name in torch.nn.Sequential.
  std::string index;
  LayerShape& shape;
};

class Builder {
 public:
  /// @param image_size_px side of the images, for messages; 0: unknown.
  Builder(const ModelSpec& spec, bool reads_arrays, std::int64_t image_size_px)
      : spec_(spec), reads_arrays_(reads_arrays), image_size_px_(image_size_px) {}

  std::shared_ptr<Chain> chain(const ConfigNode& list, const std::string& key, LayerShape& shape) {
    if (list.kind != ConfigNode::Kind::list || list.items.empty())
      fail(list.origin, key, "expected a list of layers, got " + list.text());
    auto made = std::make_shared<Chain>();
    for (std::size_t i = 0; i < list.items.size(); ++i)
      add(list.items[i], fmt::format("{}[{}]", key, i), *made, std::to_string(i), shape);
    return made;
  }

  [[noreturn]] static void fail(const Origin& origin, const std::string& key,
                                const std::string& message) {
    Diagnostics diagnostics;
    diagnostics.error(origin, key, message);
    diagnostics.throw_if_errors();
    throw ConfigError(message);
  }

 private:
  using Add = void (Builder::*)(const Entry&);
  struct LayerType {
    const char* name;
    Add add;
  };
  static std::span<const LayerType> layer_types();

  void add(const ConfigNode& node, const std::string& key, Chain& chain, const std::string& index,
           LayerShape& shape) {
    static const ConfigNode kNone;
    const bool plain = node.kind == ConfigNode::Kind::scalar;
    if (!plain && (node.kind != ConfigNode::Kind::map || node.entries.size() != 1))
      fail(node.origin, key,
           fmt::format("expected a layer, such as relu or `conv: {{out: 32}}`, got {}",
                       node.text()));
    const std::string& name = plain ? node.scalar : node.entries[0].key;
    std::vector<std::string> names;
    for (const LayerType& layer : layer_types()) {
      if (name == layer.name) {
        const ConfigNode& options = plain ? kNone : node.entries[0].value;
        (this->*layer.add)(
            {node, name, options, fmt::format("{}.{}", key, name), chain, index, shape});
        if (layer.add != &Builder::add_norm) chain.last_norm = nullptr;
        return;
      }
      names.emplace_back(layer.name);
    }
    fail(node.origin, key, fmt::format("unknown layer '{}'. {}", name, suggest(name, names)));
  }

  static void read(const Entry& entry, Schema& schema) {
    Diagnostics diagnostics;
    schema.apply(entry.options, diagnostics, entry.key);
    schema.check_required(entry.node.origin, diagnostics, entry.key);
    diagnostics.throw_if_errors();
  }
  static void read_no_options(const Entry& entry) {
    Schema none;
    read(entry, none);
  }
  void require_image(const Entry& entry) const {
    if (entry.shape.flat)
      fail(entry.node.origin, entry.key,
           fmt::format("expected images, got {}. {}", entry.shape.text(),
                       reads_arrays_ ? "With model.params.features, the input is an array"
                                     : "Put this layer before flatten"));
  }
  template <typename Step>
  static void step(const Entry& entry, Step step) {
    entry.chain.steps.push_back(std::move(step));
  }
  /// Adds a module that has weights or depends on the training mode.
  template <typename Holder>
  static void add_module(const Entry& entry, Holder module) {
    entry.chain.register_module(entry.index, module);
    step(entry, [module](const Tensor& x) mutable { return module->forward(x); });
  }
  /// Updates the side of the images for a convolution or a pool with this window.
  void update_side(const Entry& entry, std::int64_t kernel, std::int64_t stride,
                   std::int64_t padding) const {
    if (entry.shape.side == 0) return;
    if (entry.shape.side + 2 * padding < kernel)
      fail(entry.node.origin, entry.key,
           fmt::format("expected images of at least {} px, got {}{}", kernel - 2 * padding,
                       entry.shape.text(), for_images()));
    entry.shape.side = (entry.shape.side + 2 * padding - kernel) / stride + 1;
  }

  /// The end of a message about a shape that depends on the size of the images.
  [[nodiscard]] std::string for_images() const {
    return image_size_px_ == 0 ? "" : fmt::format(" (for images of {} px)", image_size_px_);
  }

  void add_conv(const Entry& entry) {
    require_image(entry);
    std::int64_t out = 0, kernel = 3, stride = 1, padding = -1, groups = 1;
    bool bias = true;
    Schema schema;
    schema.add("out", &out, "number of output channels; 0: the number of classes")
        .min(0)
        .required();
    schema.add("kernel", &kernel, "side of the window").min(1);
    schema.add("stride", &stride, "step of the window").min(1);
    schema.add("padding", &padding, "zeros added on each side, px; -1: kernel / 2").min(-1);
    schema.add("groups", &groups, "number of groups of channels that are convolved separately")
        .min(1);
    schema.add("bias", &bias, "add a learned bias to each channel");
    read(entry, schema);
    if (out == 0) out = spec_.num_classes;
    if (padding < 0) padding = kernel / 2;
    const std::int64_t in = entry.shape.channels;
    if (in % groups != 0 || out % groups != 0)
      fail(entry.node.origin, entry.key + ".groups",
           fmt::format("expected a divisor of {} and {} channels, got {}", in, out, groups));
    detail::BlurConv2d conv(torch::nn::Conv2dOptions(in, out, kernel)
                                .stride(stride)
                                .padding(padding)
                                .groups(groups)
                                .bias(bias),
                            spec_.blurpool);
    if (spec_.fused_kernels) conv->fuse();
    add_module(entry, conv);
    update_side(entry, kernel, stride, padding);
    entry.shape.channels = out;
  }

  void add_norm(const Entry& entry) {
    require_image(entry);
    read_no_options(entry);
    entry.chain.last_norm =
        detail::BatchNorm2d(entry.shape.channels, spec_.batch_norm_ranks, spec_.ghost_batch_size);
    if (spec_.fused_kernels) entry.chain.last_norm->fuse();
    add_module(entry, entry.chain.last_norm);
  }
  void add_relu(const Entry& entry) {
    read_no_options(entry);
    detail::BatchNorm2d norm = entry.chain.last_norm;
    if (spec_.fused_kernels && norm) {
      entry.chain.steps.back() = [norm](const Tensor& x) mutable { return norm->forward_relu(x); };
      return;
    }
    step(entry, [](const Tensor& x) { return at::relu(x); });
  }
  void add_gelu(const Entry& entry) {
    read_no_options(entry);
    step(entry, [](const Tensor& x) { return at::gelu(x); });
  }

  void add_pool(const Entry& entry) {
    require_image(entry);
    std::int64_t kernel = 2, stride = 0, padding = 0;
    Schema schema;
    schema.add("kernel", &kernel, "side of the window").min(1);
    schema.add("stride", &stride, "step of the window; 0: the same as kernel").min(0);
    schema.add("padding", &padding, "pixels added on each side; at most half the kernel").min(0);
    read(entry, schema);
    if (stride == 0) stride = kernel;
    if (2 * padding > kernel)
      fail(entry.node.origin, entry.key + ".padding",
           fmt::format("expected at most half the kernel ({}), got {}", kernel, padding));
    if (entry.name == "max_pool") {
      detail::MaxPool2d pool(kernel, stride, padding);
      if (spec_.fused_kernels) pool->fuse();
      add_module(entry, pool);
    } else {
      step(entry, [=](const Tensor& x) {
        return at::avg_pool2d(x, {kernel, kernel}, {stride, stride}, {padding, padding});
      });
    }
    update_side(entry, kernel, stride, padding);
  }
  void add_global_pool(const Entry& entry) {
    require_image(entry);
    read_no_options(entry);
    const bool largest = entry.name == "global_max_pool";
    step(entry, [largest](const Tensor& x) {
      return largest ? std::get<0>(at::adaptive_max_pool2d(x, {1, 1}))
                     : at::adaptive_avg_pool2d(x, {1, 1});
    });
    entry.shape.side = 1;
  }

  void add_flatten(const Entry& entry) {
    require_image(entry);
    read_no_options(entry);
    if (entry.shape.side == 0)
      fail(entry.node.origin, entry.key,
           "expected images of a known size, got images of any size. Put global_avg_pool before "
           "flatten, or set model.params.image_size");
    step(entry, [](const Tensor& x) { return x.flatten(1); });
    entry.shape.channels *= entry.shape.side * entry.shape.side;
    entry.shape.flat = true;
  }
  void add_linear(const Entry& entry) {
    if (!entry.shape.flat)
      fail(entry.node.origin, entry.key,
           fmt::format("expected features, got {}. Put flatten before this layer",
                       entry.shape.text()));
    std::int64_t out = 0;
    bool bias = true;
    Schema schema;
    schema.add("out", &out, "number of features; 0: the number of classes").min(0);
    schema.add("bias", &bias, "add a learned bias to each feature");
    read(entry, schema);
    if (out == 0) out = spec_.num_classes;
    add_module(entry,
               torch::nn::Linear(torch::nn::LinearOptions(entry.shape.channels, out).bias(bias)));
    entry.shape.channels = out;
  }
  void add_upsample(const Entry& entry) {
    require_image(entry);
    std::int64_t scale = 2;
    Schema schema;
    schema.add("scale", &scale, "factor by which height and width are multiplied").min(1);
    read(entry, schema);
    step(entry, [scale](const Tensor& x) {
      return at::upsample_nearest2d(x, {x.size(2) * scale, x.size(3) * scale});
    });
    entry.shape.side *= scale;
  }
  void add_scale(const Entry& entry) {
    double factor = 1;
    Schema schema;
    schema.add("factor", &factor, "factor by which each value is multiplied").required();
    read(entry, schema);
    step(entry, [factor](const Tensor& x) { return x * factor; });
  }
  void add_dropout(const Entry& entry) {
    double p = 0.5;
    Schema schema;
    schema.add("p", &p, "probability that a value is set to 0").min(0).below(1);
    read(entry, schema);
    add_module(entry, torch::nn::Dropout(p));
  }

  void add_residual(const Entry& entry) {
    ConfigNode layers, shortcut;
    Schema schema;
    schema.add("layers", &layers, "layers of the residual branch").required();
    schema.add("shortcut", &shortcut, "layers on the shortcut; not given: the identity");
    read(entry, schema);
    auto residual = std::make_shared<Residual>();
    const LayerShape in = entry.shape;
    residual->layers =
        residual->register_module("layers", chain(layers, entry.key + ".layers", entry.shape));
    LayerShape shortcut_shape = in;
    if (shortcut.kind != ConfigNode::Kind::null)
      residual->shortcut = residual->register_module(
          "shortcut", chain(shortcut, entry.key + ".shortcut", shortcut_shape));
    if (!(shortcut_shape == entry.shape))
      fail(entry.node.origin, entry.key,
           fmt::format("expected {} at the end of layers, as at the end of the shortcut, got {}{}. "
                       "A shortcut such as [conv: {{out: {}, kernel: 1}}] can change the shape",
                       shortcut_shape.text(), entry.shape.text(), for_images(),
                       entry.shape.channels));
    entry.chain.register_module(entry.index, residual);
    step(entry, [residual](const Tensor& x) { return residual->forward(x); });
  }

  const ModelSpec& spec_;
  /// Whether the input is an array (DescribedOptions::features).
  bool reads_arrays_;
  std::int64_t image_size_px_;
};

std::span<const Builder::LayerType> Builder::layer_types() {
  static constexpr LayerType kLayers[] = {
      {"conv", &Builder::add_conv},
      {"bn", &Builder::add_norm},
      {"relu", &Builder::add_relu},
      {"gelu", &Builder::add_gelu},
      {"max_pool", &Builder::add_pool},
      {"avg_pool", &Builder::add_pool},
      {"global_avg_pool", &Builder::add_global_pool},
      {"global_max_pool", &Builder::add_global_pool},
      {"flatten", &Builder::add_flatten},
      {"linear", &Builder::add_linear},
      {"upsample", &Builder::add_upsample},
      {"scale", &Builder::add_scale},
      {"dropout", &Builder::add_dropout},
      {"residual", &Builder::add_residual},
  };
  return kLayers;
}

/// Builds the layers again for the size of these images, because libtorch's error does not name the
/// layer. @throws ConfigError with the position of the layer that does not work on them. Returns if
/// there is none: the failure has another reason.
void explain_failure(ModelSpec spec, const ConfigNode& layers, const Tensor& images) {
  if (images.dim() != 4 || images.size(2) != images.size(3)) return;
  spec.batch_norm_ranks = nullptr;
  LayerShape shape{.channels = spec.in_channels, .side = images.size(2)};
  static_cast<void>(
      Builder(spec, /*reads_arrays=*/false, shape.side).chain(layers, kLayersKey, shape));
}

}  // namespace

void DescribedOptions::options(Schema& schema) {
  schema.add("layers", &layers, "list of layers").required();
  schema.add("image_size", &image_size, "side of the images, px; 0: any").min(0);
  schema
      .add("features", &features,
           "number of values per sample if the input is an array; 0: the input is an image")
      .min(0);
}

std::unique_ptr<Model> make_described(const ModelSpec& spec, const DescribedOptions& options) {
  if (spec.num_classes < 1) {
    throw ConfigError(fmt::format("model {}: expected at least 1 class, got {} (num_classes)",
                                  spec.arch, spec.num_classes));
  }
  LayerShape shape;
  shape.channels = spec.in_channels;
  shape.side = options.image_size;
  if (options.features > 0) shape = {.channels = options.features, .flat = true};
  const std::shared_ptr<Chain> chain =
      Builder(spec, options.features > 0, shape.side).chain(options.layers, kLayersKey, shape);
  if (options.features > 0) {
    chain->steps.insert(chain->steps.begin(),
                        [](const Tensor& x) { return x.to(at::kFloat).flatten(1); });
  } else {
    chain->explain_failure = [spec, layers = options.layers](const Tensor& images) {
      explain_failure(spec, layers, images);
    };
  }
  // Until the dataset has been read, num_classes is 1, and any number of outputs is accepted.
  const bool is_known = spec.num_classes > 1;
  const bool has_wrong_size = is_known && shape.channels != spec.num_classes;
  const std::string number = is_known ? fmt::format("{} ", spec.num_classes) : "";
  if (spec.targets == TargetKind::class_mask) {
    if (shape.flat || has_wrong_size)
      Builder::fail(options.layers.items.back().origin, kLayersKey,
                    fmt::format("expected {}channels at the end, one per class, got {}. End with "
                                "`conv: {{out: 0}}`",
                                number, shape.text()));
  } else if (spec.targets == TargetKind::none ||
             (spec.targets == TargetKind::values && !shape.flat)) {
    // Without targets, any shape is valid. With values, the loss compares the shapes of output and
    // targets.
  } else if (!shape.flat || has_wrong_size) {
    Builder::fail(
        options.layers.items.back().origin, kLayersKey,
        fmt::format("expected {}features at the end, one per {}, got {}. End with {}", number,
                    spec.targets == TargetKind::values ? "value of a target" : "class",
                    shape.text(), shape.flat ? "linear" : "global_avg_pool, flatten, linear"));
  }
  return detail::as_model(chain);
}

}  // namespace precast::models
