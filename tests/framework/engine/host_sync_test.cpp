// A training step never waits for the device. No GPU is needed to test this, since operations that
// wait can be recognised by name.
#include <ATen/Parallel.h>
#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/function_schema.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "framework/api/run_facts.h"
#include "framework/api/single_rank.h"
#include "framework/engine/train_step.h"
#include "models/register.h"
#include "models/resnet.h"
#include "recipes/register.h"
#include "tests/recipes/make_method.h"
#include "tests/support/fake_parts.h"
#include "tests/support/part_spec.h"

namespace precast::engine {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kSizePx = 32;
/// With one step per epoch, even methods that act only at the end of an epoch, or from the middle
/// of a run, act in this short run.
constexpr std::int64_t kEpochs = 4;
constexpr std::int64_t kStepsPerEpoch = 1;

/// Operations that make the host wait, because it needs their result or the result's size.
constexpr std::array<std::string_view, 12> kSyncingOps = {
    "aten::_local_scalar_dense", "aten::item",     "aten::is_nonzero", "aten::nonzero",
    "aten::masked_select",       "aten::equal",    "aten::_unique",    "aten::_unique2",
    "aten::unique_consecutive",  "aten::bincount", "aten::unique_dim", "aten::repeat_interleave"};

/// An operation that waits only on CPUs: its CPU kernel reads the step counters on the host, its
/// CUDA kernel reads them on the device.
constexpr std::string_view kWaitsOnCpus = "aten::_fused_adamw_";

/// Whether the call asks to move a tensor to a device without `non_blocking`. In this test, which
/// runs on a CPU, nothing is moved, but the call has the same arguments as on a GPU.
bool is_blocking_move(const at::RecordFunction& call) {
  if (call.name() != std::string_view("aten::to")) return false;
  const std::optional<c10::FunctionSchema> schema = call.operator_schema();
  if (!schema) return false;
  const c10::ArrayRef<const c10::IValue> inputs = call.inputs();
  const auto given = [&](const char* argument) -> const c10::IValue* {
    const std::optional<int> index = schema->argumentIndexWithName(argument);
    return index ? &inputs[static_cast<std::size_t>(*index)] : nullptr;
  };
  const c10::IValue* device = given("device");
  const c10::IValue* non_blocking = given("non_blocking");
  return device != nullptr && !device->isNone() && non_blocking != nullptr &&
         !non_blocking->toBool();
}

/// While this object exists, records the operations that make the host wait, each with the
/// operations that contain it: `aten::index > aten::nonzero`. Only one object may exist at a time.
class HostSyncs {
 public:
  HostSyncs() {
    found().clear();
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(&HostSyncs::enter, &HostSyncs::leave)
            .needsInputs(true)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  }
  HostSyncs(const HostSyncs&) = delete;
  HostSyncs& operator=(const HostSyncs&) = delete;
  ~HostSyncs() { at::removeCallback(handle_); }

  [[nodiscard]] static std::vector<std::string>& found() {
    static std::vector<std::string> calls;
    return calls;
  }

 private:
  static std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& call) {
    // Inside an operation, libtorch converts types by moving a tensor to its own device.
    const bool moves = active_ops().empty() && is_blocking_move(call);
    active_ops().emplace_back(call.name());
    const bool waits =
        std::ranges::find(kSyncingOps, std::string_view(call.name())) != kSyncingOps.end() &&
        active_ops().front() != kWaitsOnCpus;
    if (moves || waits) {
      static std::mutex mutex;
      const std::scoped_lock lock(mutex);
      found().push_back(fmt::format("{}", fmt::join(active_ops(), " > ")));
    }
    return nullptr;
  }
  static void leave(const at::RecordFunction& /*call*/, at::ObserverContext* /*context*/) {
    active_ops().pop_back();
  }
  /// The operations that run in this thread, outermost first.
  static std::vector<std::string>& active_ops() {
    thread_local std::vector<std::string> calls;
    return calls;
  }

  at::CallbackHandle handle_ = 0;
};

MethodRegistry all_methods() {
  MethodRegistry registry("method");
  recipes::register_methods(registry);
  return registry;
}
LossRegistry all_losses() {
  LossRegistry registry("loss");
  recipes::register_losses(registry);
  return registry;
}
OptimizerRegistry all_optimizers() {
  OptimizerRegistry registry("optimizer");
  recipes::register_optimizers(registry);
  return registry;
}
ModelRegistry all_models() {
  ModelRegistry registry("model");
  models::register_models(registry);
  // Takes ResNetOptions, because some methods set options of residual networks.
  registry.add<models::ResNetOptions>(
      "linear", "for tests", [](const ModelSpec& spec, const models::ResNetOptions&) {
        return std::make_unique<test::LinearModel>(spec.num_classes);
      });
  // Every kind of layer of the large residual networks, in a fraction of their time.
  registry.add<models::ResNetOptions>(
      "small_resnet", "for tests", [](const ModelSpec& spec, const models::ResNetOptions& options) {
        return models::make_resnet(
            {.bottleneck = true, .blocks = {1, 1, 1, 1}, .width_per_group = 16}, spec, options);
      });
  return registry;
}

