#include "recipes/methods/mixup.h"

#include "recipes/methods/mixing.h"

namespace precast::recipes {
namespace {

class Mixup final : public MixingMethod {
 public:
  void options(Schema& schema) override {
    schema.add("alpha", &alpha_, "both parameters of the Beta distribution of the mixing weight")
        .above(0);
    schema.add("same_lambda", &same_lambda_,
               "one mixing weight per batch instead of one per sample");
    MixingMethod::options(schema);
  }

 private:
  [[nodiscard]] RandomStream stream(std::uint64_t seed, std::uint32_t rank,
                                    std::uint64_t global_step) const override {
    return {seed, rank, global_step, RandomUse::mixup};
  }
  void mix(Batch& batch, RandomStream& random) const override {
    mix_up(batch, random, alpha_, same_lambda_, partner_distance());
  }

  double alpha_ = 0.2;
  bool same_lambda_ = true;
};

}  // namespace

std::unique_ptr<Method> make_mixup() {
  return std::make_unique<Mixup>();
}

}  // namespace precast::recipes
