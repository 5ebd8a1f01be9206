// A user-defined method: annealed Gaussian noise on gradients (Neelakantan et al., "Adding gradient
// noise improves learning for very deep networks", 2015), with variance eta / (1 + step)^gamma.
//
//   methods: [gradient_noise: {eta: 0.01}]
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>

#include <cmath>
#include <memory>

#include "framework/api/plugin.h"
#include "framework/api/run_facts.h"

namespace {

class GradientNoise final : public precast::Method {
 public:
  void options(precast::Schema& schema) override {
    schema.add("eta", &eta_, "variance of the noise at the first step").above(0);
    schema.add("gamma", &gamma_, "exponent of the decay of the variance: eta / (1 + step)^gamma")
        .min(0);
  }

  void on_run(const precast::RunFacts& run) override { seed_ = run.seed; }

  /// Adds the noise. The gradients are already averaged over all ranks, so all ranks must add the
  /// same noise. It therefore depends on the seed and the step, but not on the rank.
  void on_gradients(precast::Model& model) override {
    const at::NoGradGuard no_grad;
    const double deviation = std::sqrt(eta_ / std::pow(1.0 + static_cast<double>(steps_), gamma_));
    const at::Generator generator = at::detail::createCPUGenerator(
        seed_ * 0x9E3779B97F4A7C15 + static_cast<std::uint64_t>(steps_));
    for (const precast::NamedTensor& parameter : model.parameters()) {
      at::Tensor gradient = parameter.tensor.grad();
      if (!gradient.defined()) continue;
      const at::Tensor noise = at::randn(gradient.sizes(), generator);
      gradient.add_(noise.to(gradient.device(), gradient.scalar_type()), deviation);
    }
    ++steps_;
  }

  /// Saves the number of steps, so that a resumed run continues with the right noise.
  [[nodiscard]] precast::State state() const override { return {{}, {{"steps", steps_}}}; }
  void restore(const std::map<std::string, std::int64_t>& counters) override {
    steps_ = counters.at("steps");
  }

 private:
  double eta_ = 0.01;
  double gamma_ = 0.55;
  std::uint64_t seed_ = 0;
  std::int64_t steps_ = 0;
};

void add_parts(precast::TrainParts& parts) {
  parts.methods.add("gradient_noise", "annealed Gaussian noise on gradients",
                    [] { return std::make_unique<GradientNoise>(); });
}

}  // namespace

PRECAST_TRAIN_PLUGIN(add_parts)
