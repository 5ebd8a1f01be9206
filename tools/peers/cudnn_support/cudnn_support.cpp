// Asks cuDNN which fused graphs of ResNet training it supports on a GPU. No GPU needs to be
// present:
//     cudnn_support DEVICE.json [--batch N] [--reasons]     prints a Markdown table
//     cudnn_support --describe_gpu                          prints DEVICE.json for the first GPU
// "Supported" means that cuDNN finds an engine whose conditions the device and the graph meet. Only
// the GPU itself shows whether the engine's plan can be built and how fast it is. Tensors are
// channels_last. Built and run by tools/peers/cudnn_support/run. Exit codes: 0 done, 2 usage, 6 no
// such device description or no GPU to describe.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "convolutions.h"

namespace {

using namespace cudnn_graphs;

/// A layer of ResNet: its channels, and the side of its images in px.
struct Layer {
  std::int64_t channels, size;
};
constexpr Layer kLayers[] = {{64, 112}, {64, 56}, {256, 56}, {512, 28}, {1024, 14}, {2048, 7}};

void batch_norm(Net& net, Layer layer, bool add, bool mask) {
  const auto [c, size] = layer;
  graph::Batchnorm_attributes attributes;
  Tensor mean_before = net.channels(c), variance_before = net.channels(c);
  Tensor epsilon = net->tensor(1e-5f), momentum = net->tensor(0.1f);
  attributes.set_epsilon(epsilon);
  attributes.set_previous_running_stats(mean_before, variance_before, momentum);
  auto [y, mean, inv_std, next_mean, next_var] =
      net->batchnorm(net.images(c, size), net.channels(c), net.channels(c), attributes);
  net.floats({mean, inv_std, next_mean, next_var});
  if (add) y = net.apply(Mode::ADD, y, net.images(c, size));
  net.relu(y)->set_output(true).set_data_type(net.type());
  if (!mask) return;
  const Tensor zero = net.channels(1);
  net.apply(Mode::CMP_GT, y, zero)->set_output(true).set_data_type(Type::BOOLEAN);
}

/// The gradient of ReLU, computed from its mask, and then the gradient of batch norm. The gradient
/// of ReLU is also the gradient of the shortcut.
void batch_norm_backward_by_mask(Net& net, Layer layer) {
  const auto [c, size] = layer;
  const Tensor masked = net.apply(Mode::MUL, net.images(c, size), net.mask(c, size));
  masked->set_output(true).set_data_type(net.type());
  const auto [dx, dscale, dbias] = net->batchnorm_backward(
      masked, net.images(c, size), net.channels(c),
      graph::Batchnorm_backward_attributes().set_saved_mean_and_inv_variance(net.channels(c),
                                                                             net.channels(c)));
  dx->set_output(true);
  net.floats({dscale, dbias});
}

/// The gradients of ReLU and batch norm, with ReLU's mask recomputed from the input of batch norm.
void batch_norm_backward_recomputed(Net& net, Layer layer) {
  const auto [c, size] = layer;
  const Tensor x = net.images(c, size), scale = net.channels(c), bias = net.channels(c);
  const Tensor mean = net.channels(c), inv_std = net.channels(c);
  const Tensor y = net->batchnorm_inference(x, mean, inv_std, scale, bias,
                                            graph::Batchnorm_inference_attributes());
  const Tensor dy = net.apply(Mode::RELU_BWD, net.images(c, size), y);
  dy->set_data_type(net.type());
  const auto [dx, dscale, dbias] = net->batchnorm_backward(
      dy, x, scale,
      graph::Batchnorm_backward_attributes().set_saved_mean_and_inv_variance(mean, inv_std));
  dx->set_output(true);
  net.floats({dscale, dbias});
}

void scale_bias_add_relu(Net& net, Layer layer) {
  const auto [c, size] = layer;
  const Tensor scaled = net.scale_bias(net.images(c, size), c, Type::FLOAT);
  net.relu(net.apply(Mode::ADD, scaled, net.images(c, size)))->set_output(true);
}

/// A 7x7 stem with stride 2, after space-to-depth: a 4x4 convolution of 16 channels of half the
/// size.
void stem_after_space_to_depth(Net& net) {
  const auto attributes = graph::Conv_fprop_attributes()
                              .set_pre_padding({2, 2})
                              .set_post_padding({1, 1})
                              .set_stride({1, 1})
                              .set_dilation({1, 1});
  const Tensor y = net->conv_fprop(net.images(16, 112), net.filter(64, 16, 4), attributes);
  y->set_output(true);
  net.statistics(y);
}

void depthwise(Net& net) {
  net.convolution(net.images(128, 56), net.filter(128, 1, 3), 1, 1);
}

void max_pool(Net& net) {
  const auto attributes = graph::Resample_attributes()
                              .set_generate_index(true)
                              .set_resampling_mode(fe::ResampleMode_t::MAXPOOL)
                              .set_padding_mode(fe::PaddingMode_t::NEG_INF_PAD)
                              .set_window({3, 3})
                              .set_stride({2, 2})
                              .set_pre_padding({1, 1})
                              .set_post_padding({1, 1});
  const auto [y, index] = net->resample(net.images(64, 112), attributes);
  y->set_output(true);
  index->set_output(true).set_data_type(Type::INT8);
}

// ---- the table

/// One row: a pattern, tested with one or more shapes.
struct Pattern {
  std::string name;
  std::vector<std::function<void(Net&)>> shapes;
  /// Whether tensors between the graph's operations are float32; otherwise they have the precision
  /// of the column.
  bool intermediate_is_float = true;
};

std::vector<std::function<void(Net&)>> in_layers(const std::function<void(Net&, Layer)>& build) {
  std::vector<std::function<void(Net&)>> shapes;
  for (const Layer layer : kLayers) shapes.push_back([=](Net& net) { build(net, layer); });
  return shapes;
}

std::vector<std::function<void(Net&)>> in_convolutions(const std::vector<Convolution>& all,
                                                       bool scaled_input) {
  std::vector<std::function<void(Net&)>> shapes;
  for (const Convolution& of : all) {
    shapes.push_back([=](Net& net) { forward(net, of, scaled_input, true); });
  }
  return shapes;
}

std::vector<Pattern> patterns() {
  std::vector<Pattern> all;
  for (const bool mask : {false, true}) {
    for (const bool add : {false, true}) {
      all.push_back(
          {std::string("BN") + (add ? "+add" : "") + "+ReLU" + (mask ? " with a mask output" : ""),
           in_layers([=](Net& net, Layer layer) { batch_norm(net, layer, add, mask); })});
    }
  }
  const std::vector<Convolution> unit_stride = {
      {64, 64, 3, 1, 56}, {64, 256, 1, 1, 56}, {512, 512, 3, 1, 7}, {512, 2048, 1, 1, 7}};
  const std::vector<Convolution> stride_two = {{128, 128, 3, 2, 56}, {256, 512, 1, 2, 56}};
  const std::vector<Convolution> stems = {
      {3, 64, 7, 2, 224}, {4, 64, 7, 2, 224}, {8, 64, 7, 2, 224}};
  static constexpr Convolution kGradients = {64, 64, 3, 1, 56};
  const std::vector<Pattern> others = {
      {"dReLU (mask) + dBN + dadd", in_layers(batch_norm_backward_by_mask)},
      {"BN inference + dReLU + dBN", in_layers(batch_norm_backward_recomputed)},
      {"scale-bias-add-ReLU", in_layers(scale_bias_add_relu)},
      {"conv + genstats", in_convolutions(unit_stride, false)},
      {"scale-bias-ReLU-conv-genstats", in_convolutions(unit_stride, true)},
      {"scale-bias-ReLU-conv-genstats, stride 2", in_convolutions(stride_two, true)},
      {"stem 7x7 stride 2 of 3, 4, 8 channels + genstats", in_convolutions(stems, false)},
      {"stem 4x4 after space-to-depth + genstats", {stem_after_space_to_depth}},
      {"dgrad + dReLU + dBN weight", {[](Net& net) { data_gradient(net, kGradients, true); }}},
      {"scale-bias-ReLU-wgrad", {[](Net& net) { weight_gradient(net, kGradients, true); }}, false},
      {"depthwise conv 3x3", {depthwise}},
      {"max pool 3x3 stride 2 with index", {max_pool}}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

/// Returns how many of the pattern's shapes have an engine. @param why a line is appended for each
/// shape without an engine
std::size_t count_supported(const Pattern& pattern, const Device& device, std::int64_t batch,
                            Type type, std::string& why) {
  std::size_t supported = 0;
  for (const auto& build : pattern.shapes) {
    Net net(device, batch, type, pattern.intermediate_is_float ? Type::FLOAT : type);
    build(net);
    const std::string refused = refusal(*net);
    if (refused.empty()) {
      ++supported;
    } else {
      why += pattern.name + (type == Type::HALF ? ", fp16: " : ", bf16: ") + refused + "\n";
    }
  }
  return supported;
}

void print_table(const Device& device, std::int64_t batch, bool reasons) {
  std::printf("cuDNN %zu, batch %lld, channels_last\n\n", cudnnGetVersion(),
              static_cast<long long>(batch));
  std::printf("| pattern | fp16 | bf16 |\n|---|---|---|\n");
  std::string why;
  for (const Pattern& pattern : patterns()) {
    std::printf("| %s |", pattern.name.c_str());
    for (const Type type : {Type::HALF, Type::BFLOAT16}) {
      const std::size_t supported = count_supported(pattern, device, batch, type, why);
      const std::size_t shapes = pattern.shapes.size();
      const std::string some =
          std::to_string(supported) + " of " + std::to_string(shapes) + " shapes";
      std::printf(" %s |", supported == shapes ? "yes" : supported == 0 ? "no" : some.c_str());
      std::fflush(stdout);
    }
    std::printf("\n");
  }
  if (reasons) std::printf("\n%s", why.c_str());
}

void describe_gpu() {
  fe::DeviceProperties device;
  check(device.set_device_id(0).build(), "expected a GPU to describe");
  std::vector<std::uint8_t> json;
  check(device.serialize(json), "cannot describe the GPU");
  std::printf("%.*s\n", static_cast<int>(json.size()), reinterpret_cast<const char*>(json.data()));
}

int usage() {
  std::fprintf(stderr,
               "usage: cudnn_support DEVICE.json [--batch N] [--reasons]\n"
               "       cudnn_support --describe_gpu\n");
  return kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  std::string path;
  std::int64_t batch = 256;
  bool reasons = false;
  try {
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (args[i] == "--describe_gpu" && args.size() == 1) {
        describe_gpu();
        return 0;
      }
      if (args[i] == "--reasons") {
        reasons = true;
      } else if (args[i] == "--batch" && i + 1 < args.size()) {
        batch = std::atoll(args[++i].c_str());
      } else if (path.empty() && !args[i].starts_with("-")) {
        path = args[i];
      } else {
        return usage();
      }
    }
    if (path.empty() || batch < 1) return usage();
    print_table(read_device(path), batch, reasons);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cudnn_support: %s\n", error.what());
    return kExitEnvironment;
  }
}
