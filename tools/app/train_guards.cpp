#include "tools/app/train_guards.h"

#include <c10/util/Exception.h>

#include <map>
#include <optional>
#include <vector>

#include "framework/engine/out_of_memory.h"
#include "models/detail/blurred_layers.h"
#include "models/detail/fused_layer_counts.h"

namespace precast::tools {
namespace {

template <typename Product>
using Guarded = GuardedPart<TrainGuards, Product>;

class GuardedModel final : public Model,
                           public models::HasBlurredLayers,
                           public models::HasFusedLayerCounts {
 public:
  explicit GuardedModel(Guarded<Model> part) : part_(std::move(part)) {}

  [[nodiscard]] at::Tensor forward(const Batch& batch) override {
    return part_.during("forward", [&](auto& model) { return model.forward(batch); });
  }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    return part_.during("parameters", [](auto& model) { return model.parameters(); });
  }
  [[nodiscard]] std::vector<NamedTensor> state() const override {
    return part_.during("state", [](auto& model) { return model.state(); });
  }
  void train(bool training) override {
    part_.during("train", [&](auto& model) { model.train(training); });
  }
  void to(at::Device device, bool channels_last) override {
    part_.during("to", [&](auto& model) { model.to(device, channels_last); });
  }
  [[nodiscard]] models::BlurredLayers blurred_layers() const override {
    return part_.during("blurred_layers",
                        [](auto& model) { return models::blurred_layers(model); });
  }
  [[nodiscard]] models::FusedLayerCounts fused_layer_counts() const override {
    return part_.during("fused_layer_counts",
                        [](auto& model) { return models::fused_layer_counts(model); });
  }

 private:
  Guarded<Model> part_;
};

/// Guards the state that methods and optimisers save in checkpoints.
template <typename Part>
class GuardedState : public Part {
 public:
  explicit GuardedState(Guarded<Part> part) : part_(std::move(part)) {}

  [[nodiscard]] State state() const override {
    return part_.during("state", [](auto& part) { return part.state(); });
  }
  void restore(const std::map<std::string, std::int64_t>& counters) override {
    part_.during("restore", [&](auto& part) { part.restore(counters); });
  }

 protected:
  Guarded<Part> part_;
};

class GuardedMethod final : public GuardedState<Method> {
 public:
  using GuardedState::GuardedState;

  void options(Schema& schema) override {
    part_.before("options", [&](auto& method) { method.options(schema); });
  }
  [[nodiscard]] std::vector<MethodRule> rules() const override {
    return part_.before("rules", [](auto& method) { return method.rules(); });
  }
  [[nodiscard]] bool accepts(TargetKind kind) const override {
    return part_.before("accepts", [&](auto& method) { return method.accepts(kind); });
  }
  void configure(TrainPlan& plan) const override {
    part_.before("configure", [&](auto& method) { method.configure(plan); });
  }
  [[nodiscard]] std::int64_t smallest_side(std::int64_t size_px) const override {
    return part_.before("smallest_side",
                        [&](auto& method) { return method.smallest_side(size_px); });
  }
  [[nodiscard]] bool varies_between_steps() const override {
    return part_.during("varies_between_steps",
                        [](auto& method) { return method.varies_between_steps(); });
  }
  void on_run(const RunFacts& run) override {
    part_.during("on_run", [&](auto& method) { method.on_run(run); });
  }
  void on_train_begin(Model& model) override {
    part_.during("on_train_begin", [&](auto& method) { method.on_train_begin(model); });
  }
  void on_epoch_begin(std::int64_t epoch, Model& model) override {
    part_.during("on_epoch_begin", [&](auto& method) { method.on_epoch_begin(epoch, model); });
  }
  void on_batch(Batch& batch, std::int64_t global_step) override {
    part_.during("on_batch", [&](auto& method) { method.on_batch(batch, global_step); });
  }
  [[nodiscard]] StepStrategy* step_strategy() override {
    return part_.during("step_strategy", [](auto& method) { return method.step_strategy(); });
  }
  void on_backward(Model& model) override {
    part_.during("on_backward", [&](auto& method) { method.on_backward(model); });
  }
  void on_gradients(Model& model) override {
    part_.during("on_gradients", [&](auto& method) { method.on_gradients(model); });
  }
  [[nodiscard]] std::optional<double> gradient_bound() const override {
    return part_.during("gradient_bound", [](auto& method) { return method.gradient_bound(); });
  }
  [[nodiscard]] bool records_hooks(int world) const override {
    return part_.during("records_hooks", [&](auto& method) { return method.records_hooks(world); });
  }
  void on_step_end(Model& model, std::int64_t global_step) override {
    part_.during("on_step_end", [&](auto& method) { method.on_step_end(model, global_step); });
  }
  [[nodiscard]] std::unique_ptr<EvalGuard> eval_scope(Model& model) override {
    return part_.during("eval_scope", [&](auto& method) { return method.eval_scope(model); });
  }
  [[nodiscard]] bool evaluates_averages() const override {
    return part_.during("evaluates_averages",
                        [](auto& method) { return method.evaluates_averages(); });
  }
};

class GuardedLoss final : public Loss {
 public:
  explicit GuardedLoss(Guarded<Loss> part) : part_(std::move(part)) {}

  [[nodiscard]] TargetKind target_kind() const override {
    return part_.before("target_kind", [](auto& loss) { return loss.target_kind(); });
  }
  [[nodiscard]] at::Tensor operator()(const at::Tensor& outputs,
                                      const Batch& batch) const override {
    return part_.during("operator()", [&](auto& loss) { return loss(outputs, batch); });
  }
  [[nodiscard]] at::Tensor per_sample(const at::Tensor& outputs,
                                      const Batch& batch) const override {
    return part_.during("per_sample", [&](auto& loss) { return loss.per_sample(outputs, batch); });
  }