/// Random targets of this kind. `probabilities`: class probabilities instead of class indices.
at::Tensor make_target(TargetKind kind, bool probabilities) {
  if (kind == TargetKind::values) return at::rand({kBatch, kClasses});
  if (kind == TargetKind::multi_hot) return at::randint(2, {kBatch, kClasses}, at::kByte);
  if (kind == TargetKind::class_mask)
    return at::randint(kClasses, {kBatch, kSizePx, kSizePx}, at::kByte);
  return probabilities ? at::full({kBatch, kClasses}, 1.0 / kClasses)
                       : at::randint(kClasses, {kBatch}, at::kLong);
}

Batch make_batch(TargetKind kind, bool probabilities) {
  return {.fields = {{"image", at::rand({kBatch, 3, kSizePx, kSizePx})
                                   .contiguous(at::MemoryFormat::ChannelsLast)},
                     {"label", make_target(kind, probabilities)}},
          .sample_ids = std::vector<std::uint64_t>(kBatch)};
}

/// A training run of a few steps, with the hooks of its methods.
class ShortRun {
 public:
  ShortRun() {
    // There is so little work that threads would mostly wait for each other.
    at::set_num_threads(1);
    plan_.model.arch = "linear";
    plan_.model.num_classes = kClasses;
    plan_.epochs = kEpochs;
    plan_.steps_per_epoch = kStepsPerEpoch;
    plan_.global_batch_size = kBatch;
    plan_.image_size_px = std::vector<std::int64_t>(kEpochs, kSizePx);
    plan_.channels_last = true;
    plan_.peak_lr = 1e-3;
  }

  TrainPlan& plan() { return plan_; }
  /// Chooses a model with outputs for targets of this kind.
  void read_targets(TargetKind kind) {
    plan_.model.targets = kind;
    if (kind != TargetKind::class_mask) return;
    plan_.model.arch = "layers";
    plan_.model.params = test::part_spec("", "{layers: [conv: {out: 0, kernel: 1}]}").options;
  }
  void add(const std::string& name, std::unique_ptr<Method> method) {
    method->configure(plan_);
    methods_.push_back({name, std::move(method)});
  }

  /// @return the operations that make the host wait, in all steps except the first and in the
  /// methods' hooks of these steps.
  std::vector<std::string> syncs(bool skip_nonfinite = false, bool probabilities = false) {
    at::manual_seed(1);
    const auto model = make_model(all_models(), plan_.model);
    model->to(at::kCPU, plan_.channels_last);
    model->train(true);
    const auto loss = all_losses().make(plan_.loss);
    const auto optimizer =
        all_optimizers().make(plan_.optimizer, {model->parameters(), plan_.peak_lr});
    const auto ranks = make_single_rank();
    const auto sync = make_single_rank_sync();
    TrainStep step(plan_, {*model, *loss, *optimizer, methods_, *ranks, *sync}, at::kCPU,
                   skip_nonfinite);
    begin(*model);
    std::vector<std::string> all;
    for (std::int64_t i = 0; i < kEpochs * kStepsPerEpoch; ++i) {
      if (i % kStepsPerEpoch == 0) begin_epoch(i / kStepsPerEpoch, *model);
      Batch batch = make_batch(loss->target_kind(), probabilities);
      const HostSyncs syncs;
      take(step, *model, batch, i);
      if (i > 0) all.insert(all.end(), syncs.found().begin(), syncs.found().end());
    }
    return all;
  }

 private:
  void begin(Model& model) {
    for (NamedMethod& method : methods_) {
      method.method->on_run(
          {.num_classes = kClasses, .epochs = kEpochs, .steps_per_epoch = kStepsPerEpoch});
      method.method->on_train_begin(model);
    }
  }
  void begin_epoch(std::int64_t epoch, Model& model) {
    for (NamedMethod& method : methods_) method.method->on_epoch_begin(epoch, model);
  }
  void take(TrainStep& step, Model& model, Batch& batch, std::int64_t number) {
    for (NamedMethod& method : methods_) method.method->on_batch(batch, number);
    static_cast<void>(step.run(batch, /*lr=*/1e-3));
    for (NamedMethod& method : methods_) method.method->on_step_end(model, number);
  }

  TrainPlan plan_;
  std::vector<NamedMethod> methods_;
};

