#include "tests/framework/engine/resumed_run.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "framework/api/single_rank.h"
#include "framework/core/archive/checkpoint_folder.h"
#include "framework/process/stop_signals.h"
#include "recipes/register.h"
#include "tests/recipes/make_method.h"
#include "tests/support/noise_tensor.h"

namespace precast::engine {
namespace {

using test::ColourSource;

/// A network with weights, running statistics and dropout, which all must be restored for a resumed
/// run to equal an uninterrupted one.
class SmallNet final : public ImageModel {
 public:
  explicit SmallNet(std::string last) : last_(std::move(last)) {
    state_ = {{"conv.weight", test::noise_tensor(1, {4, 3, 3, 3}).requires_grad_(true)},
              {"bn.weight", at::ones({4}).requires_grad_(true)},
              {"bn.bias", at::zeros({4}).requires_grad_(true)},
              {"bn.running_mean", at::zeros({4})},
              {"bn.running_var", at::ones({4})},
              {last_, test::noise_tensor(2, {3, 4}).requires_grad_(true)}};
  }
  at::Tensor classify(const at::Tensor& images) override {
    at::Tensor x = at::conv2d(images, at("conv.weight"), {}, 1, 1);
    x = at::relu(at::batch_norm(x, at("bn.weight"), at("bn.bias"), at("bn.running_mean"),
                                at("bn.running_var"), training_, 0.1, 1e-5, false));
    return at::linear(at::dropout(x.mean({2, 3}), 0.3, training_), at(last_));
  }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    std::vector<NamedTensor> parameters;
    for (const NamedTensor& entry : state_)
      if (entry.tensor.requires_grad()) parameters.push_back(entry);
    return parameters;
  }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return state_; }
  void train(bool training) override { training_ = training; }
  void to(at::Device /*device*/, bool /*channels_last*/) override {}

 private:
  [[nodiscard]] const at::Tensor& at(const std::string& name) const {
    for (const NamedTensor& entry : state_)
      if (entry.name == name) return entry.tensor;
    throw std::logic_error(name);
  }
  std::string last_;
  std::vector<NamedTensor> state_;
  bool training_ = false;
};

class NanGradients final : public Method {
 public:
  void on_backward(Model& model) override {
    for (const NamedTensor& parameter : model.parameters())
      if (parameter.tensor.grad().defined()) parameter.tensor.grad().fill_(NAN);
  }
};

/// Runs an action at one step.
class AtStep final : public Method {
 public:
  AtStep(std::int64_t step, std::function<void(Batch&)> action)
      : step_(step), action_(std::move(action)) {}
  void on_batch(Batch& batch, std::int64_t global_step) override {
    if (global_step == step_) action_(batch);
  }

 private:
  std::int64_t step_;
  std::function<void(Batch&)> action_;
};

/// Records the ids of the samples of each batch, and the number of each completed step.
class Recorder final : public Method {
 public:
  Recorder(std::vector<std::uint64_t>& samples, std::vector<std::int64_t>& steps)
      : samples_(samples), steps_(steps) {}
  void on_batch(Batch& batch, std::int64_t /*global_step*/) override {
    samples_.insert(samples_.end(), batch.sample_ids.begin(), batch.sample_ids.end());
  }
  void on_step_end(Model& /*model*/, std::int64_t global_step) override {
    steps_.push_back(global_step);
  }

 private:
  std::vector<std::uint64_t>& samples_;
  std::vector<std::int64_t>& steps_;
};

/// A source that requests a stop at one batch, or at the start of one pass.
class StoppingSource final : public BatchSource {
 public:
  StoppingSource(ColourSource source, std::int64_t stop_at, std::int64_t stop_at_pass)
      : source_(std::move(source)), stop_at_(stop_at), stop_at_pass_(stop_at_pass) {}
  void begin_epoch(const EpochRequest& request) override {
    if (passes_++ == stop_at_pass_) std::raise(SIGTERM);
    source_.begin_epoch(request);
  }
  std::optional<Batch> next() override {
    if (count_++ == stop_at_) std::raise(SIGTERM);
    return source_.next();
  }
  [[nodiscard]] std::int64_t size(int world) const override { return source_.size(world); }
  [[nodiscard]] std::int64_t samples() const override { return source_.samples(); }
  [[nodiscard]] double seconds_waited() const override { return 0; }
  [[nodiscard]] std::vector<ReplacedSample> replaced() const override { return replaced_; }
  void set_replaced(std::vector<ReplacedSample> samples) { replaced_ = std::move(samples); }
  [[nodiscard]] SourceTimes times() const override { return times_; }
  void set_times(const SourceTimes& times) { times_ = times; }

 private:
  std::vector<ReplacedSample> replaced_;
  SourceTimes times_;
  ColourSource source_;
  std::int64_t stop_at_;
  std::int64_t stop_at_pass_;
  std::int64_t count_ = 0;
  std::int64_t passes_ = 0;
};
std::string without_times(const std::string& record) {
  auto parsed = nlohmann::ordered_json::parse(record);
  for (const char* key : {"val_time", "train_time", "wait_time", "loader_time"}) parsed.erase(key);
  return parsed.dump();
}

}  // namespace

