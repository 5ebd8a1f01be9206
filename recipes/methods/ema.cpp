#include "recipes/methods/ema.h"

#include "recipes/methods/averaged_weights.h"

namespace precast::recipes {
namespace {

class Ema final : public AveragingMethod {
 public:
  Ema() : AveragingMethod("ema") {}

  void options(Schema& schema) override {
    schema.add("decay", &decay_, "weight of the previous average in the new average")
        .min(0)
        .below(1);
  }

  void on_step_end(Model& model, std::int64_t /*global_step*/) override {
    if (updates_ == 0) {
      copy(model);
    } else {
      update_averages(model, 1 - decay_);
    }
    ++updates_;
  }

 private:
  double decay_ = 0.999;
};

}  // namespace

std::unique_ptr<Method> make_ema() {
  return std::make_unique<Ema>();
}

}  // namespace precast::recipes