 private:
  Guarded<Loss> part_;
};

class GuardedMetric final : public Metric {
 public:
  explicit GuardedMetric(Guarded<Metric> part) : part_(std::move(part)) {}

  [[nodiscard]] std::string name() const override {
    return part_.before("name", [](auto& metric) { return metric.name(); });
  }
  [[nodiscard]] bool accepts(TargetKind kind) const override {
    return part_.before("accepts", [&](auto& metric) { return metric.accepts(kind); });
  }
  [[nodiscard]] bool needs_rows() const override {
    return part_.before("needs_rows", [](auto& metric) { return metric.needs_rows(); });
  }
  [[nodiscard]] std::int64_t sums() const override {
    return part_.before("sums", [](auto& metric) { return metric.sums(); });
  }
  [[nodiscard]] at::Tensor count(const at::Tensor& outputs, const Batch& batch) const override {
    return part_.during("count", [&](auto& metric) { return metric.count(outputs, batch); });
  }
  [[nodiscard]] double value(const at::Tensor& sums, std::int64_t samples) const override {
    return part_.during("value", [&](auto& metric) { return metric.value(sums, samples); });
  }
  [[nodiscard]] bool higher_is_better() const override {
    return part_.before("higher_is_better", [](auto& metric) { return metric.higher_is_better(); });
  }

 private:
  Guarded<Metric> part_;
};

class GuardedOptimizer final : public GuardedState<Optimizer> {
 public:
  using GuardedState::GuardedState;

  void step(double lr, const std::optional<Scaled>& scaled) override {
    part_.during("step", [&](auto& optimizer) { optimizer.step(lr, scaled); });
  }
  [[nodiscard]] bool takes_lr_tensor() const override {
    return part_.during("takes_lr_tensor",
                        [](auto& optimizer) { return optimizer.takes_lr_tensor(); });
  }
  void step_with(const at::Tensor& lr, const std::optional<Scaled>& scaled) override {
    part_.during("step_with", [&](auto& optimizer) { optimizer.step_with(lr, scaled); });
  }
  [[nodiscard]] bool step_scaled(const ScaledStep& step) override {
    return part_.during("step_scaled",
                        [&](auto& optimizer) { return optimizer.step_scaled(step); });
  }
};

class GuardedSchedule final : public Schedule {
 public:
  explicit GuardedSchedule(Guarded<Schedule> part) : part_(std::move(part)) {}

  [[nodiscard]] double lr(std::int64_t epoch) const override {
    return part_.during("lr", [&](auto& schedule) { return schedule.lr(epoch); });
  }
  [[nodiscard]] double step_lr(std::int64_t epoch, std::int64_t step,
                               std::int64_t steps_per_epoch) const override {
    return part_.during(
        "step_lr", [&](auto& schedule) { return schedule.step_lr(epoch, step, steps_per_epoch); });
  }
  [[nodiscard]] std::unique_ptr<Schedule> with_epochs(std::int64_t epochs) const override {
    std::unique_ptr<Schedule> other =
        part_.during("with_epochs", [&](auto& schedule) { return schedule.with_epochs(epochs); });
    if (other == nullptr) return nullptr;
    return std::make_unique<GuardedSchedule>(Guarded<Schedule>(std::move(other), part_.where()));
  }

 private:
  Guarded<Schedule> part_;
};

}  // namespace

void TrainGuards::rethrow(const std::string& what, ExitCode otherwise) {
  try {
    throw;
  } catch (c10::Error& error) {
    if (otherwise == ExitCode::failed || engine::is_out_of_memory(error) ||
        dynamic_cast<c10::DistError*>(&error) != nullptr) {
      error.add_context(what);
      throw;
    }
    throw ConfigError(what + ": " + error.what_without_backtrace());
  } catch (...) {
    rethrow_from_plugin(what, otherwise);
  }
}

std::unique_ptr<Model> TrainGuards::guarded(std::unique_ptr<Model> model, std::string where) {
  return std::make_unique<GuardedModel>(Guarded<Model>(std::move(model), std::move(where)));
}

std::unique_ptr<Method> TrainGuards::guarded(std::unique_ptr<Method> method, std::string where) {
  return std::make_unique<GuardedMethod>(Guarded<Method>(std::move(method), std::move(where)));
}

std::unique_ptr<Loss> TrainGuards::guarded(std::unique_ptr<Loss> loss, std::string where) {
  return std::make_unique<GuardedLoss>(Guarded<Loss>(std::move(loss), std::move(where)));
}

std::unique_ptr<Metric> TrainGuards::guarded(std::unique_ptr<Metric> metric, std::string where) {
  return std::make_unique<GuardedMetric>(Guarded<Metric>(std::move(metric), std::move(where)));
}

std::unique_ptr<Optimizer> TrainGuards::guarded(std::unique_ptr<Optimizer> optimizer,
                                                std::string where) {
  return std::make_unique<GuardedOptimizer>(
      Guarded<Optimizer>(std::move(optimizer), std::move(where)));
}

std::unique_ptr<Schedule> TrainGuards::guarded(std::unique_ptr<Schedule> schedule,
                                               std::string where) {
  return std::make_unique<GuardedSchedule>(
      Guarded<Schedule>(std::move(schedule), std::move(where)));
}

}  // namespace precast::tools
