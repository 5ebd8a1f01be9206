#include "tools/bench/cost/step_cost.h"

#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "models/cuda/bytes_moved.h"

namespace precast::tools {
namespace {

constexpr std::int64_t kBatch = 4, kIn = 64, kOut = 128, kSide = 10;
/// Bytes of one pass over an activation [4, 128, 10, 10] in half precision.
constexpr double kPass = 4 * 128 * 10 * 10 * 2;

TracedTensor activation(std::int64_t channels, std::int64_t side = kSide) {
  return {.sizes = {kBatch, channels, side, side}, .per_sample = true};
}
TracedTensor parameter(std::vector<std::int64_t> sizes) {
  return {.sizes = std::move(sizes)};
}

TracedOp convolution() {
  return {.name = "convolution",
          .inputs = {activation(kIn), parameter({kOut, kIn, 3, 3})},
          .outputs = {activation(kOut)}};
}
TracedOp convolution_backward(bool input_gradient) {
  TracedOp op{.name = "convolution_backward",
              .phase = StepPhase::backward,
              .inputs = {activation(kOut), activation(kIn), parameter({kOut, kIn, 3, 3})},
              .outputs = {activation(kIn), parameter({kOut, kIn, 3, 3}), {}}};
  op.outputs[0].defined = input_gradient;
  op.outputs[2].defined = false;
  return op;
}
TracedOp elementwise(const char* name, std::size_t inputs, StepPhase phase = StepPhase::forward) {
  return {.name = name,
          .phase = phase,
          .inputs = std::vector<TracedTensor>(inputs, activation(kOut)),
          .outputs = {activation(kOut)}};
}

/// The bytes of an op that has exactly one cost.
double bytes_of(const TracedOp& op, CostPrecision precision = CostPrecision::fp16) {
  const auto costs = costs_of(op, precision);
  EXPECT_EQ(costs.size(), 1U) << op.name;
  return costs.at(0).bytes;
}

constexpr double kWeights = 128. * 64 * 9;
constexpr double kConvolutionBytes = (4. * 64 * 100 + 4. * 128 * 100 + kWeights) * 2;

TEST(OpCostTest, AConvolutionCountsItsProductItsTensorsAndTheCastOfItsWeights) {
  const auto half = costs_of(convolution(), CostPrecision::fp16);
  ASSERT_EQ(half.size(), 2U);
  EXPECT_EQ(half[0].kind, OpKind::cast);
  EXPECT_DOUBLE_EQ(half[0].bytes, kWeights * 6);
  EXPECT_EQ(half[1].kind, OpKind::convolution);
  EXPECT_DOUBLE_EQ(half[1].flops, 2. * 4 * 100 * 128 * 64 * 9);
  EXPECT_DOUBLE_EQ(half[1].bytes, kConvolutionBytes);
  const auto full = costs_of(convolution(), CostPrecision::fp32);
  ASSERT_EQ(full.size(), 1U);
  EXPECT_DOUBLE_EQ(full[0].bytes, 2 * kConvolutionBytes);
}

TEST(OpCostTest, TheFirstConvolutionHasNoInputGradient) {
  const auto both = costs_of(convolution_backward(true), CostPrecision::fp32);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_DOUBLE_EQ(both[0].flops, both[1].flops);
  EXPECT_FALSE(both[0].gemm.splits_inner);
  const auto first = costs_of(convolution_backward(false), CostPrecision::fp32);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(first[0].gemm.splits_inner);
}

TEST(OpCostTest, AStrideComputesAsManyProductsBackwardsAsForwards) {
  TracedOp op = convolution_backward(true);
  op.inputs[0] = activation(kOut, kSide / 2);
  const auto costs = costs_of(op, CostPrecision::fp32);
  EXPECT_DOUBLE_EQ(costs.at(0).flops, 2. * 4 * 25 * 128 * 64 * 9);
  const Gemm& gemm = costs[0].gemm;
  EXPECT_DOUBLE_EQ(2 * gemm.rows * gemm.columns * gemm.inner, costs[0].flops);
}

TEST(OpCostTest, ATransposedConvolutionCostsAsMuchAsTheGradientOfTheConvolutionBack) {
  // From 64 channels at 5 x 5 to 128 at 10 x 10; back with a stride of 2.
  const TracedTensor small = activation(kIn, kSide / 2), large = activation(kOut);
  const TracedTensor weight = parameter({kIn, kOut, 3, 3});
  const TracedOp up{
      .name = "convolution", .inputs = {small, weight}, .outputs = {large}, .transposed = true};
  const TracedOp up_backward{.name = "convolution_backward",
                             .phase = StepPhase::backward,
                             .inputs = {large, small, weight},
                             .outputs = {small, weight},
                             .transposed = true};
  const TracedOp down{.name = "convolution", .inputs = {large, weight}, .outputs = {small}};
  const TracedOp down_backward{.name = "convolution_backward",
                               .phase = StepPhase::backward,
                               .inputs = {small, large, weight},
                               .outputs = {large, weight}};
  const auto costs = [](const TracedOp& op) { return costs_of(op, CostPrecision::fp32); };
  const auto expect_equal = [](const OpCost& a, const OpCost& b) {
    EXPECT_DOUBLE_EQ(a.flops, 2. * 4 * 25 * 64 * 128 * 9);
    EXPECT_DOUBLE_EQ(a.flops, b.flops);
    EXPECT_DOUBLE_EQ(a.bytes, b.bytes);
    EXPECT_DOUBLE_EQ(a.gemm.rows * a.gemm.columns, b.gemm.rows * b.gemm.columns);
    EXPECT_DOUBLE_EQ(a.gemm.inner, b.gemm.inner);
    EXPECT_EQ(a.gemm.splits_inner, b.gemm.splits_inner);
  };
  expect_equal(costs(up).at(0), costs(down_backward).at(0));
  EXPECT_DOUBLE_EQ(costs(up)[0].elements, large.elements());
  EXPECT_EQ(costs(up)[0].input, small.sizes);
  EXPECT_EQ(costs(up)[0].result, large.sizes);
  expect_equal(costs(up_backward).at(0), costs(down).at(0));
  expect_equal(costs(up_backward).at(1), costs(down_backward).at(1));
}

TEST(OpCostTest, DepthwiseConvolutionsUseNoTensorCores) {
  const TracedOp op{.name = "convolution",
                    .inputs = {activation(kOut), parameter({kOut, 1, 3, 3})},
                    .outputs = {activation(kOut)}};
  const auto costs = costs_of(op, CostPrecision::fp16);
  ASSERT_EQ(costs.size(), 1U);
  EXPECT_EQ(costs[0].kind, OpKind::depthwise);
  EXPECT_DOUBLE_EQ(costs[0].flops, 2. * 4 * 100 * 128 * 9);
  EXPECT_EQ(costs[0].gemm.rows, 0);
}

TEST(OpCostTest, ATrainedDepthwiseWeightIsCastAndItsGradientIsCastBack) {
  TracedTensor weight = parameter({kOut, 1, 3, 3});
  const TracedOp backward{.name = "convolution_backward",
                          .phase = StepPhase::backward,
                          .inputs = {activation(kOut), activation(kOut), weight},
                          .outputs = {activation(kOut), weight}};
  weight.needs_gradient = true;
  const TracedOp forward{
      .name = "convolution", .inputs = {activation(kOut), weight}, .outputs = {activation(kOut)}};
  for (const TracedOp& op : {forward, backward}) {
    double cast = 0;
    for (const OpCost& cost : costs_of(op, CostPrecision::fp16))
      if (cost.kind == OpKind::cast) cast += cost.bytes;
    EXPECT_DOUBLE_EQ(cast, kOut * 9 * 6.) << op.name;
    for (const OpCost& cost : costs_of(op, CostPrecision::fp32))
      EXPECT_EQ(cost.kind, OpKind::depthwise) << op.name;
  }
}

TEST(OpCostTest, PassesOverActivations) {
  EXPECT_DOUBLE_EQ(bytes_of(elementwise("relu_", 1)), 2 * kPass);
  EXPECT_DOUBLE_EQ(bytes_of(elementwise("add_", 2)), 3 * kPass);
  EXPECT_DOUBLE_EQ(bytes_of(elementwise("threshold_backward", 2, StepPhase::backward)), 3 * kPass);
  EXPECT_DOUBLE_EQ(bytes_of(elementwise("native_batch_norm", 1)), 3 * kPass);
  EXPECT_DOUBLE_EQ(bytes_of(elementwise("native_batch_norm_backward", 2, StepPhase::backward)),
                   5 * kPass);
  EXPECT_DOUBLE_EQ(bytes_of(elementwise("relu_", 1), CostPrecision::fp32), 4 * kPass);
  EXPECT_DOUBLE_EQ(bytes_of(elementwise("_log_softmax", 1)), 4 * kPass) << "losses are fp32";
}

TEST(OpCostTest, IndicesOfAPoolAreInt64AndItsInputIsNotReadBackwards) {
  TracedOp op{.name = "max_pool2d_with_indices",
              .inputs = {activation(kOut)},
              .outputs = {activation(kOut, kSide / 2), activation(kOut, kSide / 2)}};
  op.outputs[1].is_float = false;
  op.outputs[1].element_bytes = 8;
  EXPECT_DOUBLE_EQ(bytes_of(op), kPass + kPass / 4 + kPass);
  const TracedOp back{.name = "max_pool2d_with_indices_backward",
                      .phase = StepPhase::backward,
                      .inputs = {op.outputs[0], op.inputs[0], op.outputs[1]},
                      .outputs = {activation(kOut)}};
  EXPECT_DOUBLE_EQ(bytes_of(back), kPass / 4 + kPass + kPass);
}

TEST(OpCostTest, ParametersAreFp32AndBf16BatchNormTakesThreeKernels) {
  const TracedOp norm{.name = "native_batch_norm",
                      .inputs = {activation(kOut), parameter({kOut}), parameter({kOut})},
                      .outputs = {activation(kOut), parameter({kOut})}};
  EXPECT_DOUBLE_EQ(bytes_of(norm), 3 * kPass + 3 * kOut * 4);
  EXPECT_EQ(costs_of(norm, CostPrecision::fp16).at(0).launches, 1);
  EXPECT_EQ(costs_of(norm, CostPrecision::bf16).at(0).launches, 3);
  TracedOp layer_norm = norm;
  layer_norm.name = "native_layer_norm";
  for (const CostPrecision precision : {CostPrecision::fp16, CostPrecision::bf16})
    EXPECT_EQ(costs_of(layer_norm, precision).at(0).launches, 2);
}

/// A block: convolution, norm, ReLU, convolution, norm, shortcut, ReLU; and its backward pass.
std::vector<TracedOp> block() {
  const auto back = [](const char* name, std::size_t inputs) {
    return elementwise(name, inputs, StepPhase::backward);
  };
  return {convolution(),
          elementwise("native_batch_norm", 1),
          elementwise("relu_", 1),
          convolution(),
          elementwise("native_batch_norm", 1),
          elementwise("add_", 2),
          elementwise("relu_", 1),
          back("threshold_backward", 2),
          back("native_batch_norm_backward", 2),
          convolution_backward(true),
          back("threshold_backward", 2),
          back("native_batch_norm_backward", 2)};
}

/// The bytes that fused kernels move for a norm of [4, 128, 10, 10], and for its gradient.
constexpr models::BatchNormShape kNorm{400, kOut, FloatType::f16};
double norm_bytes(bool residual) {
  return static_cast<double>(batch_norm_forward_bytes(kNorm, residual));
}
double norm_gradient_bytes(bool residual, bool fork = false) {
  return static_cast<double>(batch_norm_backward_bytes(kNorm, residual, fork));
}

StepCost fused(const std::vector<TracedOp>& ops, CostPrecision precision = CostPrecision::fp16) {
  return fused_cost(reference_cost(ops, precision), precision);
}
/// The bytes of all ops except convolutions and casts.
double bytes_between_products(const StepCost& cost) {
  double bytes = 0;
  for (const OpCost& op : cost)
    if (op.kind != OpKind::convolution && op.kind != OpKind::cast) bytes += op.bytes;
  return bytes;
}

TEST(FusedCostTest, ANormTheAdditionAndReluAreOneOpOfThreeKernels) {
  const CostTotal before = total_of(reference_cost(block(), CostPrecision::fp16));
  const CostTotal after = total_of(fused(block()));
  EXPECT_DOUBLE_EQ(after.flops, before.flops);
  EXPECT_DOUBLE_EQ(bytes_between_products(fused(block())), norm_bytes(false) + norm_bytes(true) +
                                                               norm_gradient_bytes(true) +
                                                               norm_gradient_bytes(false));
  // Each of the two norms and of their gradients needs two more kernels; five other kernels are no
  // longer needed.
  EXPECT_EQ(after.launches, before.launches + 4 * 2 - 5);
}

TEST(FusedCostTest, AReluWithoutANormIsNotFused) {
  const std::vector<TracedOp> ops = {convolution(), elementwise("relu_", 1),
                                     elementwise("threshold_backward", 2, StepPhase::backward)};
  const CostTotal before = total_of(reference_cost(ops, CostPrecision::fp16));
  const CostTotal after = total_of(fused(ops));
  EXPECT_DOUBLE_EQ(after.bytes, before.bytes);
  EXPECT_EQ(after.launches, before.launches);
}

TEST(FusedCostTest, ANormWithoutAReluIsFused) {
  const std::vector<TracedOp> ops = {convolution(), elementwise("native_batch_norm", 1)};
  EXPECT_DOUBLE_EQ(bytes_between_products(fused(ops)), norm_bytes(false));
}

/// The backward pass of a convolution, which gives the gradient of one branch of a block, and the
/// addition of the gradient of the other branch.
std::vector<TracedOp> sum_of_gradients(std::int64_t side) {
  TracedOp of_branch = convolution_backward(true);
  of_branch.inputs[1] = of_branch.outputs[0] = activation(kOut, side);
  of_branch.inputs[2] = of_branch.outputs[1] = parameter({kOut, kOut, 3, 3});
  TracedOp sum = elementwise("add", 2, StepPhase::backward);
  sum.inputs = {activation(kOut, side), activation(kOut, side)};
  sum.outputs = {activation(kOut, side)};
  return {of_branch, sum};
}

/// The end of a block with a projection.
TEST(FusedCostTest, TheNormOfAProjectionIsPartOfTheBranchsNorm) {
  const auto back = [](const char* name) { return elementwise(name, 2, StepPhase::backward); };
  std::vector<TracedOp> ops = {convolution(),
                               convolution(),
                               elementwise("native_batch_norm", 1),
                               elementwise("native_batch_norm", 1),
                               elementwise("add_", 2),
                               elementwise("relu_", 1),
                               back("threshold_backward"),
                               back("native_batch_norm_backward"),
                               back("native_batch_norm_backward")};
  const auto bytes = [](bool fork) {
    return static_cast<double>(dual_norm_forward_bytes(kNorm) +
                               dual_norm_backward_bytes(kNorm, fork));
  };
  EXPECT_DOUBLE_EQ(bytes_between_products(fused(ops)), bytes(false));
  const int convolutions = total_of(fused({convolution(), convolution()})).launches;
  EXPECT_EQ(total_of(fused(ops)).launches, convolutions + 5 + 4);
  const std::vector<TracedOp> sum = sum_of_gradients(kSide);
  ops.insert(ops.begin() + 6, sum.begin(), sum.end());
  EXPECT_DOUBLE_EQ(bytes_between_products(fused(ops)), bytes(true));
}

TEST(FusedCostTest, TheNormThatEndsABlockAddsTheGradientsOfTheNextOne) {
  std::vector<TracedOp> ops = block();
  const std::vector<TracedOp> sum = sum_of_gradients(kSide);
  ops.insert(ops.begin() + 7, sum.begin(), sum.end());
  EXPECT_DOUBLE_EQ(bytes_between_products(fused(ops)), norm_bytes(false) + norm_bytes(true) +
                                                           norm_gradient_bytes(true, true) +
                                                           norm_gradient_bytes(false));
}

TEST(FusedCostTest, OtherSumsOfGradientsAreSeparateOps) {
  const StepCost reference = reference_cost(sum_of_gradients(kSide), CostPrecision::fp16);
  EXPECT_DOUBLE_EQ(total_of(fused(sum_of_gradients(kSide))).bytes, total_of(reference).bytes);
}

/// A max pool with square windows, and its gradient.
std::vector<TracedOp> pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  TracedOp op{.name = "max_pool2d_with_indices",
              .inputs = {activation(kOut)},
              .outputs = {activation(kOut, kSide / 2), activation(kOut, kSide / 2)},
              .integers = {kernel, kernel, stride, stride, padding, padding, 1}};
  op.outputs[1].is_float = false;
  op.outputs[1].element_bytes = 8;
  const TracedOp back{.name = "max_pool2d_with_indices_backward",
                      .phase = StepPhase::backward,
                      .inputs = {op.outputs[0], op.inputs[0], op.outputs[1]},
                      .outputs = {activation(kOut)},
                      .integers = op.integers};
  return {op, back};
}

TEST(FusedCostTest, IndicesOfTheFusedPoolAreOneByte) {
  EXPECT_DOUBLE_EQ(total_of(fused(pool(3, 2, 1))).bytes, 2 * (kPass + kPass / 4 + kPass / 8));
  const StepCost other = reference_cost(pool(2, 2, 0), CostPrecision::fp16);
  EXPECT_DOUBLE_EQ(total_of(fused(pool(2, 2, 0))).bytes, total_of(other).bytes);
}

TEST(FusedCostTest, APoolAfterANormAndAReluIsPartOfTheNorm) {
  const std::vector<TracedOp> both = pool(3, 2, 1);
  std::vector<TracedOp> ops = {elementwise("native_batch_norm", 1),
                               elementwise("relu_", 1),
                               both[0],
                               both[1],
                               elementwise("threshold_backward", 2, StepPhase::backward),
                               elementwise("native_batch_norm_backward", 2, StepPhase::backward)};
  const models::MaxPoolShape shape{4, kSide, kSide, kOut, FloatType::f16};
  ASSERT_EQ(norm_shape(shape).rows, kNorm.rows);
  const auto bytes = [&](bool fork) {
    return static_cast<double>(norm_pool_forward_bytes(shape) +
                               norm_pool_backward_bytes(shape, fork));
  };
  EXPECT_DOUBLE_EQ(bytes_between_products(fused(ops)), bytes(false));
  EXPECT_EQ(total_of(fused(ops)).launches, 6);
  const std::vector<TracedOp> sum = sum_of_gradients(kSide / 2);
  ops.insert(ops.begin() + 3, sum.begin(), sum.end());
  EXPECT_DOUBLE_EQ(bytes_between_products(fused(ops)), bytes(true));
}

TracedOp filter(std::int64_t side_out) {
  return {.name = "convolution",
          .inputs = {activation(kOut), parameter({kOut, 1, 3, 3})},
          .outputs = {activation(kOut, side_out)}};
}
/// @param trained whether the filter gets a gradient
TracedOp filter_backward(std::int64_t side_out, bool trained = false) {
  TracedOp op{.name = "convolution_backward",
              .phase = StepPhase::backward,
              .inputs = {activation(kOut, side_out), activation(kOut), parameter({kOut, 1, 3, 3})},
              .outputs = {activation(kOut), parameter({kOut, 1, 3, 3}), {}}};
  op.outputs[1].defined = trained;
  op.outputs[2].defined = false;
  return op;
}

TEST(FusedCostTest, ABlurMovesItsImagesAndATrainedFilterIsNone) {
  EXPECT_DOUBLE_EQ(total_of(fused({filter(kSide), filter_backward(kSide)})).bytes, 4 * kPass);
  EXPECT_DOUBLE_EQ(total_of(fused({filter(kSide / 2), filter_backward(kSide / 2)})).bytes,
                   2 * 1.25 * kPass);
  const std::vector<TracedOp> trained = {filter(kSide), filter_backward(kSide, true)};
  EXPECT_DOUBLE_EQ(total_of(fused(trained)).bytes,
                   total_of(reference_cost(trained, CostPrecision::fp16)).bytes);
}

TEST(FusedCostTest, TheTwoConvolutionsThatReadABlocksResultShareABlur) {
  std::vector<TracedOp> ops = block();
  const std::vector<TracedOp> blurs = {filter(kSide), filter(kSide / 2), filter_backward(kSide / 2),
                                       filter_backward(kSide),
                                       elementwise("add", 2, StepPhase::backward)};
  ops.insert(ops.begin() + 7, blurs.begin(), blurs.end());
  EXPECT_DOUBLE_EQ(bytes_between_products(fused(ops)) - bytes_between_products(fused(block())),
                   2 * 2.25 * kPass);
  // Within a block, another convolution reads the result of the first norm.
  ops = block();
  ops.insert(ops.begin() + 9, blurs.begin() + 2, blurs.begin() + 4);
  ops.insert(ops.begin() + 3, blurs.begin(), blurs.begin() + 2);
  EXPECT_DOUBLE_EQ(bytes_between_products(fused(ops)) - bytes_between_products(fused(block())),
                   2 * (2 + 1.25) * kPass);
}

const Card& card(const std::string& name) {
  return *parse_cards("card", name).at(0);
}

TEST(StepCostTest, TimeIsTheLongerOfComputingAndMoving) {
  const Card& a100 = card("a100_80gb");
  OpCost moving{.bytes = 1732e9};
  EXPECT_NEAR(seconds_on(a100, moving, CostPrecision::fp16), 1 / kAchievedFraction, 1e-9);
  // Complete tiles in complete waves: 216 tiles of 128 x 64.
  OpCost computing{.gemm = {128 * 108, 128, 1e6, 1, false}};
  const double flops = 2 * 128. * 108 * 128 * 1e6;
  EXPECT_NEAR(seconds_on(a100, computing, CostPrecision::fp16),
              flops / 271.2e12 / kAchievedFraction, 1e-9);
  EXPECT_GT(seconds_on(a100, computing, CostPrecision::fp32),
            seconds_on(a100, computing, CostPrecision::fp16));
  computing.gemm.rows += 1;
  EXPECT_NEAR(seconds_on(a100, computing, CostPrecision::fp16),
              2 * flops / 271.2e12 / kAchievedFraction, 1e-9)
      << "an incomplete wave takes as long as a complete one";
  EXPECT_DOUBLE_EQ(seconds_on(a100, {.bytes = 8, .launches = 3}, CostPrecision::fp16),
                   3 * kMinKernelSeconds);
}

TEST(StepCostTest, FasterCardsTakeLessTimeAndSeveralGpusMore) {
  const StepCost cost = reference_cost(block(), CostPrecision::fp16);
  double last = 1;
  for (const char* name : {"v100", "a100_40gb", "a100_80gb", "h100", "h200"}) {
    StepCost large = cost;
    for (OpCost& op : large) op.bytes *= 1e4;
    const double seconds = step_seconds(card(name), large, CostPrecision::fp16, 1);
    EXPECT_LT(seconds, last) << name;
    last = seconds;
  }
  const Card& h200 = card("h200");
  EXPECT_NEAR(step_seconds(h200, cost, CostPrecision::fp16, 8) * kNodeEfficiency,
              step_seconds(h200, cost, CostPrecision::fp16, 1), 1e-12);
}

TEST(StepCostTest, TheJsonHasTotalsKindsAndCards) {
  const StepCost cost = reference_cost(block(), CostPrecision::fp16);
  const auto json = describe_cost(cost, CostPrecision::fp16, parse_cards("card", "h100,h200"), 1,
                                  static_cast<double>(kBatch));
  EXPECT_EQ(json.at("launches"), total_of(cost).launches);
  double bytes = 0;
  for (const auto& kind : json.at("kinds")) {
    bytes += kind.at("bytes").get<double>();
    for (const char* key : {"kind", "phase", "calls", "flops", "launches"})
      EXPECT_TRUE(kind.contains(key)) << key;
  }
  EXPECT_DOUBLE_EQ(bytes, json.at("bytes").get<double>());
  ASSERT_EQ(json.at("cards").size(), 2U);
  const auto& h200 = json.at("cards")[1];
  EXPECT_EQ(h200.at("card"), "h200");
  EXPECT_EQ(h200.at("shares").size(), json.at("kinds").size());
  EXPECT_NEAR(h200.at("images_per_second").get<double>() * h200.at("ms").get<double>(),
              kBatch * 1e3, 1e-6);
  EXPECT_EQ(describe_ops(cost).size(), cost.size());
}

TEST(CardsTest, NamesAreFoundAndMistakesNamed) {
  EXPECT_EQ(parse_cards("card", "all").size(), cards().size());
  EXPECT_THROW(static_cast<void>(parse_cards("card", "h300")), ConfigError);
  EXPECT_THROW(static_cast<void>(parse_cards("card", "h100,")), ConfigError);
}

TEST(CardsTest, OneOtherCardCalibratesAndFourFiguresCheck) {
  int calibrating = 0;
  for (const PublishedSpeed& speed : published_speeds()) {
    calibrating += speed.calibrates ? 1 : 0;
    EXPECT_EQ(speed.calibrates, speed.card == "v100") << speed.source;
  }
  EXPECT_EQ(calibrating, 1);
  EXPECT_TRUE(is_checked(card("a100_40gb")));
  EXPECT_TRUE(is_checked(card("a100_80gb")));
  EXPECT_TRUE(is_checked(card("h100")));
  EXPECT_FALSE(is_checked(card("h200"))) << "no published speed was found";
  EXPECT_FALSE(is_checked(card("v100"))) << "its published speed calibrates the model";
  EXPECT_EQ(published_speeds().size(), 5U);
}

}  // namespace
}  // namespace precast::tools
