// A run that is interrupted and resumed ends with the same results as an uninterrupted run.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>

#include "framework/api/single_rank.h"
#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/error.h"
#include "framework/engine/trainer.h"
#include "framework/process/stop_signals.h"
#include "recipes/register.h"
#include "tests/recipes/make_method.h"
#include "tests/support/fake_parts.h"
#include "tests/support/message_matchers.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/temporary_folder.h"

namespace precast::engine {
namespace {

using test::ColourSource;

/// A convolution, batch statistics and dropout: everything that a step can depend on.
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

class MeanCrossEntropy final : public TargetLoss {
 public:
  at::Tensor mean(const at::Tensor& logits, const at::Tensor& labels) const override {
    return at::cross_entropy_loss(logits.to(at::kFloat), labels);
  }
};

class Rising final : public Schedule {
 public:
  [[nodiscard]] double lr(std::int64_t epoch) const override {
    return 0.05 * static_cast<double>(epoch + 1);
  }
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

/// Records the samples of each batch, and the number of the step after each step.
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

/// A source that asks the run to stop at one batch, or at the start of one pass.
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

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Where a run is disturbed.
struct Disturbance {
  std::int64_t stop_at_step = kNever;
  std::int64_t stop_at_val_batch = kNever;
  /// At the start of a pass of the training data or of the validation data; passes of this process
  /// count from 0.
  std::int64_t stop_at_train_pass = kNever;
  std::int64_t stop_at_val_pass = kNever;
  std::int64_t nan_at_step = kNever;
  /// Whether the gradients of all steps are NaN, and their losses are not.
  bool nan_gradients = false;
};

/// The results of a run.
struct Outcome {
  std::vector<std::pair<std::string, std::vector<float>>> tensors;
  std::vector<std::string> log;
  bool finished = false;
  std::vector<ReplacedSample> replaced;
  SourceTimes loader_times;
  std::int64_t images_trained = 0, process_images = 0;
  double eval_seconds = 0, last_eval_seconds = 0;

  bool operator==(const Outcome& other) const {
    return std::tie(tensors, log, finished) == std::tie(other.tensors, other.log, other.finished);
  }
};

std::string without_times(const std::string& record) {
  auto parsed = nlohmann::ordered_json::parse(record);
  for (const char* key : {"val_time", "train_time", "wait_time", "loader_time"}) parsed.erase(key);
  return parsed.dump();
}

/// The position in the newest checkpoint.
nlohmann::json saved_position(const std::filesystem::path& folder) {
  const auto latest = latest_valid(folder);
  if (!latest) throw std::runtime_error(folder.string());
  return nlohmann::json::parse(std::ifstream(latest->path / "state.json")).at("position");
}

class ResumeTest : public ::testing::TestWithParam<Precision> {
 protected:
  static constexpr std::int64_t kSteps = 5, kEpochs = 3, kBatch = 4;

