#include "tests/framework/engine/short_training.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/api/run_facts.h"
#include "framework/api/single_rank.h"
#include "models/register.h"
#include "recipes/register.h"
#include "tests/recipes/make_method.h"
#include "tests/support/fake_parts.h"
#include "tests/support/lone_rank.h"
#include "tests/support/part_spec.h"

namespace precast::engine {
namespace {

constexpr std::int64_t kEpochs = 4;
/// A residual network with few layers, so that a step is fast.
constexpr const char* kLayers =
    "{layers: [conv: {out: 8, stride: 2, bias: false}, bn, relu, "
    "residual: {layers: [conv: {out: 8, bias: false}, bn, relu, conv: {out: 8, bias: false}, bn]}, "
    "relu, global_avg_pool, flatten, dropout: {p: 0.2}, linear]}";

std::unique_ptr<Model> make_network(const ModelSpec& spec) {
  if (spec.arch == "linear") return std::make_unique<test::LinearModel>(spec.num_classes);
  ModelRegistry models("model");
  models::register_models(models);
  return make_model(models, spec);
}

std::unique_ptr<Loss> make_loss(const PartSpec& spec) {
  LossRegistry losses("loss");
  recipes::register_losses(losses);
  return losses.make(spec);
}

/// Calls a function before it computes the loss.
class CallingLoss final : public Loss {
 public:
  CallingLoss(std::unique_ptr<Loss> loss, std::function<void()> call)
      : loss_(std::move(loss)), call_(std::move(call)) {}
  [[nodiscard]] TargetKind target_kind() const override { return loss_->target_kind(); }
  [[nodiscard]] at::Tensor operator()(const at::Tensor& outputs,
                                      const Batch& batch) const override {
    call_();
    return (*loss_)(outputs, batch);
  }
  [[nodiscard]] at::Tensor per_sample(const at::Tensor& outputs,
                                      const Batch& batch) const override {
    return loss_->per_sample(outputs, batch);
  }

