// A train plug-in with parts that work, and parts that fail in different ways.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "framework/api/plugin.h"
#include "framework/api/train_plan.h"

namespace {

class HalfEpochs final : public precast::Method {
 public:
  void options(precast::Schema& schema) override {
    schema.add("factor", &factor_, "divides the epochs").min(1);
  }
  void configure(precast::TrainPlan& plan) const override {
    plan.epochs /= factor_;
    plan.image_size_px.resize(static_cast<std::size_t>(plan.epochs));
  }

 private:
  std::int64_t factor_ = 2;
};

/// @param kind the kind of exception to throw.
[[noreturn]] void fail(const std::string& kind) {
  if (kind == "int") throw 42;
  if (kind == "memory") throw c10::OutOfMemoryError({__func__, __FILE__, 1}, "no memory left");
  if (kind == "libtorch") C10_THROW_ERROR(ValueError, "wrong shape");
  if (kind == "io") throw precast::IoError("disk gone");
  throw std::runtime_error("no luck today");
}

/// Throws in one of its member functions.
class ThrowingMethod final : public precast::Method {
 public:
  void options(precast::Schema& schema) override {
    schema.add("member", &member_, "the function that throws");
    schema.add("kind", &kind_, "the kind of exception");
  }
  [[nodiscard]] std::vector<precast::MethodRule> rules() const override {
    return at("rules"), std::vector<precast::MethodRule>{};
  }
  void configure(precast::TrainPlan&) const override { at("configure"); }
  void on_run(const precast::RunFacts&) override { at("on_run"); }
  void on_train_begin(precast::Model&) override { at("on_train_begin"); }
  void on_epoch_begin(std::int64_t, precast::Model&) override { at("on_epoch_begin"); }
  void on_batch(precast::Batch&, std::int64_t) override { at("on_batch"); }
  precast::StepStrategy* step_strategy() override { return at("step_strategy"), nullptr; }
  void on_backward(precast::Model&) override { at("on_backward"); }
  void on_gradients(precast::Model&) override { at("on_gradients"); }
  [[nodiscard]] std::optional<double> gradient_bound() const override {
    return at("gradient_bound"), std::nullopt;
  }
  [[nodiscard]] bool records_hooks(int) const override { return at("records_hooks"), true; }
  void on_step_end(precast::Model&, std::int64_t) override { at("on_step_end"); }
  std::unique_ptr<EvalGuard> eval_scope(precast::Model&) override {
    return at("eval_scope"), nullptr;
  }
  [[nodiscard]] precast::State state() const override { return at("state"), precast::State{}; }
  void restore(const std::map<std::string, std::int64_t>&) override { at("restore"); }

 private:
  void at(const std::string& member) const {
    if (member == member_) fail(kind_);
  }
  std::string member_, kind_;
};

/// Implements with_epochs(), which throws for an odd number of epochs.
class OddWarmup final : public precast::Schedule {
 public:
  explicit OddWarmup(std::int64_t epochs) : epochs_(epochs) {}
  [[nodiscard]] double lr(std::int64_t) const override { return static_cast<double>(epochs_); }
  [[nodiscard]] std::unique_ptr<precast::Schedule> with_epochs(std::int64_t epochs) const override {
    if (epochs % 2 == 1) fail("text");
    return std::make_unique<OddWarmup>(epochs);
  }

 private:
  std::int64_t epochs_;
};

/// The options of an optimiser that precast does not have.
struct SignOptions {
  double shrink = 0.5;

  void options(precast::Schema& schema) {
    schema.add("shrink", &shrink, "factor of the rate").above(0).max(1);
  }
};

/// Sign descent (Bernstein et al., ICML 2018): all weights change by the same amount.
class SignDescent final : public precast::Optimizer {
 public:
  SignDescent(const precast::OptimizerInputs& inputs, const SignOptions& options)
      : parameters_(inputs.parameters), shrink_(options.shrink) {}
  void step(double lr, const std::optional<Scaled>&) override {
    const at::NoGradGuard no_grad;
    for (const precast::NamedTensor& parameter : parameters_)
      parameter.tensor.sub_(parameter.tensor.grad().sign(), lr * shrink_);
  }
  [[nodiscard]] precast::State state() const override { return {}; }

 private:
  std::vector<precast::NamedTensor> parameters_;
  double shrink_;
};

std::unique_ptr<precast::Optimizer> make_sign(const precast::OptimizerInputs& inputs,
                                              const SignOptions& options) {
  return std::make_unique<SignDescent>(inputs, options);
}

struct MarginOptions {
  double margin = 1;

  void options(precast::Schema& schema) { schema.add("margin", &margin, "added").min(0); }
};

/// The mean output plus a margin.
class Margin final : public precast::Loss {
 public:
  explicit Margin(double margin) : margin_(margin) {}
  [[nodiscard]] at::Tensor operator()(const at::Tensor& outputs,
                                      const precast::Batch& /*batch*/) const override {
    return outputs.mean() + margin_;
  }

 private:
  double margin_;
};

std::unique_ptr<precast::Loss> make_margin(const MarginOptions& options) {
  return std::make_unique<Margin>(options.margin);
}

/// The mean squared difference of outputs and input: the loss of an autoencoder, which needs no
/// targets.
class Copy final : public precast::Loss {
 public:
  [[nodiscard]] precast::TargetKind target_kind() const override {
    return precast::TargetKind::none;
  }
  [[nodiscard]] at::Tensor operator()(const at::Tensor& outputs,
                                      const precast::Batch& batch) const override {
    return (outputs - batch.input()).square().mean();
  }
};

struct ShareOptions {
  std::int64_t of = 0;