  Outcome run(const std::filesystem::path& folder, test::MemorySink& sink,
              const Disturbance& disturbance = {}, NonFinite policy = NonFinite::stop) {
    at::manual_seed(3);
    SmallNet model(last_tensor_);
    TrainPlan plan;
    plan.epochs = epochs_;
    plan.steps_per_epoch = kSteps * kBatch / batch_size_;
    plan.global_batch_size = batch_size_;
    plan.image_size_px = {4, 4, 8};
    plan.schedule = std::make_shared<Rising>();
    plan.precision = precision_;
    std::vector<NamedMethod> methods;
    if (with_ema_) methods.push_back({"ema", test::make_method("ema")});
    if (with_scope_) methods.push_back({"scope", std::make_unique<test::RecordingMethod>(calls_)});
    for (const auto& [name, options] : more_methods_)
      methods.push_back({name, test::make_method(name, options)});
    methods.push_back({"stop", std::make_unique<AtStep>(disturbance.stop_at_step,
                                                        [](Batch&) { std::raise(SIGTERM); })});
    methods.push_back(
        {"poison", std::make_unique<AtStep>(disturbance.nan_at_step, [](Batch& batch) {
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
    StoppingSource val(ColourSource({0, 1, 2, 2, 1}, val_batch_size_),
                       disturbance.stop_at_val_batch, disturbance.stop_at_val_pass);
    val.set_replaced(replaced_);
    const Evaluator evaluator({.image_size_px = 4, .flip_tta = false});
    const auto ranks = make_single_rank();
    const auto sync = make_single_rank_sync();
    const MeanCrossEntropy loss;
    Checkpointer checkpointer(
        {.folder = folder,
         .every_steps = every_steps_,
         .every_epochs = every_epochs_,
         .any_precision = any_precision_,
         .batch_sets_order = batch_sets_order_,
         .most_threads = most_threads_,
         .model_spec = model_spec_},
        {model, *optimizer, methods, *ranks, at::kCPU},
        {{"run", "this"},
         {"plan.best_metric", best_.name},
         {"plan.global_batch_size", batch_size_}},
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
    if (outcome.finished) checkpointer.finish_run();
    EXPECT_EQ(sink.flushed, sink.records.size());
    const auto keep = [&](const std::string& part, const std::vector<NamedTensor>& tensors) {
      for (const NamedTensor& entry : tensors) {
        const at::Tensor flat = entry.tensor.detach().to(at::kFloat).contiguous().flatten();
        outcome.tensors.emplace_back(
            part + entry.name, std::vector<float>(flat.const_data_ptr<float>(),
                                                  flat.const_data_ptr<float>() + flat.numel()));
      }
    };
    keep("model ", model.state());
    keep("optimizer ", optimizer->state().tensors);
    for (const NamedMethod& method : methods) keep(method.name, method.method->state().tensors);
    for (const std::string& record : sink.records) outcome.log.push_back(without_times(record));
    return outcome;
  }

  Precision precision_ = GetParam();
  bool any_precision_ = false;
  std::int64_t batch_size_ = kBatch, val_batch_size_ = 2;
  std::int64_t every_steps_ = 0, every_epochs_ = 1;
  std::int64_t epochs_ = kEpochs;
  bool evaluate_each_epoch_ = true;
  bool batch_sets_order_ = false;
  int most_threads_ = 0;
  std::optional<WeightsSpec> model_spec_;
  bool with_ema_ = true;
  /// Whether a method does something in evaluations that it does not describe.
  bool with_scope_ = false;
  std::vector<std::string> calls_;
  BestMetric best_;
  /// What the validation source has replaced.
  std::vector<ReplacedSample> replaced_;
  /// What the training source of a process measures.
  SourceTimes loader_times_;
  /// Of all steps so far, including those before the run was resumed.
  std::vector<std::uint64_t> samples_;
  std::vector<std::int64_t> steps_;
  /// The name of the last parameter; the prefix is one that DistributedDataParallel adds to names.
  std::string last_tensor_ = "module.fc.weight";
  /// Names and options of further methods.
  std::vector<std::pair<std::string, std::string>> more_methods_;
};

TEST_P(ResumeTest, CutAtAnyStepItEndsAsTheUncutRun) {
  const test::TemporaryFolder uncut_folder;
  test::MemorySink uncut_sink;
  const Outcome uncut = run(uncut_folder.path(), uncut_sink);
  ASSERT_TRUE(uncut.finished);
  ASSERT_EQ(uncut.log.size(), kEpochs * (kSteps + 1));
  for (std::int64_t step = 0; step < kEpochs * kSteps; ++step) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    const bool cut = !run(folder.path(), sink, {.stop_at_step = step}).finished;
    // Only a request during the last batch of the last evaluation would be too late.
    EXPECT_TRUE(cut) << step;
    EXPECT_EQ(run(folder.path(), sink), uncut) << step;
  }
}

TEST_P(ResumeTest, CutRunsOfMethodsEndAsUncutOnes) {
  const std::vector<std::pair<std::string, std::string>> recipes[] = {
      {{"sam", "{interval: 2}"}, {"swa", "{start: 0.3}"}},
      {{"adaptive_gradient_clipping", "{}"}, {"sam", "{}"}},
      {{"selective_backprop", "{start: 0, end: 1}"}, {"layer_freezing", "{freeze_start: 0}"}}};
  for (const auto& methods : recipes) {
    more_methods_ = methods;
    const test::TemporaryFolder uncut_folder;
    test::MemorySink uncut_sink;
    const Outcome uncut = run(uncut_folder.path(), uncut_sink);
    ASSERT_TRUE(uncut.finished);
    for (const std::int64_t step : {1, 6, 9, 13}) {
      const test::TemporaryFolder folder;
      test::MemorySink sink;
      EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = step}).finished);
      EXPECT_EQ(run(folder.path(), sink), uncut) << methods[0].first << step;
    }
  }
}

TEST_P(ResumeTest, BlurredLayersAndAModelsOwnFiltersKeepTheirWeights) {
  const std::map<std::string, std::int64_t> own, blurred = {{"conv", 3}};
  for (const auto& [layers, last] :
       {std::pair(own, "fc.blur_filter"), std::pair(blurred, "fc.weight")}) {
    model_spec_ = {.arch = "small", .blurpool = true, .blurred = layers};
    last_tensor_ = last;
    const test::TemporaryFolder uncut_folder, folder;
    test::MemorySink uncut_sink, sink;
    const Outcome uncut = run(uncut_folder.path(), uncut_sink);
    EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 6}).finished);
    EXPECT_EQ(run(folder.path(), sink), uncut) << last;
  }
}

TEST_P(ResumeTest, ACheckpointNamesItsAveragesUnlessTheMethodsLeaveItOpen) {
  using Value = std::optional<std::string>;
  for (const auto& [ema, scope, value] :
       {std::tuple(true, true, Value("ema")), std::tuple(false, false, Value("")),
        std::tuple(false, true, Value())}) {
    with_ema_ = ema;
    with_scope_ = scope;
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    ASSERT_TRUE(run(folder.path(), sink).finished);
    const WeightsFile file =
        load_weights(find_checkpoints(folder.path()).front().path / "model.safetensors");
    const auto found = file.metadata().find(std::string(kAveragesKey));
    EXPECT_EQ(found == file.metadata().end() ? Value() : found->second, value);
  }
}

TEST_P(ResumeTest, CutInAnEvaluationItEvaluatesAgain) {
  const test::TemporaryFolder uncut_folder;
  test::MemorySink uncut_sink;
  const Outcome uncut = run(uncut_folder.path(), uncut_sink);
  for (std::int64_t batch = 0; batch < 8; ++batch) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    static_cast<void>(run(folder.path(), sink, {.stop_at_val_batch = batch}));
    EXPECT_EQ(run(folder.path(), sink), uncut) << batch;
  }
}

