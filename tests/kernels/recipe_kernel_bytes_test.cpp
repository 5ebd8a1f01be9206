// Counts on the host (counted_memory.h) the bytes that the kernels of losses, metrics and
// optimisers move, and compares them with the functions that kernel_bench uses and with the figures
// in the comments of the kernels' headers.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "recipes/cuda/cross_entropy.h"
#include "recipes/cuda/sgd.h"
#include "recipes/cuda/top_k.h"
#include "tests/support/counted_memory.h"

namespace precast::recipes {
namespace {

using test::CountedMemory;
using test::MovedBytes;

constexpr FloatType kTypes[] = {FloatType::f16, FloatType::bf16, FloatType::f32};
/// Relative tolerances. The functions leave out single values such as the loss; the comments leave
/// out labels and partial sums.
constexpr double kOfFunctions = 0.001, kOfComments = 0.05;

const char* name_of(FloatType type) {
  switch (type) {
    case FloatType::f16:
      return "f16";
    case FloatType::bf16:
      return "bf16";
    case FloatType::f32:
      break;
  }
  return "f32";
}

/// @param comment the bytes according to the header's comment
void expect_bytes(const MovedBytes& counted, std::size_t function, double comment,
                  const std::string& what) {
  const auto total = static_cast<double>(counted.total());
  const auto expected = static_cast<double>(function);
  fmt::print("{:<58} {:>9} read {:>9} written; {:.4f} of the function's\n", what, counted.read,
             counted.written, total / expected);
  EXPECT_NEAR(total, expected, kOfFunctions * expected) << what;
  EXPECT_NEAR(total, comment, kOfComments * comment) << what;
}

struct LogitsCase {
  LogitsShape shape;
  std::string name;
};
/// Logits of ImageNet and, with rows that do not fit into shared memory, of ImageNet-21k.
std::vector<LogitsCase> logits_cases() {
  std::vector<LogitsCase> cases;
  for (const FloatType type : kTypes) {
    for (const auto& [rows, classes] : {std::pair{64, 1000}, {8, 21841}})
      cases.push_back(
          {{rows, classes, type}, fmt::format("{} x {} {}", rows, classes, name_of(type))});
  }
  return cases;
}

TEST(RecipeKernelBytesTest, CrossEntropy) {
  for (const auto& [shape, name] : logits_cases()) {
    for (const bool gradient : {false, true}) {
      CountedMemory memory;
      const auto rows = static_cast<std::size_t>(shape.rows);
      const CrossEntropyCall call{
          .logits = memory.array("logits", logits_bytes(shape)),
          .labels = memory.array<std::int64_t>("labels", rows),
          .label_smoothing = 0.1F,
          .loss = memory.array<float>("loss", 1),
          .d_logits = gradient ? memory.array("d_logits", logits_bytes(shape)) : nullptr,
          .workspace = memory.array("workspace", cross_entropy_workspace_bytes(shape))};
      expect_bytes(memory.count([&] { cross_entropy(shape, call, nullptr); }),
                   cross_entropy_bytes(shape, gradient),
                   (gradient ? 2. : 1.) * static_cast<double>(logits_bytes(shape)),
                   fmt::format("cross entropy{}, {}", gradient ? " and gradient" : "", name));
    }
  }
}

TEST(RecipeKernelBytesTest, TopK) {
  for (const auto& [shape, name] : logits_cases()) {
    CountedMemory memory;
    const auto rows = static_cast<std::size_t>(shape.rows);
    const TopKCall call{.logits = memory.array("logits", logits_bytes(shape)),
                        .labels = memory.array<std::int64_t>("labels", rows),
                        .k = 5,
                        .count = memory.array<double>("count", 1),
                        .workspace = memory.array("workspace", top_k_workspace_bytes(shape))};
    expect_bytes(memory.count([&] { count_top_k(shape, call, nullptr); }), top_k_bytes(shape),
                 static_cast<double>(logits_bytes(shape)), "top 5, " + name);
  }
}

/// The sizes of a ResNet's tensors: filters, and vectors that are smaller than a chunk.
constexpr std::int64_t kSizes[] = {
    64 * 3 * 7 * 7, 64, 64, 64 * 64 * 3 * 3, 64, 64, 128 * 64 * 3 * 3, 128, 1000 * 64, 1000};

struct Parameters {
  Parameters(CountedMemory& memory, FloatType gradients, bool momentum) {
    for (const std::int64_t size : kSizes) {
      const auto count = static_cast<std::size_t>(size);
      tensors.push_back({.parameter = memory.array<float>("parameter", count),
                         .gradient = memory.array("gradient", count * bytes_of(gradients)),
                         .velocity = momentum ? memory.array<float>("velocity", count) : nullptr,
                         .count = size,
                         .weight_decay = 1e-4F,
                         .gradient_type = gradients});
      elements += static_cast<double>(size);
    }
  }
  std::vector<SgdTensor> tensors;
  double elements = 0;
};

TEST(RecipeKernelBytesTest, SgdStep) {
  for (const FloatType type : kTypes) {
    for (const bool momentum : {false, true}) {
      CountedMemory memory;
      const Parameters parameters(memory, type, momentum);
      const SgdStep step{.lr = 0.1F,
                         .momentum = momentum ? 0.9F : 0,
                         .clip = memory.array<float>("clip", 1),
                         .found_inf = memory.array<float>("found_inf", 1)};
      const double floats = momentum ? 16 : 8;
      expect_bytes(
          memory.count([&] { sgd_step(parameters.tensors, step, nullptr); }),
          sgd_bytes(parameters.tensors),
          (floats + static_cast<double>(bytes_of(type))) * parameters.elements,
          fmt::format("SGD{}, gradients {}", momentum ? " with momentum" : "", name_of(type)));
    }
  }
}

TEST(RecipeKernelBytesTest, GradientNorm) {
  for (const FloatType type : kTypes) {
    CountedMemory memory;
    const Parameters parameters(memory, type, /*momentum=*/false);
    const GradientNorm call{
        .norm = memory.array<float>("norm", 1),
        .clip = memory.array<float>("clip", 1),
        .found_inf = memory.array<float>("found_inf", 1),
        .workspace = memory.array("workspace", gradient_norm_workspace_bytes(parameters.tensors))};
    expect_bytes(memory.count([&] { gradient_norm(parameters.tensors, call, nullptr); }),
                 gradient_norm_bytes(parameters.tensors),
                 static_cast<double>(bytes_of(type)) * parameters.elements,
                 fmt::format("gradient norm, gradients {}", name_of(type)));
  }
}

}  // namespace
}  // namespace precast::recipes
