#include "recipes/methods/mixup.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lerp.h>

#include <vector>

#include "framework/api/batch.h"
#include "framework/api/run_facts.h"
#include "recipes/methods/mixing.h"

namespace precast::recipes {
namespace {

class Mixup final : public Method {
 public:
  void options(Schema& schema) override {
    schema.add("alpha", &alpha_, "both parameters of the Beta distribution").above(0);
    schema.add("same_lambda", &same_lambda_, "one share a batch instead of one a sample");
    schema.add("probability", &probability_, "share of batches mixed").min(0).max(1);
  }

  void on_run(const RunFacts& run) override { run_ = run; }

  void on_batch(Batch& batch, std::int64_t global_step) override {
    if (probability_ == 0) return;
    RandomStream random(run_.seed, static_cast<std::uint32_t>(run_.rank),
                        static_cast<std::uint64_t>(global_step), RandomUse::mixup);
    at::Tensor labels = class_probabilities(batch.labels(), run_.num_classes);
    if (random.uniform() < probability_) {
      if (same_lambda_) {
        const double share = random_beta(random, alpha_);
        labels = at::lerp(partners(labels), labels, share);
        batch.images() = at::lerp(partners(batch.images()), batch.images(), share);
      } else {
        const at::Tensor shares = draw(random, batch.size(), labels.device());
        labels = mix(labels, shares);
        batch.images() = mix(batch.images(), shares);
      }
    }
    // Probabilities also of a batch that is not mixed: shapes stay the same for captured graphs.
    batch.labels() = labels;
  }

 private:
  /// [N] float32. From page-locked memory, so that nothing waits for the device.
  [[nodiscard]] at::Tensor draw(RandomStream& random, std::int64_t samples,
                                at::Device device) const {
    const at::Tensor shares =
        at::empty({samples}, at::TensorOptions(at::kFloat).pinned_memory(!device.is_cpu()));
    for (std::int64_t i = 0; i < samples; ++i)
      shares.mutable_data_ptr<float>()[i] = static_cast<float>(random_beta(random, alpha_));
    return shares.to(device, /*non_blocking=*/true);
  }

  /// partner + share * (own - partner), row by row.
  static at::Tensor mix(const at::Tensor& rows, const at::Tensor& shares) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(rows.dim()), 1);
    shape[0] = shares.size(0);
    return at::lerp(partners(rows), rows, shares.view(shape).to(rows.scalar_type()));
  }

  double alpha_ = 0.2;
  bool same_lambda_ = true;
  double probability_ = 1;
  RunFacts run_;
};

}  // namespace

std::unique_ptr<Method> make_mixup() {
  return std::make_unique<Mixup>();
}

}  // namespace precast::recipes