TEST_P(ResumeTest, CutWhileASourcePreparesAPassItUsesNoBatchOfThisPass) {
  // With one batch, an evaluation does not look at the sum that was started after the batch.
  val_batch_size_ = 5;
  const test::TemporaryFolder uncut_folder;
  test::MemorySink uncut_sink;
  const Outcome uncut = run(uncut_folder.path(), uncut_sink);
  for (std::int64_t pass = 0; pass < kEpochs; ++pass) {
    for (const bool training : {true, false}) {
      SCOPED_TRACE(testing::Message() << (training ? "training " : "validation ") << pass);
      const test::TemporaryFolder folder;
      test::MemorySink sink;
      Disturbance cut;
      (training ? cut.stop_at_train_pass : cut.stop_at_val_pass) = pass;
      EXPECT_FALSE(run(folder.path(), sink, cut).finished);
      const nlohmann::json position = saved_position(folder.path());
      EXPECT_EQ(position.at("epoch"), pass);
      EXPECT_EQ(position.at("step"), training ? 0 : kSteps);
      EXPECT_EQ(run(folder.path(), sink), uncut);
    }
  }
}

TEST_P(ResumeTest, CutAgainAndAgainItStillArrives) {
  const test::TemporaryFolder uncut_folder, folder;
  test::MemorySink uncut_sink, sink;
  const Outcome uncut = run(uncut_folder.path(), uncut_sink);
  Outcome last;
  for (std::int64_t step = 0; step < kEpochs * kSteps; step += 2)
    last = run(folder.path(), sink, {.stop_at_step = step});
  EXPECT_EQ(run(folder.path(), sink), uncut);
}

