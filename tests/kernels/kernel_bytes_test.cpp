// Counts on the host (counted_memory.h) the bytes that kernels move, and compares them with the
// byte counts that kernel_bench uses (bytes_moved.h and the other `..._bytes()` functions), with
// the figures in comments, and with the cost model of a training step.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/loader/image_planner.h"
#include "data/torch/cuda/normalize.h"
#include "data/torch/cuda/planned_images.h"
#include "models/cuda/batch_norm.h"
#include "models/cuda/blur.h"
#include "models/cuda/dual_norm.h"
#include "models/cuda/max_pool.h"
#include "models/cuda/norm_pool.h"
#include "models/cuda/stem.h"
#include "tests/support/counted_memory.h"
#include "tools/bench/cost/step_cost.h"

namespace precast::models {
namespace {

using test::CountedMemory;
using test::MovedBytes;

constexpr ActivationType kTypes[] = {ActivationType::f16, ActivationType::f32};
/// The largest relative deviation allowed: for functions, which include every array, and for the
/// figures in comments, which leave out partial sums and parameters.
constexpr double kOfFunctions = 0.001, kOfComments = 0.05;

/// Layers of ResNets at 224 px, with batches that take little time on the host.
struct Layer {
  std::int64_t images;
  int side;
  int channels;
};
constexpr Layer kLayers[] = {{2, 56, 64}, {4, 28, 128}};

std::string name_of(const Layer& layer, ActivationType type) {
  return fmt::format("{} x {} x {} x {} {}", layer.images, layer.side, layer.side, layer.channels,
                     type == ActivationType::f32 ? "f32" : "f16");
}

void expect_within(std::size_t counted, double expected, double share, const std::string& what) {
  EXPECT_NEAR(static_cast<double>(counted), expected, share * expected)
      << what << ": " << 100 * (static_cast<double>(counted) / expected - 1) << " %";
}

class KernelBytesTest : public ::testing::Test {
 protected:
  /// Calls `check(layer, type, name)` for each layer and type.
  template <typename Check>
  static void for_layers(Check check) {
    for (const Layer& layer : kLayers)
      for (const ActivationType type : kTypes) check(layer, type, name_of(layer, type));
  }
  /// Compares the counted bytes with the result of a function of bytes_moved.h. For 16-bit types,
  /// also compares them with the figure in its comment, which is in units of `unit` bytes.
  static void expect_bytes(const MovedBytes& counted, std::size_t function, double comment,
                           std::size_t unit, ActivationType type, const std::string& what) {
    fmt::print("{:<58} {:>9} read {:>9} written {:>9} in all; {:.4f} of the function's\n", what,
               counted.read, counted.written, counted.total(),
               static_cast<double>(counted.total()) / static_cast<double>(function));
    expect_within(counted.total(), static_cast<double>(function), kOfFunctions, what);
    if (type != ActivationType::f32)
      expect_within(counted.total(), comment * static_cast<double>(unit), kOfComments, what);
  }
};

struct NormOptions {
  bool relu;
  bool residual;
  bool fork;
  const char* name;
};

/// A batch norm with its arrays.
struct Norm {
  Norm(const Layer& layer, ActivationType type, const NormOptions& with)
      : shape{layer.images * layer.side * layer.side, layer.channels, type}, options(with) {
    const auto channels = static_cast<std::size_t>(layer.channels);
    weight = memory.array<float>("weight", channels);
    bias = memory.array<float>("bias", channels);
    running_mean = memory.array<float>("running_mean", channels);
    running_var = memory.array<float>("running_var", channels);
    mean = memory.array<float>("mean", channels);
    inv_std = memory.array<float>("inv_std", channels);
    d_weight = memory.array<float>("d_weight", channels);
    d_bias = memory.array<float>("d_bias", channels);
    x = activations("x");
    y = activations("y");
    residual = activations("residual");
    mask = memory.array<std::uint8_t>("mask", batch_norm_mask_bytes(shape));
    workspace = memory.array("workspace", batch_norm_workspace_bytes(shape));
  }
  void* activations(const char* name) { return memory.array(name, activation_bytes(shape)); }

