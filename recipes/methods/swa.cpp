#include "recipes/methods/swa.h"

#include <algorithm>

#include "framework/api/run_facts.h"
#include "recipes/methods/averaged_weights.h"
#include "recipes/methods/run_shares.h"

namespace precast::recipes {
namespace {

class Swa final : public AveragingMethod {
 public:
  Swa() : AveragingMethod("swa") {}

  void options(Schema& schema) override {
    schema.add("start", &start_, "fraction of the run before the first update").min(0).max(1);
    schema.add("interval", &interval_, "epochs between updates").min(1);
  }
  [[nodiscard]] std::vector<MethodRule> rules() const override {
    return {{MethodRule::Kind::not_with, "ema", "both determine which average is evaluated"}};
  }

  void on_run(const RunFacts& run) override { run_ = run; }
  void on_epoch_begin(std::int64_t epoch, Model& /*model*/) override {
    // If a finished run continues with more epochs, its mean may contain epochs before the new
    // first_epoch(). `epoch` counts from 0, first_epoch() from 1. At the start of first_epoch(),
    // the mean is not dropped, because it may already contain this epoch: a run that was stopped
    // during the evaluation resumes in the same epoch.
    if (epoch + 1 < first_epoch()) updates_ = 0;
  }

  void on_step_end(Model& model, std::int64_t global_step) override {
    const std::int64_t steps = global_step + 1;
    if (steps % run_.steps_per_epoch != 0) return;
    const std::int64_t epoch = steps / run_.steps_per_epoch;
    if ((epoch - first_epoch()) % interval_ != 0 || epoch < first_epoch()) return;
    if (epoch == first_epoch()) updates_ = 0;  // drops the mean of a shorter run
    ++updates_;
    update_averages(model, 1 / static_cast<double>(updates_));
  }

 private:
  /// The first epoch, counted from 1, that ends at or after the start of averaging.
  [[nodiscard]] std::int64_t first_epoch() const {
    return std::max<std::int64_t>(1, ceil_share(start_, run_.epochs));
  }

  double start_ = 0.7;
  std::int64_t interval_ = 1;
  RunFacts run_;
};

}  // namespace

std::unique_ptr<Method> make_swa() {
  return std::make_unique<Swa>();
}

}  // namespace precast::recipes