TEST_P(ResumeTest, AFinishedRunKeepsOnlyItsLastAndItsBestCheckpoint) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_TRUE(run(folder.path(), sink).finished);
  const auto kept = find_checkpoints(folder.path());
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(kept[0].step, kEpochs * kSteps);
  EXPECT_LE(kept.size(), 2U);
  // Of epochs with equal metrics, the earliest is the best one.
  double best = -1;
  std::int64_t best_step = 0;
  for (const std::string& record : sink.records) {
    const auto parsed = nlohmann::json::parse(record);
    if (!parsed.contains(best_.name) || parsed.at(best_.name).get<double>() <= best) continue;
    best = parsed.at(best_.name).get<double>();
    best_step = parsed.at("steps").get<std::int64_t>();
  }
  EXPECT_EQ(kept.back().step, best_step);
  EXPECT_EQ(kept.back().metric, best);
}

TEST_P(ResumeTest, TheTimeOfTheLastEvaluationIsCountedOnce) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  const double counted = run(folder.path(), sink).eval_seconds;
  EXPECT_EQ(run(folder.path(), sink).eval_seconds, counted);
}

TEST_P(ResumeTest, TheTimeOfTheFirstEvaluationIsCountedInARunMadeShorter) {
  evaluate_each_epoch_ = false;
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = kSteps}).finished);
  epochs_ = 1;
  const Outcome outcome = run(folder.path(), sink);
  ASSERT_TRUE(outcome.finished);
  EXPECT_GT(outcome.eval_seconds, 0);
  EXPECT_EQ(outcome.eval_seconds, outcome.last_eval_seconds);
}

TEST_P(ResumeTest, AFinishedRunHasACheckpointOfItsEnd) {
  // The numbers of the run's steps and epochs are no multiples of the first two, but of the third.
  for (const auto& [steps, epochs] : {std::pair(0, 2), std::pair(4, 0), std::pair(5, 0)}) {
    SCOPED_TRACE(testing::Message() << steps << " steps, " << epochs << " epochs");
    every_steps_ = steps;
    every_epochs_ = epochs;
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    EXPECT_TRUE(run(folder.path(), sink).finished);
    const auto latest = latest_valid(folder.path());
    ASSERT_TRUE(latest);
    EXPECT_EQ(latest->step, kEpochs * kSteps);
    EXPECT_TRUE(latest->metric);
    EXPECT_EQ(saved_position(folder.path()).at("epoch"), kEpochs);
    steps_.clear();
    EXPECT_TRUE(run(folder.path(), sink).finished);
    EXPECT_TRUE(steps_.empty());
  }
  every_steps_ = 0;
  every_epochs_ = 0;
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_TRUE(run(folder.path(), sink).finished);
  EXPECT_TRUE(find_checkpoints(folder.path()).empty());
}

TEST_P(ResumeTest, ACheckpointAfterTheLastStepOfAnEpochHasTheMetricOfTheEpoch) {
  every_steps_ = kSteps;
  every_epochs_ = 0;
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = kSteps + 1}).finished);
  const auto saved = find_checkpoints(folder.path());
  ASSERT_EQ(saved.size(), 2U);
  EXPECT_FALSE(saved[0].metric);
  EXPECT_EQ(saved[1].step, kSteps);
  EXPECT_TRUE(saved[1].metric);
}

