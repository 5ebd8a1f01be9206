#include "framework/engine/evaluator.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "framework/core/error.h"
#include "framework/core/failpoint.h"
#include "framework/engine/precision.h"
#include "framework/engine/stop_request.h"
#include "framework/process/stop_signals.h"

namespace precast::engine {
namespace {

constexpr std::int64_t kTopK = 5;
constexpr std::int64_t kWidthAxis = 3;
constexpr std::int64_t kImageDims = 4;

/// Returns the tensors of all ranks that have one, in the order of the ranks. They are broadcast
/// instead of summed, because a sum would turn -0 into 0. @param mine undefined if this rank has no
/// tensor.
std::vector<at::Tensor> gather_by_rank(const at::Tensor& mine, at::Device device,
                                       Communicator& ranks) {
  if (ranks.world() == 1) return mine.defined() ? std::vector{mine} : std::vector<at::Tensor>();
  // Ranks without a batch need the other ranks' shapes.
  const auto shape = mine.defined() ? mine.sizes().vec() : std::vector<std::int64_t>();
  const std::vector<std::string> shapes = ranks.all_gather(nlohmann::json(shape).dump());
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < ranks.world(); ++rank) {
    const auto sizes = nlohmann::json::parse(shapes[static_cast<std::size_t>(rank)])
                           .get<std::vector<std::int64_t>>();
    if (sizes.empty()) continue;
    all.push_back(rank == ranks.rank() ? mine.contiguous()
                                       : at::empty(sizes, at::device(device).dtype(at::kFloat)));
    ranks.broadcast({all.back()}, rank);
  }
  return all;
}

}  // namespace

double EvalResult::top_1() const {
  return samples == 0 ? 0 : static_cast<double>(top_1_correct) / static_cast<double>(samples);
}

double EvalResult::top_5() const {
  return samples == 0 ? 0 : static_cast<double>(top_5_correct) / static_cast<double>(samples);
}

std::vector<std::pair<std::string, double>> EvalResult::figures() const {
  std::vector<std::pair<std::string, double>> figures;
  if (is_classification) figures = {{"top_1", top_1()}, {"top_5", top_5()}};
  figures.insert(figures.end(), metrics.begin(), metrics.end());
  return figures;
}

double EvalResult::figure(std::string_view name) const {
  if (name == "val_loss") return loss;
  for (const auto& [known, value] : figures())
    if (known == name) return value;
  return NAN;
}

at::Tensor Evaluator::outputs(Model& model, Batch& batch) const {
  const AutocastScope autocast(options_.device, options_.precision);
  if (!options_.channels_last) make_inputs_contiguous(batch);
  at::Tensor output = model.forward(batch);
  if (!options_.flip_tta || batch.input().dim() != kImageDims) return output;
  Batch mirrored = batch;
  for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
    at::Tensor& input = mirrored.input(i);
    if (input.dim() == kImageDims) input = at::flip(input, {kWidthAxis});
  }
  const at::Tensor mirror_output = model.forward(mirrored);
  const bool masks = options_.targets == TargetKind::class_mask;
  return output + (masks ? at::flip(mirror_output, {kWidthAxis}) : mirror_output);
}

void Evaluator::count(Model& model, const Loss& loss, Batch& batch, Counts& counts) const {
  const at::Tensor output = outputs(model, batch);
  if (options_.targets == TargetKind::class_index) count_top_k(output, batch.labels(), counts);
  counts.integers[2].add_(batch.size());
  counts.loss.add_(loss(output, batch).to(at::kDouble) * static_cast<double>(batch.size()));
  counts.metrics.add(output, batch);
}

void Evaluator::count_top_k(const at::Tensor& output, const at::Tensor& labels,
                            Counts& counts) const {
  if (output.dim() != 2 || labels.dim() != 1 || labels.scalar_type() != at::kLong) return;
  const std::int64_t k = std::min(kTopK, output.size(1));
  const at::Tensor best = std::get<1>(at::topk(output, k, 1));
  const at::Tensor hits = at::eq(best, labels.unsqueeze(1));
  counts.integers[0].add_(hits.select(1, 0).sum());
  counts.integers[1].add_(hits.sum());
  if (output.size(1) == options_.num_classes) count_classes(labels, hits.select(1, 0), counts);
}

void Evaluator::count_classes(const at::Tensor& labels, const at::Tensor& correct,
                              Counts& counts) const {
  // A loss may ignore some labels, such as -100.
  const at::Tensor is_class = labels.ge(0).logical_and_(labels.lt(options_.num_classes));
  const at::Tensor bin = at::where(is_class, labels, at::full_like(labels, options_.num_classes));
  counts.classes[0].index_add_(0, bin, at::ones_like(bin));
  counts.classes[1].index_add_(0, bin, correct.to(at::kLong));
}

