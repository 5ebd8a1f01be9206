#include "recipes/methods/mixup_or_cutmix.h"

#include "recipes/methods/mixing.h"

namespace precast::recipes {
namespace {

class MixupOrCutmix final : public MixingMethod {
 public:
  void options(Schema& schema) override {
    schema.add("mixup_alpha", &mixup_alpha_, "the option alpha of mixup").above(0);
    schema.add("cutmix_alpha", &cutmix_alpha_, "the option alpha of cutmix").above(0);
    schema.add("cutmix_share", &cutmix_share_, "fraction of the mixed batches that use CutMix")
        .min(0)
        .max(1);
    MixingMethod::options(schema);
  }

  [[nodiscard]] std::vector<MethodRule> rules() const override { return cut_mix_rules(); }

 private:
  [[nodiscard]] RandomStream stream(std::uint64_t seed, std::uint32_t rank,
                                    std::uint64_t global_step) const override {
    return {derived_seed(seed, "mixup_or_cutmix"), rank, global_step, RandomUse::transform};
  }
  void mix(Batch& batch, RandomStream& random) const override {
    if (random.uniform() < cutmix_share_) {
      cut_mix(batch, random, cutmix_alpha_, partner_distance());
    } else {
      mix_up(batch, random, mixup_alpha_, /*same_lambda=*/true, partner_distance());
    }
  }

  double mixup_alpha_ = 0.2;
  double cutmix_alpha_ = 1;
  double cutmix_share_ = 0.5;
};

}  // namespace

std::unique_ptr<Method> make_mixup_or_cutmix() {
  return std::make_unique<MixupOrCutmix>();
}

}  // namespace precast::recipes