  [[nodiscard]] BatchNormForward forward_call() const {
    return {.x = x,
            .residual = options.residual ? residual : nullptr,
            .weight = weight,
            .bias = bias,
            .relu = options.relu,
            .running_mean = running_mean,
            .running_var = running_var,
            .y = y,
            .mean = mean,
            .inv_std = inv_std,
            .mask = options.residual ? mask : nullptr,
            .workspace = workspace};
  }
  [[nodiscard]] BatchNormBackward backward_call() {
    return {.x = x,
            .dy = activations("dy"),
            .dy_fork = options.fork ? activations("dy_fork") : nullptr,
            .weight = weight,
            .bias = bias,
            .mean = mean,
            .inv_std = inv_std,
            .relu = options.relu,
            .mask = options.residual ? mask : nullptr,
            .dx = activations("dx"),
            .d_residual = options.residual ? activations("d_residual") : nullptr,
            .d_weight = d_weight,
            .d_bias = d_bias,
            .workspace = workspace};
  }
  MovedBytes forward() {
    return memory.count([&] { batch_norm_forward(shape, forward_call(), nullptr); });
  }
  MovedBytes backward() {
    const BatchNormBackward call = backward_call();
    return memory.count([&] { batch_norm_backward(shape, call, nullptr); });
  }