 private:
  std::unique_ptr<Loss> loss_;
  std::function<void()> call_;
};

/// A gradient synchronisation after which only this rank has the averaged gradients.
class OneRankSync final : public GradSync {
 public:
  void begin_backward(bool /*last*/) override {}
  void finish_backward() override {}
  void finish_step() override {}
  [[nodiscard]] bool gradients_everywhere() const override { return false; }
};

}  // namespace

ShortTraining::ShortTraining(TrainingOptions options, Mode mode)
    : options_(std::move(options)),
      ranks_(options_.world > 1 ? std::make_unique<test::LoneRank>(0, options_.world)
                                : make_single_rank()),
      sync_(options_.gradients_on_one_rank ? std::make_unique<OneRankSync>()
                                           : make_single_rank_sync()),
      loss_sum_(at::zeros({}, at::kDouble)) {
  // There is so little work that threads would mostly wait for each other.
  at::set_num_threads(1);
  at::manual_seed(1);
  plan_.model.arch = options_.model;
  if (options_.model == "layers") plan_.model.params = test::part_spec("", kLayers).options;
  plan_.model.num_classes = kClasses;
  plan_.epochs = kEpochs;
  plan_.steps_per_epoch = (options_.steps + kEpochs - 1) / kEpochs;
  plan_.global_batch_size = kBatch * options_.world;
  plan_.micro_batches = options_.micro_batches;
  plan_.precision = options_.precision;
  plan_.peak_lr = 1;
  for (const auto& [name, keys] : options_.methods) add_method(name, test::make_method(name, keys));
  model_ = make_network(plan_.model);
  model_->train(true);
  loss_ =
      std::make_unique<CallingLoss>(make_loss(plan_.loss), [this] { options_.in_forward(log_); });
  optimizer_ = make_optimizer();
  step_ = std::make_unique<TrainStep>(
      plan_, StepParts{*model_, *loss_, *optimizer_, methods_, *ranks_, *sync_}, at::kCPU,
      options_.skip_nonfinite, mode == Mode::plain ? nullptr : make_graph(mode));
  step_->set_loss_callback([this](const at::Tensor& loss) {
    loss_sum_.add_(at::where(at::isfinite(loss), loss, at::zeros_like(loss)));
  });
  for (NamedMethod& method : methods_) {
    method.method->on_run({.num_classes = kClasses,
                           .epochs = plan_.epochs,
                           .steps_per_epoch = plan_.steps_per_epoch});
    method.method->on_train_begin(*model_);
  }
}

void ShortTraining::add_method(const std::string& name, std::unique_ptr<Method> method) {
  method->configure(plan_);
  methods_.push_back({name, std::move(method)});
}

void ShortTraining::run_to(int end) {
  for (; next_ < end; ++next_) {
    if (next_ % plan_.steps_per_epoch == 0) {
      for (NamedMethod& method : methods_)
        method.method->on_epoch_begin(next_ / plan_.steps_per_epoch, *model_);
    }
    Batch batch = make_batch();
    for (NamedMethod& method : methods_) method.method->on_batch(batch, next_);
    // Exact in float32.
    const double lr = (1 + next_ % 4) / 256.0;
    losses_.push_back(step_->run(batch, lr).item<double>());
    for (NamedMethod& method : methods_) method.method->on_step_end(*model_, next_);
  }
}

void ShortTraining::restore(const ShortTraining& other) {
  const at::NoGradGuard no_grad;
  const std::vector<NamedTensor> from = other.state(), to = state();
  for (std::size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  optimizer_->restore(other.optimizer_->state().counters);
  for (std::size_t i = 0; i < methods_.size(); ++i)
    methods_[i].method->restore(other.methods_[i].method->state().counters);
  next_ = other.next_;
}

std::vector<NamedTensor> ShortTraining::state() const {
  std::vector<NamedTensor> all;
  const auto add = [&](const std::vector<NamedTensor>& tensors) {
    for (const NamedTensor& entry : tensors) all.push_back({entry.name, entry.tensor.detach()});
  };
  add(model_->state());
  add(optimizer_->state().tensors);
  if (step_->scaler() != nullptr) add(step_->scaler()->state().tensors);
  for (const NamedMethod& method : methods_) add(method.method->state().tensors);
  all.push_back({"loss_sum", loss_sum_});
  return all;
}

std::unique_ptr<Optimizer> ShortTraining::make_optimizer() const {
  if (options_.make_optimizer) return options_.make_optimizer(*model_);
  OptimizerRegistry optimizers("optimizer");
  recipes::register_optimizers(optimizers);
  return optimizers.make(test::part_spec(options_.optimizer, options_.optimizer_options),
                         {model_->parameters(), plan_.peak_lr});
}

std::unique_ptr<StepGraph> ShortTraining::make_graph(Mode mode) {
  std::vector<at::Tensor> parameters;
  for (const NamedTensor& parameter : model_->parameters()) parameters.push_back(parameter.tensor);
  StepGraphOptions options{.scope = GraphScope::step,
                           .warm_ups = options_.warm_ups,
                           .kept = options_.kept,
                           .several_ranks = options_.world > 1};
  if (mode == Mode::unrecorded) options.warm_ups = std::numeric_limits<int>::max();
  return std::make_unique<StepGraph>(GraphMode::step, std::make_unique<test::TapeRecorder>(log_),
                                     std::move(parameters), options);
}

Batch ShortTraining::make_batch() const {
  // The batch depends only on the step, so that an interrupted run gets the same batches.
  at::manual_seed(100 + static_cast<std::uint64_t>(next_));
  const std::int64_t size_px = options_.size_px(next_);
  Batch batch{.fields = {{"image", at::randn({kBatch, 3, size_px, size_px})},
                         {"label", at::randint(kClasses, {kBatch}, at::kLong)}},
              .sample_ids = std::vector<std::uint64_t>(kBatch)};
  options_.edit(next_, batch);
  return batch;
}

std::vector<std::string> differences(const ShortTraining& one, const ShortTraining& other) {
  std::vector<std::string> names;
  const std::vector<NamedTensor> a = one.state(), b = other.state();
  for (std::size_t i = 0; i < a.size(); ++i) {
    constexpr double kNanSubstitute = 12345;
    if (!at::nan_to_num(a[i].tensor, kNanSubstitute)
             .equal(at::nan_to_num(b[i].tensor, kNanSubstitute)))
      names.push_back(a[i].name);
  }
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  if (!std::ranges::equal(one.losses(), other.losses(), same)) names.emplace_back("losses");
  return names;
}

}  // namespace precast::engine