nlohmann::json saved_position(const std::filesystem::path& folder) {
  const auto latest = latest_valid_checkpoint(folder);
  if (!latest) throw std::runtime_error(folder.string());
  return nlohmann::json::parse(std::ifstream(latest->path / "state.json")).at("position");
}
void edit_state(const std::filesystem::path& folder,
                const std::function<void(nlohmann::ordered_json& state)>& edit) {
  const auto latest = latest_valid_checkpoint(folder);
  if (!latest) throw std::runtime_error(folder.string());
  CheckpointWriter writer(folder, latest->step, 0);
  for (const ManifestFile& file : verify_checkpoint(latest->path).files) {
    std::ifstream stored(latest->path / file.name, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(stored), {}};
    if (file.name == "state.json") {
      auto state = nlohmann::ordered_json::parse(bytes);
      edit(state);
      bytes = state.dump();
    }
    writer.add(file.name, std::as_bytes(std::span(bytes)));
  }
  static_cast<void>(writer.commit(latest->metric));
}

Outcome ResumeTest::run(const std::filesystem::path& folder, test::MemorySink& sink,
                        const Interruption& disturbance, NonFinitePolicy policy) {
  at::manual_seed(3);
  SmallNet model(last_tensor_);
  TrainPlan plan;
  plan.epochs = epochs_;
  plan.steps_per_epoch = kSteps * kBatch / batch_size_;
  plan.global_batch_size = batch_size_;
  plan.image_size_px = {4, 4, 8};
  plan.schedule = std::make_shared<test::RisingLr>(0.05);
  plan.precision = precision_;
  std::vector<NamedMethod> methods;
  if (with_ema_) methods.push_back({"ema", test::make_method("ema")});
  if (with_scope_) methods.push_back({"scope", std::make_unique<test::RecordingMethod>(calls_)});
  for (const auto& [name, options] : more_methods_)
    methods.push_back({name, test::make_method(name, options)});
  methods.push_back({"stop", std::make_unique<AtStep>(disturbance.stop_at_step,
                                                      [](Batch&) { std::raise(SIGTERM); })});
  methods.push_back({"poison", std::make_unique<AtStep>(disturbance.nan_at_step, [](Batch& batch) {
                       batch.images() = batch.images() / 0.0 * 0.0;
                     })});
  if (disturbance.nan_gradients)
    methods.push_back({"nan_gradients", std::make_unique<NanGradients>()});
  methods.push_back({"recorder", std::make_unique<Recorder>(samples_, steps_)});
  OptimizerRegistry optimizers("optimizer");
  recipes::register_optimizers(optimizers);
  const auto optimizer = optimizers.make({"sgd"}, {model.parameters()});
  StoppingSource train(
      ColourSource({0, 1, 2, 2, 1, 0, 0, 0, 1, 1, 1, 2, 2, 0, 1, 2, 1, 1, 2, 0}, batch_size_),
      kNever, disturbance.stop_at_train_pass);
  train.set_times(loader_times_);
  StoppingSource val(ColourSource({0, 1, 2, 2, 1}, val_batch_size_), disturbance.stop_at_val_batch,
                     disturbance.stop_at_val_pass);
  val.set_replaced(replaced_);
  const Evaluator evaluator({.image_size_px = 4, .flip_tta = false});
  const auto ranks = make_single_rank();
  const auto sync = make_single_rank_sync();
  const test::MeanCrossEntropy loss;
  Checkpointer checkpointer(
      {.folder = folder,
       .every_steps = every_steps_,
       .every_epochs = every_epochs_,
       .allow_precision_change = any_precision_,
       .order_depends_on_batch_size = batch_sets_order_,
       .has_same_evaluation =
           [this](const nlohmann::ordered_json& saved) {
             EXPECT_EQ(saved.at("run"), "this");
             return same_evaluation_;
           },
       .max_threads = max_threads_,
       .model_spec = model_spec_},
      {model, *optimizer, methods, *ranks, at::kCPU},
      {{"run", "this"}, {"plan.best_metric", best_.name}, {"plan.global_batch_size", batch_size_}},
      [](const nlohmann::ordered_json& saved) { EXPECT_EQ(saved.at("run"), "this"); });
  const StopSignals signals(StopSignals::kTraining);
  Trainer trainer(plan,
                  {.model = model,
                   .loss = loss,
                   .optimizer = *optimizer,
                   .methods = methods,
                   .train_source = train,
                   .val_source = val,
                   .evaluator = evaluator,
                   .ranks = *ranks,
                   .sync = *sync,
                   .sinks = {&sink},
                   .checkpointer = &checkpointer},
                  {.evaluate_each_epoch = evaluate_each_epoch_,
                   .log_every = 1,
                   .on_nonfinite = policy,
                   .best = best_});
  Outcome outcome;
  trainer.start();
  const TrainSummary summary = trainer.run();
  outcome.finished = summary.final_eval.has_value();
  if (outcome.finished) outcome.last_eval_seconds = summary.final_eval->seconds;
  outcome.eval_seconds = summary.eval_seconds;
  outcome.replaced = summary.replaced.val;
  outcome.loader_times = summary.loader_times;
  outcome.images_trained = summary.images_trained;
  outcome.process_images = summary.process_images;
  outcome.skipped_steps = summary.skipped_steps;
  if (outcome.finished) checkpointer.finish_run();
  EXPECT_EQ(sink.flushed, sink.records.size());
  const auto keep = [&](const std::string& part, const std::vector<NamedTensor>& tensors) {
    for (const NamedTensor& entry : tensors) {
      const at::Tensor flat = entry.tensor.detach().to(at::kFloat).contiguous().flatten();
      outcome.tensors.emplace_back(part + entry.name,
                                   std::vector<float>(flat.const_data_ptr<float>(),
                                                      flat.const_data_ptr<float>() + flat.numel()));
    }
  };
  keep("model ", model.state());
  keep("optimizer ", optimizer->state().tensors);
  for (const NamedMethod& method : methods) keep(method.name, method.method->state().tensors);
  for (const std::string& record : sink.records) outcome.log.push_back(without_times(record));
  return outcome;
}

}  // namespace precast::engine