  CountedMemory memory;
  BatchNormShape shape;
  NormOptions options;
  float *weight, *bias, *running_mean, *running_var, *mean, *inv_std, *d_weight, *d_bias;
  void *x, *y, *residual, *workspace;
  std::uint8_t* mask;
};

TEST_F(KernelBytesTest, BatchNormForward) {
  constexpr NormOptions kOptions[] = {{false, false, false, "plain"},
                                      {true, false, false, "ReLU"},
                                      {true, true, false, "residual and ReLU"}};
  for_layers([&](const Layer& layer, ActivationType type, const std::string& name) {
    for (const NormOptions& options : kOptions) {
      Norm norm(layer, type, options);
      expect_bytes(norm.forward(), batch_norm_forward_bytes(norm.shape, options.residual),
                   options.residual ? 4 + 1. / 16 : 3, activation_bytes(norm.shape), type,
                   fmt::format("batch norm, {}, {}", options.name, name));
    }
  });
}

TEST_F(KernelBytesTest, BatchNormBackward) {
  constexpr NormOptions kOptions[] = {{false, false, false, "plain"},
                                      {true, false, false, "ReLU"},
                                      {true, false, true, "ReLU, fork"},
                                      {true, true, false, "residual and ReLU"},
                                      {true, true, true, "residual and ReLU, fork"}};
  for_layers([&](const Layer& layer, ActivationType type, const std::string& name) {
    for (const NormOptions& options : kOptions) {
      Norm norm(layer, type, options);
      const double fork = options.fork ? (options.residual ? 1 : 2) : 0;
      expect_bytes(norm.backward(),
                   batch_norm_backward_bytes(norm.shape, options.residual, options.fork),
                   (options.residual ? 6 + 1. / 16 : 5) + fork, activation_bytes(norm.shape), type,
                   fmt::format("its gradient, {}, {}", options.name, name));
    }
  });
}

TEST_F(KernelBytesTest, DualNorm) {
  for_layers([&](const Layer& layer, ActivationType type, const std::string& name) {
    // With fewer images or more channels, the partial sums would be more than 5 % of the bytes.
    const Layer narrow{2 * layer.images, layer.side, 64};
    const NormOptions options{true, true, true, ""};
    // The arrays of the second norm are in the memory of the first one.
    Norm norm(narrow, type, options);
    const BatchNormShape shape = norm.shape;
    const auto channels = static_cast<std::size_t>(narrow.channels);
    CountedMemory& memory = norm.memory;
    const auto floats = [&](const char* of) { return memory.array<float>(of, channels); };
    float *const mean = floats("shortcut's mean"), *const inv_std = floats("shortcut's inv_std");
    float *const weight = floats("shortcut's weight"), *const bias = floats("shortcut's bias");
    const void* const x = norm.activations("shortcut's x");
    DualNormForward forward{.norm = norm.forward_call(), .shortcut = {}};
    forward.norm.residual = nullptr;
    forward.shortcut = {.x = x,
                        .weight = weight,
                        .bias = bias,
                        .running_mean = floats("shortcut's running_mean"),
                        .running_var = floats("shortcut's running_var"),
                        .mean = mean,
                        .inv_std = inv_std,
                        .workspace = norm.workspace};
    expect_bytes(memory.count([&] { dual_norm_forward(shape, forward, nullptr); }),
                 dual_norm_forward_bytes(shape), 5 + 1. / 16, activation_bytes(shape), type,
                 "two batch norms, " + name);
    DualNormBackward backward{.norm = norm.backward_call(), .shortcut = {}};
    backward.shortcut = {
        .x = x,
        .weight = weight,
        .bias = bias,
        .mean = mean,
        .inv_std = inv_std,
        .dx = norm.activations("shortcut's dx"),
        .d_weight = floats("shortcut's d_weight"),
        .d_bias = floats("shortcut's d_bias"),
        .workspace = memory.array("shortcut's workspace", batch_norm_workspace_bytes(shape))};
    for (const bool forked : {true, false}) {
      if (!forked) backward.norm.dy_fork = nullptr;
      expect_bytes(memory.count([&] { dual_norm_backward(shape, backward, nullptr); }),
                   dual_norm_backward_bytes(shape, forked), (forked ? 10 : 9) + 1. / 16,
                   activation_bytes(shape), type,
                   fmt::format("their gradient, {}{}", forked ? "fork, " : "", name));
    }
  });
}

TEST_F(KernelBytesTest, PartialSumsAreAtMost11PercentOfABatchNorm) {
  for (const auto& [side, channels] :
       {std::pair{56, 64}, {56, 256}, {28, 512}, {14, 1024}, {7, 512}, {7, 2048}}) {
    const BatchNormShape shape{std::int64_t{256} * side * side, channels, ActivationType::f16};
    const double share = static_cast<double>(batch_norm_forward_bytes(shape, false)) /
                         static_cast<double>(3 * activation_bytes(shape));
    EXPECT_LT(share, 1.09) << side << " px, " << channels << " channels";
    const double of_two = static_cast<double>(dual_norm_forward_bytes(shape)) / (5 + 1. / 16) /
                          static_cast<double>(activation_bytes(shape));
    EXPECT_LT(of_two, 1.11) << side << " px, " << channels << " channels";
  }
}

TEST_F(KernelBytesTest, Blur) {
  struct Results {
    bool all, even;
    double figure;
    const char* name;
  };
  constexpr Results kResults[] = {{true, false, 2, "all pixels"},
                                  {false, true, 1.25, "even pixels"},
                                  {true, true, 2.25, "for both consumers"}};
  for_layers([&](const Layer& layer, ActivationType type, const std::string& name) {
    for (const Results& results : kResults) {
      const BlurShape shape{layer.images, layer.side, layer.side, layer.channels, type};
      const std::size_t pixels = blur_bytes(shape, true, false) / 2;
      CountedMemory memory;
      void* const image = memory.array("image", pixels);
      void* const all = results.all ? memory.array("all", pixels) : nullptr;
      void* const even = results.even ? memory.array("even", pixels / 4) : nullptr;
      const std::size_t function = blur_bytes(shape, results.all, results.even);
      const std::string what = fmt::format("{}, {}", results.name, name);
      expect_bytes(memory.count([&] {
        blur_forward(shape, {.x = image, .y = all, .y_even = even}, nullptr);
      }),
                   function, results.figure, pixels, type, "blur, " + what);
      expect_bytes(memory.count([&] {
        blur_backward(shape, {.dy = all, .dy_even = even, .dx = image}, nullptr);
      }),
                   function, results.figure, pixels, type, "its gradient, " + what);
    }
  });
}

TEST_F(KernelBytesTest, MaxPool) {
  for_layers([&](const Layer& layer, ActivationType type, const std::string& name) {
    const MaxPoolShape shape{layer.images, layer.side, layer.side, layer.channels, type};
    const std::size_t values = max_pool_values(shape), bytes = values * bytes_of(type);
    CountedMemory memory;
    void* const image = memory.array("image", 4 * bytes);
    void* const result = memory.array("result", bytes);
    const void* const fork = memory.array("fork", bytes);
    auto* const argmax = memory.array<std::uint8_t>("argmax", values);
    expect_bytes(memory.count([&] {
      max_pool_forward(shape, {.x = image, .y = result, .argmax = argmax}, nullptr);
    }),
                 max_pool_bytes(shape), 1.375, 4 * bytes, type, "max pool, " + name);
    for (const bool forked : {false, true}) {
      expect_bytes(memory.count([&] {
        max_pool_backward(
            shape,
            {.dy = result, .dy_fork = forked ? fork : nullptr, .argmax = argmax, .dx = image},
            nullptr);
      }),
                   max_pool_bytes(shape, forked), forked ? 1.625 : 1.375, 4 * bytes, type,
                   fmt::format("its gradient, {}{}", forked ? "fork, " : "", name));
    }
  });
}

TEST_F(KernelBytesTest, NormPool) {
  for_layers([&](const Layer& layer, ActivationType type, const std::string& name) {
    // With fewer images, the partial sums would be more than 5 % of the bytes.
    const MaxPoolShape shape{2 * layer.images, layer.side, layer.side, layer.channels, type};
    const std::size_t values = max_pool_values(shape), bytes = values * bytes_of(type);
    const auto channels = static_cast<std::size_t>(layer.channels);
    CountedMemory memory;
    const auto floats = [&](const char* of) { return memory.array<float>(of, channels); };
    void* const x = memory.array("x", 4 * bytes);
    void* const dx = memory.array("dx", 4 * bytes);
    void* const y = memory.array("y", bytes);
    void* const largest = memory.array("largest", bytes);
    const void* const fork = memory.array("fork", bytes);
    auto* const argmax = memory.array<std::uint8_t>("argmax", values);
    float *const weight = floats("weight"), *const bias = floats("bias");
    float *const mean = floats("mean"), *const inv_std = floats("inv_std");
    void* const workspace =
        memory.array("workspace", batch_norm_workspace_bytes(norm_shape(shape)));
    const NormPoolForward forward{.norm = {.x = x,
                                           .weight = weight,
                                           .bias = bias,
                                           .running_mean = floats("running_mean"),
                                           .running_var = floats("running_var"),
                                           .y = y,
                                           .mean = mean,
                                           .inv_std = inv_std,
                                           .workspace = workspace},
                                  .largest = largest,
                                  .argmax = argmax};
    expect_bytes(memory.count([&] { norm_pool_forward(shape, forward, nullptr); }),
                 norm_pool_forward_bytes(shape), 2.625, 4 * bytes, type,
                 "batch norm and max pool, " + name);
    NormPoolBackward backward{.norm = {.x = x,
                                       .dy = y,
                                       .weight = weight,
                                       .bias = bias,
                                       .mean = mean,
                                       .inv_std = inv_std,
                                       .dx = dx,
                                       .d_weight = floats("d_weight"),
                                       .d_bias = floats("d_bias"),
                                       .workspace = workspace},
                              .largest = largest,
                              .argmax = argmax};
    for (const bool forked : {false, true}) {
      backward.norm.dy_fork = forked ? fork : nullptr;
      expect_bytes(memory.count([&] { norm_pool_backward(shape, backward, nullptr); }),
                   norm_pool_backward_bytes(shape, forked), forked ? 3.375 : 2.875, 4 * bytes, type,
                   fmt::format("its gradient, {}{}", forked ? "fork, " : "", name));
    }
  });
}

TEST_F(KernelBytesTest, Stem) {
  for (const ActivationType type : kTypes) {
    const StemShape shape{std::int64_t{2} * 160 * 160, type};
    const std::size_t images = std::size_t{2} * 160 * 160 * 3 * bytes_of(type);
    CountedMemory memory;
    const void* const x = memory.array("x", images);
    void* const y = memory.array("y", stem_bytes(shape) - images);
    const MovedBytes counted = memory.count([&] { stem_input(shape, {.x = x, .y = y}, nullptr); });
    expect_bytes(counted, stem_bytes(shape), 2.33, images, type, "stem");
  }
}

TEST_F(KernelBytesTest, Normalize) {
  using data::PixelType;
  constexpr std::size_t kValues = std::size_t{2} * 160 * 160 * 3;
  for (const PixelType type : {PixelType::f32, PixelType::f16, PixelType::bf16}) {
    CountedMemory memory;
    const auto* const in = memory.array<std::uint8_t>("in", kValues);
    const std::size_t moved = data::normalize_bytes(kValues, type);
    void* const out = memory.array("out", moved - kValues);
    const MovedBytes counted = memory.count([&] {
      data::normalize(in, kValues, {{0, 0, 0}, {1, 1, 1}}, type, out, nullptr);
    });
    EXPECT_EQ(counted, (MovedBytes{kValues, kValues * (type == PixelType::f32 ? 4 : 2)}));
    EXPECT_EQ(counted.total(), moved);
  }
}

TEST_F(KernelBytesTest, PlannedImages) {
  using data::PixelType;
  constexpr int kStoredPx = 90;
  constexpr int kSizePx = 64;
  constexpr std::uint64_t kImages = 3;
  const data::ImageOutput image{.pipeline = data::standard_val_pipeline(),
                                .max_stored_side_px = kStoredPx};
  const std::size_t plan_bytes = data::image_plan_bytes(image, kSizePx);
  data::ImagePlanner planner(image.pipeline, /*seed=*/1, /*view=*/{});
  for (const PixelType type : {PixelType::f32, PixelType::f16, PixelType::bf16}) {
    CountedMemory memory;
    constexpr std::size_t kStored = std::size_t{3} * kStoredPx * kStoredPx;
    auto* const pixels = memory.array<std::uint8_t>("pixels", kImages * kStored);
    auto* const offsets = memory.array<std::uint64_t>("offsets", kImages);
    auto* const widths = memory.array<std::int32_t>("widths", kImages);
    auto* const plans = memory.array("plans", kImages * plan_bytes);
    std::size_t expected = 0;
    for (std::uint64_t i = 0; i < kImages; ++i) {
      offsets[i] = i * kStored;
      widths[i] = kStoredPx;
      planner.plan(kStoredPx, kStoredPx, {.sample = i, .position = i}, kSizePx,
                   plans + i * plan_bytes);
      data::ImagePlan plan;
      std::memcpy(&plan, plans + i * plan_bytes, sizeof plan);
      expected += data::planned_image_bytes(plan, type);
    }
    void* const out = memory.array("out", kImages * 3 * kSizePx * kSizePx * 4);
    const MovedBytes counted = memory.count([&] {
      data::make_planned_images({pixels, offsets, widths, kStoredPx},
                                {plans, plan_bytes, kImages, kSizePx}, {{0, 0, 0}, {1, 1, 1}}, type,
                                out, nullptr);
    });
    EXPECT_EQ(counted.written, kImages * 3 * kSizePx * kSizePx * (type == PixelType::f32 ? 4 : 2));
    EXPECT_NEAR(static_cast<double>(counted.total()), static_cast<double>(expected),
                0.05 * static_cast<double>(expected));
  }
}

/// Ops of a network whose activations have one shape, as the cost model traces them.
struct TracedLayer {
  Layer layer;