TEST_P(ResumeTest, CutInTheEvaluationOfAFinishedRunTheLastCheckpointKeepsItsMetric) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_TRUE(run(folder.path(), sink).finished);
  const auto before = latest_valid(folder.path());
  ASSERT_TRUE(before && before->metric);
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_val_batch = 0}).finished);
  const auto after = latest_valid(folder.path());
  ASSERT_TRUE(after);
  EXPECT_EQ(after->step, before->step);
  EXPECT_EQ(after->metric, before->metric);
}

TEST_P(ResumeTest, AnotherPrecisionIsRefusedUnlessItIsAllowed) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  precision_ = GetParam() == Precision::fp16 ? Precision::fp32 : Precision::fp16;
  EXPECT_THROW(static_cast<void>(run(folder.path(), sink)), CheckpointError);
  any_precision_ = true;
  EXPECT_TRUE(run(folder.path(), sink).finished);
  EXPECT_EQ(sink.records.size(), static_cast<std::size_t>(kEpochs * (kSteps + 1)));
}

TEST_P(ResumeTest, MissingTensorsAndUnexpectedOnesAreBothReported) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  last_tensor_ = "head.weight";
  EXPECT_THAT([&] { static_cast<void>(run(folder.path(), sink)); },
              testing::ThrowsMessage<CheckpointError>(
                  test::Names("model.safetensors", "head.weight", "1 tensor")));
}

/// Changes the state in the newest checkpoint.
void edit_state(const std::filesystem::path& folder,
                const std::function<void(nlohmann::ordered_json& state)>& edit) {
  const auto latest = latest_valid(folder);
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

TEST_P(ResumeTest, ValuesOfAnotherMetricAreNotCompared) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  // The run is stopped in the second epoch; the first had a top-1.
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  const nlohmann::json before = saved_position(folder.path());
  EXPECT_EQ(before.at("best_epoch"), 0);
  best_ = {.name = "val_loss", .higher_is_better = false};
  EXPECT_TRUE(run(folder.path(), sink).finished);
  std::vector<double> losses;
  for (const std::string& record : sink.records) {
    const auto parsed = nlohmann::json::parse(record);
    if (parsed.contains("val_loss")) losses.push_back(parsed.at("val_loss"));
  }
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(kEpochs));
  const nlohmann::json after = saved_position(folder.path());
  EXPECT_EQ(after.at("best_top_1").get<double>(), std::min(losses[1], losses[2]));
  EXPECT_EQ(after.at("best_epoch").get<int>(), losses[1] <= losses[2] ? 1 : 2);
  EXPECT_EQ(after.at("best_since"), before.at("global_step"));
}

TEST_P(ResumeTest, TheMetricOfAnEarlierVersionsCheckpointIsInItsIdentity) {
  const auto first = best_;
  for (const bool other : {false, true}) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    best_ = first;
    EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 6}).finished);
    // As in the checkpoints of earlier versions.
    edit_state(folder.path(), [](auto& state) { state.at("position").erase("best_metric"); });
    const nlohmann::json before = saved_position(folder.path());
    ASSERT_FALSE(before.contains("best_metric"));
    if (other) best_ = {.name = "val_loss", .higher_is_better = false};
    EXPECT_TRUE(run(folder.path(), sink).finished);
    const nlohmann::json after = saved_position(folder.path());
    EXPECT_EQ(after.at("best_metric"), best_.name);
    EXPECT_EQ(after.at("best_since"), other ? before.at("global_step") : nlohmann::json(0));
  }
}

TEST_P(ResumeTest, TheClockOfASinkContinuesFromTheCheckpoint) {
  for (const bool earlier_version : {false, true}) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    sink.clock = 40;
    EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
    if (earlier_version)
      edit_state(folder.path(), [](auto& state) { state.erase("sink_seconds"); });
    sink.clock = 3;
    EXPECT_TRUE(run(folder.path(), sink).finished);
    EXPECT_EQ(sink.clock, earlier_version ? 3 : 40);
  }
}