std::optional<EvalResult> Evaluator::evaluate(Model& model, const Loss& loss, BatchSource& source,
                                              Communicator& ranks, const OnBatch& on_batch) const {
  const at::NoGradGuard no_grad;
  model.train(false);
  const auto start = std::chrono::steady_clock::now();
  Counts counts = zero_counts();
  failpoint("evaluator.before_pass");
  source.begin_epoch(
      {.image_size_px = options_.image_size_px, .rank = ranks.rank(), .world = ranks.world()});
  // A source that was asked to stop while it prepared the pass has no batches, so all ranks stop.
  if (any_rank_requested_stop(ranks)) return std::nullopt;
  std::int64_t samples = 0;
  // All ranks run the number of rounds that the rank with the most batches needs, so that all of
  // them call on_batch together.
  for (std::int64_t round = 0; round < source.size(ranks.world()); ++round) {
    failpoint("evaluator.before_batch");
    if (auto batch = source.next()) {
      count(model, loss, *batch, counts);
      samples += batch->size();
    } else if (ranks.world() == 1 && StopSignals::requested()) {
      return std::nullopt;  // the source gave up its wait for a batch
    }
    if (!on_batch(samples)) return std::nullopt;
  }
  require(!source.next(), "an evaluation uses all batches of the source");
  ranks.all_reduce_sum({counts.integers, counts.classes, counts.loss});

  EvalResult result = result_of(counts);
  if (result.samples > 0) result.metrics = counts.metrics.values(ranks, result.samples);
  require(result.samples == source.samples(), "every sample is evaluated once");
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

Evaluator::Counts Evaluator::zero_counts() const {
  // The sums stay on the device until the end, so that the loop does not wait for the device.
  const at::TensorOptions reals = at::device(options_.device).dtype(at::kDouble);
  const at::TensorOptions integers = reals.dtype(at::kLong);
  return {.integers = at::zeros({3}, integers),
          .classes = at::zeros({2, options_.num_classes + 1}, integers),
          .loss = at::zeros({}, reals),
          .metrics = {options_.metrics, options_.device}};
}

EvalResult Evaluator::result_of(const Counts& counts) const {
  const at::Tensor integers = counts.integers.cpu();
  EvalResult result{.samples = integers[2].item<std::int64_t>(),
                    .top_1_correct = integers[0].item<std::int64_t>(),
                    .top_5_correct = integers[1].item<std::int64_t>(),
                    .is_classification = options_.targets == TargetKind::class_index};
  if (result.samples == 0) return result;
  result.loss = counts.loss.item<double>() / static_cast<double>(result.samples);
  const at::Tensor classes = counts.classes.cpu();
  const auto at_class = [&](std::int64_t row, std::int64_t i) {
    return classes.const_data_ptr<std::int64_t>()[row * classes.size(1) + i];
  };
  for (std::int64_t i = 0; i < options_.num_classes; ++i)
    result.classes.push_back({.samples = at_class(0, i), .top_1_correct = at_class(1, i)});
  const bool any = std::ranges::any_of(result.classes,
                                       [](const ClassCount& count) { return count.samples > 0; });
  if (!any) result.classes.clear();
  return result;
}

at::Tensor Evaluator::predict(Model& model, BatchSource* source, Communicator& ranks,
                              const OnBatch& on_batch) const {
  const at::NoGradGuard no_grad;
  model.train(false);
  std::vector<at::Tensor> all;
  std::int64_t samples = 0;
  if (source != nullptr) source->begin_epoch({.image_size_px = options_.image_size_px});
  while (true) {
    failpoint("evaluator.before_batch");
    at::Tensor mine;
    auto batch = source == nullptr ? std::nullopt : source->next();
    if (batch) mine = outputs(model, *batch).to(at::kFloat);
    const std::vector<at::Tensor> round = gather_by_rank(mine, options_.device, ranks);
    if (round.empty()) break;
    for (const at::Tensor& rows : round) {
      samples += rows.size(0);
      if (ranks.rank() == 0) all.push_back(rows.cpu());
    }
    if (!on_batch(samples)) break;
  }
  if (samples == 0) throw DataError("predict: expected at least one sample, got none");
  return ranks.rank() == 0 ? at::cat(all) : at::Tensor();
}

}  // namespace precast::engine