  [[nodiscard]] tools::TracedTensor activation(int side) const {
    return {.sizes = {layer.images, layer.channels, side, side}, .per_sample = true};
  }
  [[nodiscard]] tools::TracedTensor filter(std::int64_t in) const {
    return {.sizes = {layer.channels, in, 3, 3}};
  }
  [[nodiscard]] tools::TracedOp op(const char* name, std::size_t inputs, bool backward) const {
    return {.name = name,
            .phase = backward ? tools::StepPhase::backward : tools::StepPhase::forward,
            .inputs = std::vector<tools::TracedTensor>(inputs, activation(layer.side)),
            .outputs = {activation(layer.side)}};
  }
  /// @param in input channels of the filter: 1 for a blur
  [[nodiscard]] tools::TracedOp convolution(std::int64_t in, int side_out) const {
    return {.name = "convolution",
            .inputs = {activation(layer.side), filter(in)},
            .outputs = {activation(side_out)}};
  }
  [[nodiscard]] tools::TracedOp convolution_gradient(std::int64_t in, int side_out) const {
    return {.name = "convolution_backward",
            .phase = tools::StepPhase::backward,
            .inputs = {activation(side_out), activation(layer.side), filter(in)},
            .outputs = {activation(layer.side), {.defined = false}, {.defined = false}}};
  }
  [[nodiscard]] tools::TracedOp pool(bool backward) const {
    tools::TracedTensor indices = activation(layer.side / 2);
    indices.is_float = false;
    indices.element_bytes = 8;
    tools::TracedOp traced{.name = "max_pool2d_with_indices",
                           .inputs = {activation(layer.side)},
                           .outputs = {activation(layer.side / 2), indices},
                           .integers = {3, 3, 2, 2, 1, 1, 1, 1}};
    if (!backward) return traced;
    traced.name = "max_pool2d_with_indices_backward";
    traced.phase = tools::StepPhase::backward;
    traced.inputs = {activation(layer.side / 2), activation(layer.side), indices};
    traced.outputs = {activation(layer.side)};
    return traced;
  }
};

/// The bytes that the cost model charges for the ops in fp16, without convolutions and casts.
double modelled(const std::vector<tools::TracedOp>& ops) {
  using tools::CostPrecision;
  double bytes = 0;
  for (const tools::OpCost& op :
       tools::fused_cost(tools::reference_cost(ops, CostPrecision::fp16), CostPrecision::fp16)) {
    if (op.kind != tools::OpKind::convolution && op.kind != tools::OpKind::cast) bytes += op.bytes;
  }
  return bytes;
}

TEST_F(KernelBytesTest, TheCostModelChargesWhatABlockMoves) {
  for (const Layer& layer : kLayers) {
    const auto counted = [&](const NormOptions& options, bool backward) {
      Norm norm(layer, ActivationType::f16, options);
      return (backward ? norm.backward() : norm.forward()).total();
    };
    const TracedLayer of{layer};
    const int side = layer.side;
    const double model = modelled(
        {of.convolution(layer.channels, side), of.op("native_batch_norm", 1, false),
         of.op("relu_", 1, false), of.convolution(layer.channels, side),
         of.op("native_batch_norm", 1, false), of.op("add_", 2, false), of.op("relu_", 1, false),
         of.convolution_gradient(layer.channels, side), of.op("add", 2, true),
         of.op("threshold_backward", 2, true), of.op("native_batch_norm_backward", 2, true),
         of.convolution_gradient(layer.channels, side), of.op("threshold_backward", 2, true),
         of.op("native_batch_norm_backward", 2, true)});
    const NormOptions first{true, false, false, ""}, last{true, true, true, ""};
    expect_within(
        counted(first, false) + counted(last, false) + counted(last, true) + counted(first, true),
        model, kOfFunctions, "norms of a block, " + name_of(layer, ActivationType::f16));
  }
}

TEST_F(KernelBytesTest, TheCostModelChargesWhatPoolsAndBlursMove) {
  // The tests Blur, MaxPool and NormPool compare these functions with the counted bytes.
  constexpr auto kType = ActivationType::f16;
  for (const Layer& layer : kLayers) {
    const TracedLayer of{layer};
    const int side = layer.side, half = side / 2;
    const BlurShape blur{layer.images, side, side, layer.channels, kType};
    EXPECT_EQ(modelled({of.convolution(1, side), of.convolution_gradient(1, side)}),
              static_cast<double>(2 * blur_bytes(blur, true, false)));
    EXPECT_EQ(modelled({of.convolution(1, half), of.convolution_gradient(1, half)}),
              static_cast<double>(2 * blur_bytes(blur, false, true)));
    const MaxPoolShape pool{layer.images, side, side, layer.channels, kType};
    EXPECT_EQ(modelled({of.pool(false), of.pool(true)}),
              static_cast<double>(2 * max_pool_bytes(pool)));
    EXPECT_EQ(modelled({of.op("native_batch_norm", 1, false), of.op("relu_", 1, false),
                        of.pool(false), of.pool(true), of.op("threshold_backward", 2, true),
                        of.op("native_batch_norm_backward", 2, true)}),
              static_cast<double>(norm_pool_forward_bytes(pool) + norm_pool_backward_bytes(pool)));
    const std::vector<tools::TracedOp> block = {of.op("native_batch_norm", 1, false),
                                                of.op("add_", 2, false), of.op("relu_", 1, false)};
    std::vector<tools::TracedOp> next = block;
    for (const tools::TracedOp& op :
         {of.convolution(1, side), of.convolution(1, half), of.convolution_gradient(1, half),
          of.convolution_gradient(1, side), of.op("add", 2, true)})
      next.push_back(op);
    EXPECT_EQ(modelled(next) - modelled(block),
              static_cast<double>(2 * blur_bytes(blur, true, true)));
  }
}

}  // namespace
}  // namespace precast::models