TEST_P(ResumeTest, WithHalfTheBatchEachSampleOfTheEpochIsTrainedOnce) {
  for (const bool earlier_version : {false, true}) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    batch_size_ = kBatch;
    samples_.clear();
    EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 6}).finished);
    const std::int64_t step = saved_position(folder.path()).at("step");
    ASSERT_GT(step, 0);
    ASSERT_LT(step, kSteps);
    if (earlier_version) {
      edit_state(folder.path(), [](auto& state) {
        for (const char* key : {"global_batch_size", "steps_per_epoch"})
          state.at("position").erase(key);
      });
    }
    batch_size_ = kBatch / 2;
    steps_.clear();
    EXPECT_TRUE(run(folder.path(), sink).finished);
    std::vector<int> times(kSteps * kBatch);
    for (const std::uint64_t sample : samples_) ++times.at(sample);
    EXPECT_THAT(times, testing::Each(kEpochs));
    // Methods see the numbers of the plan's steps.
    ASSERT_FALSE(steps_.empty());
    EXPECT_EQ(steps_.front(), 2 * (kSteps + step));
    EXPECT_EQ(steps_.back(), 2 * kSteps * kEpochs - 1);
  }
}

TEST_P(ResumeTest, TheLossesOfAnEpochCountTheirSamplesIfTheBatchSizeDiffers) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 6}).finished);
  const std::int64_t step = saved_position(folder.path()).at("step");
  batch_size_ = kBatch / 2;
  EXPECT_TRUE(run(folder.path(), sink).finished);
  double before = 0, after = 0, mean = 0;
  for (const std::string& record : sink.records) {
    const auto parsed = nlohmann::json::parse(record);
    if (parsed.at("epoch") != 1) continue;
    if (parsed.contains("train_loss")) {
      mean = parsed.at("train_loss");
    } else {
      (parsed.at("step") < kSteps + step ? before : after) += parsed.at("loss").get<double>();
    }
  }
  EXPECT_NEAR(mean, (2 * before + after) / (2 * kSteps), 1e-6);
}

TEST_P(ResumeTest, ABatchThatTheFinishedStepsDoNotFillIsRefused) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = kSteps + 1}).finished);
  ASSERT_EQ(saved_position(folder.path()).at("step"), 3);
  batch_size_ = 2 * kBatch;
  const auto refused = [&](const test::NamesMatcher& facts) {
    EXPECT_THAT([&] { static_cast<void>(run(folder.path(), sink)); },
                testing::ThrowsMessage<CheckpointError>(facts));
  };
  refused(test::Names(kBatch, 2 * kBatch, "training.global_batch_size: 4"));
  // 6 of 10 steps, but on other samples.
  batch_size_ = kBatch / 2;
  batch_sets_order_ = true;
  refused(test::Names(kBatch, kBatch / 2, "order"));
  batch_size_ = kBatch;
  EXPECT_TRUE(run(folder.path(), sink).finished);
}

TEST_P(ResumeTest, AnyBatchSizeIsAcceptedAtTheEndOfAnEpoch) {
  batch_sets_order_ = true;
  for (const bool evaluated : {false, true}) {
    const test::TemporaryFolder folder;
    test::MemorySink sink;
    batch_size_ = kBatch;
    if (evaluated) {
      EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 6}).finished);
      std::filesystem::remove_all(latest_valid(folder.path())->path);
    } else {
      EXPECT_FALSE(run(folder.path(), sink, {.stop_at_val_batch = 0}).finished);
    }
    EXPECT_EQ(saved_position(folder.path()).at("step"), evaluated ? 0 : kSteps);
    batch_size_ = 10;
    steps_.clear();
    EXPECT_TRUE(run(folder.path(), sink).finished);
    EXPECT_THAT(steps_, testing::ElementsAre(2, 3, 4, 5));
  }
}