  void options(precast::Schema& schema) { schema.add("of", &of, "a class").min(0); }
};

/// The fraction of samples that are in one class.
class Share final : public precast::Metric {
 public:
  explicit Share(std::int64_t of) : of_(of) {}
  [[nodiscard]] std::string name() const override { return "share_of_" + std::to_string(of_); }
  [[nodiscard]] std::int64_t sums() const override { return 1; }
  [[nodiscard]] at::Tensor count(const at::Tensor& /*outputs*/,
                                 const precast::Batch& batch) const override {
    return batch.target().eq(of_).sum(at::kDouble).unsqueeze(0);
  }
  [[nodiscard]] double value(const at::Tensor& sums, std::int64_t samples) const override {
    return sums[0].item<double>() / static_cast<double>(samples);
  }

 private:
  std::int64_t of_;
};

std::unique_ptr<precast::Metric> make_share(const ShareOptions& options) {
  return std::make_unique<Share>(options.of);
}

/// Declares one sum and returns two.
class Miscount final : public precast::Metric {
 public:
  [[nodiscard]] std::string name() const override { return "miscount"; }
  [[nodiscard]] std::int64_t sums() const override { return 1; }
  [[nodiscard]] at::Tensor count(const at::Tensor& outputs,
                                 const precast::Batch& /*batch*/) const override {
    return at::zeros({2}, outputs.options().dtype(at::kDouble));
  }
  [[nodiscard]] double value(const at::Tensor& sums, std::int64_t /*samples*/) const override {
    return sums[0].item<double>();
  }
};

struct HalvingOptions {
  std::int64_t every = 1;

  void options(precast::Schema& schema) { schema.add("every", &every, "epochs").min(1); }
};

/// Halves the rate every few epochs.
class Halving final : public precast::Schedule {
 public:
  Halving(double lr, std::int64_t every) : lr_(lr), every_(every) {}
  [[nodiscard]] double lr(std::int64_t epoch) const override {
    return lr_ / static_cast<double>(std::int64_t{1} << epoch / every_);
  }

 private:
  double lr_;
  std::int64_t every_;
};

std::unique_ptr<precast::Schedule> make_halving(const precast::ScheduleInputs& inputs,
                                                const HalvingOptions& options) {
  return std::make_unique<Halving>(inputs.lr, options.every);
}

/// Throws in its forward pass.
class ThrowingModel final : public precast::ImageModel {
 public:
  at::Tensor classify(const at::Tensor&) override { fail("libtorch"); }
  [[nodiscard]] std::vector<precast::NamedTensor> parameters() const override { return {}; }
  [[nodiscard]] std::vector<precast::NamedTensor> state() const override { return {}; }
  void train(bool) override {}
  void to(at::Device, bool) override {}
};

/// Has a buffer of a type that weights files cannot store.
class ComplexBuffer final : public precast::ImageModel {
 public:
  explicit ComplexBuffer(std::int64_t classes)
      : weight_(at::zeros({classes}).set_requires_grad(true)) {}
  at::Tensor classify(const at::Tensor& images) override {
    return images.mean({1, 2, 3}).unsqueeze(1) * weight_;
  }
  [[nodiscard]] std::vector<precast::NamedTensor> parameters() const override {
    return {{"weight", weight_}};
  }
  [[nodiscard]] std::vector<precast::NamedTensor> state() const override {
    return {{"weight", weight_}, {"phases", phases_}};
  }
  void train(bool) override {}
  void to(at::Device, bool) override {}

 private:
  at::Tensor weight_;
  at::Tensor phases_ = at::zeros({2}, at::kComplexFloat);
};

void add_parts(precast::TrainParts& parts) {
  parts.methods.add("half_epochs", "trains shorter", [] { return std::make_unique<HalfEpochs>(); });
  parts.methods.add("unlucky", "throws", [] { return std::make_unique<ThrowingMethod>(); });
  for (const char* kind : {"int", "memory", "libtorch", "io", "text"}) {
    parts.models.add(
        std::string("unlucky_") + kind, "throws when it is created",
        [kind](const precast::ModelSpec&) -> std::unique_ptr<precast::Model> { fail(kind); });
  }
  parts.optimizers.add("sign", "updates of equal size", make_sign);
  parts.losses.add("margin", "the mean output and a margin", make_margin);
  parts.losses.add("copy", "distance of the outputs from the input",
                   [] { return std::make_unique<Copy>(); });
  parts.metrics.add("share", "share of the samples of a class", make_share);
  parts.metrics.add("miscount", "returns more sums than it declares",
                    [] { return std::make_unique<Miscount>(); });
  parts.schedules.add("halving", "halves the rate every few epochs", make_halving);
  parts.schedules.add("odd_warmup", "its rate is its number of epochs",
                      [](const precast::ScheduleInputs& inputs) {
                        return std::make_unique<OddWarmup>(inputs.epochs);
                      });
  parts.models.add("unlucky_forward", "throws when it runs",
                   [](const precast::ModelSpec&) { return std::make_unique<ThrowingModel>(); });
  parts.models.add("complex_buffer", "has a buffer that cannot be stored",
                   [](const precast::ModelSpec& spec) {
                     return std::make_unique<ComplexBuffer>(spec.num_classes);
                   });
}

}  // namespace

PRECAST_TRAIN_PLUGIN(add_parts)
