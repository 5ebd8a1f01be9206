// A train plug-in: a method that works, a model whose constructor throws.
#include <stdexcept>

#include "framework/api/plugin.h"
#include "framework/api/train_plan.h"

namespace {

class HalfEpochs final : public precast::Method {
 public:
  void options(precast::Schema& schema) override {
    schema.add("factor", &factor_, "divides the epochs").min(1);
  }
  void configure(precast::TrainPlan& plan) const override { plan.epochs /= factor_; }

 private:
  std::int64_t factor_ = 2;
};

void add_parts(precast::TrainParts& parts) {
  parts.methods.add("half_epochs", "trains shorter", [] { return std::make_unique<HalfEpochs>(); });
  parts.models.add("unlucky_net", "throws",
                   [](const precast::ModelSpec&) -> std::unique_ptr<precast::Model> {
                     throw std::runtime_error("no weights today");
                   });
}

}  // namespace

PRECAST_TRAIN_PLUGIN(add_parts)