TEST_P(ResumeTest, ReplacedSamplesOfAllItsPartsAreListed) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  replaced_ = {{.sample = 2, .by = 3, .times = 4, .error = "a"},
               {.sample = 7, .by = 8, .times = 1, .error = "b"}};
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  replaced_ = {{.sample = 2, .by = 3, .times = 10, .error = "a"},
               {.sample = 5, .by = 6, .times = 1, .error = "c\xff"}};
  const auto replaced = run(folder.path(), sink).replaced;
  ASSERT_EQ(replaced.size(), 3U);
  EXPECT_EQ(replaced[0].times, 14);
  EXPECT_EQ(replaced[1].sample, 5U);
  EXPECT_EQ(replaced[2].sample, 7U);
  EXPECT_EQ(replaced[2].by, 8U);
  EXPECT_EQ(replaced[2].error, "b");
}

TEST_P(ResumeTest, LoaderTimesAreThoseOfAllItsParts) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  loader_times_ = {.processing = 8, .ahead = 4, .copying = 1};
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  // The second process has decoded for longer than the first, and was ahead for a shorter time.
  loader_times_ = {.processing = 9, .disk = 2, .ahead = 3, .copying = 1};
  const Outcome outcome = run(folder.path(), sink);
  EXPECT_EQ(outcome.loader_times.processing, 17);
  EXPECT_EQ(outcome.loader_times.disk, 2);
  EXPECT_EQ(outcome.loader_times.ahead, 7);
  EXPECT_EQ(outcome.loader_times.copying, 2);
  EXPECT_EQ(nlohmann::json::parse(sink.records.back()).at("loader_time"),
            nlohmann::json::parse(R"({"decoding": 17.0, "reading": 2.0, "blocked": 0.0,
                                      "ahead": 7.0, "copying": 2.0})"));
}

TEST_P(ResumeTest, LoaderTimesContinueFromZeroAfterAnEarlierVersionsCheckpoint) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  loader_times_ = {.processing = 8};
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  edit_state(folder.path(), [](auto& state) { state.at("position").erase("loader_time"); });
  loader_times_ = {.processing = 9};
  EXPECT_EQ(run(folder.path(), sink).loader_times.processing, 9);
}

TEST_P(ResumeTest, TheImagesOfAProcessAreThoseSinceItResumed) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  const Outcome first = run(folder.path(), sink, {.stop_at_step = 7});
  EXPECT_EQ(first.process_images, first.images_trained);
  const Outcome second = run(folder.path(), sink);
  EXPECT_EQ(second.images_trained, kEpochs * kSteps * kBatch);
  EXPECT_EQ(second.process_images, second.images_trained - first.images_trained);
}

TEST_P(ResumeTest, TheNumberOfComputeThreadsIsTakenOverOrAWarningNamesBoth) {
  const int before = at::get_num_threads();
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  at::set_num_threads(2);
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 3}).finished);
  at::set_num_threads(1);
  most_threads_ = 2;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::Not(testing::HasSubstr("OMP_NUM_THREADS")));
  EXPECT_EQ(at::get_num_threads(), 2);
  at::set_num_threads(1);
  most_threads_ = 1;
  testing::internal::CaptureStderr();
  EXPECT_TRUE(run(folder.path(), sink).finished);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              test::Names("warning", "compute threads", 2, 1, "OMP_NUM_THREADS=2"));
  EXPECT_EQ(at::get_num_threads(), 1);
  at::set_num_threads(before);
}

TEST_P(ResumeTest, WithOnlyDamagedCheckpointsItDoesNotStartOver) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  EXPECT_FALSE(run(folder.path(), sink, {.stop_at_step = 7}).finished);
  const std::vector<std::string> records = sink.records;
  for (const StoredCheckpoint& checkpoint : find_checkpoints(folder.path()))
    std::filesystem::resize_file(checkpoint.path / "model.safetensors", 10);
  EXPECT_THAT([&] { static_cast<void>(run(folder.path(), sink)); },
              testing::ThrowsMessage<CheckpointError>(
                  test::Names(folder.path().string(), "logging.run_id")));
  EXPECT_EQ(sink.records, records);
}