/// Waits for the device in the way that `sync_kind` names.
class WaitingMethod final : public Method {
 public:
  explicit WaitingMethod(std::string sync_kind) : sync_kind_(std::move(sync_kind)) {}
  void on_batch(Batch& batch, std::int64_t /*global_step*/) override {
    if (sync_kind_ == "move") batch.labels() = batch.labels().to(at::Device(at::kCPU));
    if (sync_kind_ == "mask")
      static_cast<void>(batch.images().index({batch.images() > 0.5}));  // the host needs the size
  }
  void on_gradients(Model& model) override {
    if (sync_kind_ == "item") sum_ += model.parameters()[0].tensor.grad().sum().item<double>();
  }
  void on_step_end(Model& model, std::int64_t /*global_step*/) override {
    if (sync_kind_ == "branch" && (model.parameters()[0].tensor.sum() > 0).is_nonzero()) sum_ += 1;
  }

 private:
  std::string sync_kind_;
  double sum_ = 0;
};

TEST(HostSync, PlantedOnesAreFound) {
  const std::pair<const char*, const char*> planted[] = {{"item", "aten::_local_scalar_dense"},
                                                         {"move", "aten::to"},
                                                         {"mask", "aten::nonzero"},
                                                         {"branch", "aten::is_nonzero"}};
  for (const auto& [sync_kind, operation] : planted) {
    ShortRun run;
    run.add(sync_kind, std::make_unique<WaitingMethod>(sync_kind));
    EXPECT_THAT(run.syncs(), Contains(HasSubstr(operation))) << sync_kind;
  }
}

TEST(HostSync, NoneInPlainStepsOfAnyPrecision) {
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
    for (const bool skip_nonfinite : {false, true}) {
      ShortRun run;
      run.plan().precision = precision;
      run.plan().micro_batches = 2;
      EXPECT_THAT(run.syncs(skip_nonfinite), IsEmpty()) << static_cast<int>(precision);
    }
  }
}

TEST(HostSync, NoneInResNets) {
  for (const char* model : {"resnet18", "resnet50"}) {
    ShortRun run;
    run.plan().model.arch = model;
    EXPECT_THAT(run.syncs(), IsEmpty()) << model;
  }
}

class EachMethod : public ::testing::TestWithParam<std::string> {};

TEST_P(EachMethod, HasNoHostSyncInAStep) {
  ShortRun run;
  run.plan().model.arch = "small_resnet";
  run.add(GetParam(), test::make_method(GetParam()));
  EXPECT_THAT(run.syncs(), IsEmpty());
}

/// Uses the linear model, because CPUs have no fast convolution in fp16.
TEST_P(EachMethod, HasNoHostSyncInAScaledStep) {
  ShortRun run;
  run.add(GetParam(), test::make_method(GetParam()));
  run.plan().precision = Precision::fp16;
  EXPECT_THAT(run.syncs(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(HostSync, EachMethod, ::testing::ValuesIn(all_methods().names()),
                         [](const auto& name) { return name.param; });

std::string loss_options(const std::string& loss) {
  const std::map<std::string, std::string> options = {
      {"cross_entropy", "{label_smoothing: 0.1}"},
      {"bce", "{label_smoothing: 0.1, target_threshold: 0.2}"},
      {"multi_label_bce", "{pos_weight: 2}"}};
  const auto found = options.find(loss);
  return found == options.end() ? "" : found->second;
}

class EachLoss : public ::testing::TestWithParam<std::string> {};

TEST_P(EachLoss, HasNoHostSyncInAStep) {
  for (const bool probabilities : {false, true}) {
    for (const Precision precision : {Precision::fp32, Precision::fp16}) {
      ShortRun run;
      run.plan().precision = precision;
      run.plan().loss = test::part_spec(GetParam(), loss_options(GetParam()));
      run.read_targets(all_losses().make(run.plan().loss)->target_kind());
      // This method requests the loss of each sample.
      run.add("selective_backprop", test::make_method("selective_backprop"));
      EXPECT_THAT(run.syncs(/*skip_nonfinite=*/false, probabilities), IsEmpty()) << probabilities;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HostSync, EachLoss, ::testing::ValuesIn(all_losses().names()),
                         [](const auto& name) { return name.param; });

class EachOptimizer : public ::testing::TestWithParam<std::string> {};

TEST_P(EachOptimizer, HasNoHostSyncInAStep) {
  ShortRun run;
  run.plan().model.arch = "resnet18";
  run.plan().optimizer.name = GetParam();
  EXPECT_THAT(run.syncs(), IsEmpty());
}

TEST_P(EachOptimizer, HasNoHostSyncInAScaledOrSkippableStep) {
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    ShortRun run;
    run.plan().precision = precision;
    run.plan().optimizer.name = GetParam();
    EXPECT_THAT(run.syncs(/*skip_nonfinite=*/true), IsEmpty()) << static_cast<int>(precision);
  }
}

INSTANTIATE_TEST_SUITE_P(HostSync, EachOptimizer, ::testing::ValuesIn(all_optimizers().names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace precast::engine
