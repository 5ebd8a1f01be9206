#include "framework/engine/evaluator.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <tuple>

#include "framework/core/error.h"
#include "framework/core/failpoint.h"
#include "framework/engine/precision.h"

namespace precast::engine {
namespace {

constexpr std::int64_t kTopK = 5;
constexpr std::int64_t kWidthAxis = 3;

}  // namespace

double EvalResult::top_1() const {
  return samples == 0 ? 0 : static_cast<double>(top_1_correct) / static_cast<double>(samples);
}

double EvalResult::top_5() const {
  return samples == 0 ? 0 : static_cast<double>(top_5_correct) / static_cast<double>(samples);
}

at::Tensor Evaluator::logits(Model& model, const at::Tensor& images) const {
  const AutocastScope autocast(options_.device, options_.precision);
  const at::Tensor input = options_.channels_last ? images : images.contiguous();
  at::Tensor output = model.forward(input);
  if (options_.flip_tta) output = output + model.forward(at::flip(input, {kWidthAxis}));
  return output;
}

void Evaluator::count(Model& model, const Loss& loss, Batch& batch, Counts& counts) const {
  const at::Tensor output = logits(model, batch.images());
  const at::Tensor labels = batch.labels();
  const std::int64_t k = std::min(kTopK, output.size(1));
  const at::Tensor best = std::get<1>(at::topk(output, k, 1));
  const at::Tensor hits = at::eq(best, labels.unsqueeze(1));
  counts.integers[0].add_(hits.select(1, 0).sum());
  counts.integers[1].add_(hits.sum());
  counts.integers[2].add_(batch.size());
  counts.loss.add_(loss(output, labels).to(at::kDouble) * static_cast<double>(batch.size()));
}

std::optional<EvalResult> Evaluator::evaluate(Model& model, const Loss& loss, BatchSource& source,
                                              Communicator& ranks, const OnBatch& on_batch) const {
  const at::NoGradGuard no_grad;
  model.train(false);
  const auto start = std::chrono::steady_clock::now();
  // On the device until the end: no sync in the loop.
  Counts counts{at::zeros({3}, at::device(options_.device).dtype(at::kLong)),
                at::zeros({}, at::device(options_.device).dtype(at::kDouble))};

  source.begin_epoch(
      {.image_size_px = options_.image_size_px, .rank = ranks.rank(), .world = ranks.world()});
  std::int64_t samples = 0;
  // As many rounds as the rank with most batches needs, so that all ask on_batch together.
  for (std::int64_t round = 0; round < source.size(ranks.world()); ++round) {
    failpoint("evaluator.before_batch");
    if (auto batch = source.next()) {
      count(model, loss, *batch, counts);
      samples += batch->size();
    }
    if (!on_batch(samples)) return std::nullopt;
  }
  require(!source.next(), "an evaluation has as many rounds as the longest share has batches");
  ranks.all_reduce_sum({counts.integers, counts.loss});

  const at::Tensor integers = counts.integers.cpu();
  EvalResult result{.samples = integers[2].item<std::int64_t>(),
                    .top_1_correct = integers[0].item<std::int64_t>(),
                    .top_5_correct = integers[1].item<std::int64_t>()};
  require(result.samples == source.samples(), "every sample is evaluated once");
  if (result.samples > 0)
    result.loss = counts.loss.item<double>() / static_cast<double>(result.samples);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

at::Tensor Evaluator::predict(Model& model, BatchSource& source, const OnBatch& on_batch) const {
  const at::NoGradGuard no_grad;
  model.train(false);
  std::vector<at::Tensor> outputs;
  std::int64_t samples = 0;
  source.begin_epoch({.image_size_px = options_.image_size_px});
  while (auto batch = source.next()) {
    outputs.push_back(logits(model, batch->images()).to(at::kCPU, at::kFloat));
    samples += batch->size();
    if (!on_batch(samples)) break;
  }
  return at::cat(outputs);
}

}  // namespace precast::engine