TEST_P(ResumeTest, ANumberThatIsNoneEndsTheRunAndIsInNoCheckpoint) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  try {
    static_cast<void>(run(folder.path(), sink, {.nan_at_step = 7}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::diverged);
  }
  EXPECT_GT(sink.records.size(), 0U);
  EXPECT_EQ(sink.flushed, sink.records.size());
  const auto latest = latest_valid(folder.path());
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->step, kSteps);
}

TEST_P(ResumeTest, ASkippedStepLeavesNothingBehind) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  const Outcome skipped = run(folder.path(), sink, {.nan_at_step = 7}, NonFinite::skip);
  EXPECT_TRUE(skipped.finished);
  for (const auto& [name, values] : skipped.tensors) {
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

TEST_P(ResumeTest, AnEpochOfSkippedStepsIsDivergedThoughItsLossesAreFinite) {
  if (GetParam() == Precision::fp16) GTEST_SKIP() << "in fp16, the scale collapses later";
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  try {
    static_cast<void>(run(folder.path(), sink, {.nan_gradients = true}, NonFinite::skip));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::diverged);
  }
  for (const std::string& record : sink.records)
    EXPECT_FALSE(nlohmann::json::parse(record).contains("train_loss")) << record;
}

TEST_P(ResumeTest, GoesBackToTheLastCheckpointWithHalfTheRate) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  // The NaN occurs in every attempt, so the run ends after three restores.
  try {
    static_cast<void>(run(folder.path(), sink, {.nan_at_step = 7}, NonFinite::restore));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::diverged);
    EXPECT_THAT(error.what(), test::Names(3));
    EXPECT_THAT(error.what(), testing::Not(test::Names("training.on_nonfinite")));
  }
  std::vector<double> rates;
  for (const std::string& record : sink.records) {
    const auto parsed = nlohmann::json::parse(record);
    if (parsed.contains("step") && parsed.at("step") == 5) rates.push_back(parsed.at("current_lr"));
  }
  // Each restore rewound the log, so only the records of the last attempt remain.
  ASSERT_EQ(rates.size(), 1U);
  EXPECT_DOUBLE_EQ(rates[0], 0.1 / 8);
}

TEST_P(ResumeTest, StoppedAfterANonFiniteLossItKeepsTheHalvedRate) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  // The request is agreed on only after the next step, whose loss is NaN.
  EXPECT_FALSE(
      run(folder.path(), sink, {.stop_at_step = 6, .nan_at_step = 7}, NonFinite::restore).finished);
  const auto latest = latest_valid(folder.path());
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->step, kSteps);
  EXPECT_TRUE(latest->metric);
  const nlohmann::json position = saved_position(folder.path());
  EXPECT_EQ(position.at("lr_factor"), 0.5);
  EXPECT_EQ(position.at("restores"), 1);
  EXPECT_TRUE(run(folder.path(), sink).finished);
  EXPECT_EQ(saved_position(folder.path()).at("lr_factor"), 0.5);
}

TEST_P(ResumeTest, WithoutACheckpointToGoBackToItEndsWithoutAdviceToGoBack) {
  const test::TemporaryFolder folder;
  test::MemorySink sink;
  for (const NonFinite policy : {NonFinite::stop, NonFinite::restore}) {
    try {
      static_cast<void>(run(folder.path(), sink, {.nan_at_step = 2}, policy));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::diverged);
      EXPECT_EQ(test::names(error.what(), "training.on_nonfinite"), policy == NonFinite::stop);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, ResumeTest, testing::Values(Precision::fp32, Precision::fp16),
                         [](const auto& parameter) {
                           return parameter.param == Precision::fp16 ? "fp16" : "fp32";
                         });

}  // namespace
}  // namespace precast::engine
