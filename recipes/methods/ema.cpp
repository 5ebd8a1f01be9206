#include "recipes/methods/ema.h"

#include "recipes/methods/averaged_weights.h"

namespace precast::recipes {
namespace {

constexpr const char* kUpdates = "updates";

class Ema final : public Method {
 public:
  void options(Schema& schema) override {
    schema.add("decay", &decay_, "weight of the previous average in the new average")
        .min(0)
        .below(1);
  }

  void on_train_begin(Model& model) override {
    averages_.start("ema", model);
    updates_ = 0;
  }

  void on_step_end(Model& model, std::int64_t /*global_step*/) override {
    if (updates_ == 0) {
      averages_.copy(model);
    } else {
      averages_.move_towards(model, 1 - decay_);
    }
    ++updates_;
  }

  [[nodiscard]] State state() const override { return {averages_.state(), {{kUpdates, updates_}}}; }
  void restore(const std::map<std::string, std::int64_t>& counters) override {
    updates_ = counters.at(kUpdates);
  }

  [[nodiscard]] std::unique_ptr<EvalGuard> eval_scope(Model& model) override {
    return evaluates_averages() ? averages_.swap_in(model) : nullptr;
  }
  [[nodiscard]] bool evaluates_averages() const override { return updates_ > 0; }
  [[nodiscard]] bool records_hooks(int /*world*/) const override { return true; }
  [[nodiscard]] std::optional<double> gradient_bound() const override { return kUnbounded; }

 private:
  double decay_ = 0.999;
  AveragedWeights averages_;
  /// Number of steps that the averages include.
  std::int64_t updates_ = 0;
};

}  // namespace

std::unique_ptr<Method> make_ema() {
  return std::make_unique<Ema>();
}

}  // namespace precast::recipes
