#include "recipes/methods/mixup.h"

#include "framework/api/batch.h"
#include "framework/api/run_facts.h"
#include "recipes/methods/mixing.h"

namespace precast::recipes {
namespace {

class Mixup final : public Method {
 public:
  [[nodiscard]] bool accepts(TargetKind kind) const override {
    return kind == TargetKind::class_index;
  }
  void options(Schema& schema) override {
    schema.add("alpha", &alpha_, "both parameters of the Beta distribution").above(0);
    schema.add("same_lambda", &same_lambda_,
               "one mixing weight per batch instead of one per sample");
    schema.add("probability", &probability_, "fraction of the batches that are mixed")
        .min(0)
        .max(1);
  }

  void on_run(const RunFacts& run) override { run_ = run; }

  void on_batch(Batch& batch, std::int64_t global_step) override {
    if (probability_ == 0) return;
    RandomStream random(run_.seed, static_cast<std::uint32_t>(run_.rank),
                        static_cast<std::uint64_t>(global_step), RandomUse::mixup);
    // Labels of an unmixed batch become probabilities too, so that shapes stay the same for
    // recorded graphs.
    batch.labels() = class_probabilities(batch.labels(), run_.num_classes);
    if (random.uniform() < probability_) mix_up(batch, random, alpha_, same_lambda_);
  }
  [[nodiscard]] bool records_hooks(int /*world*/) const override { return true; }
  [[nodiscard]] std::optional<double> gradient_bound() const override { return kUnbounded; }

 private:
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
