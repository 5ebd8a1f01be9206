#include "recipes/methods/cutmix.h"

#include "recipes/methods/mixing.h"

namespace precast::recipes {
namespace {

class Cutmix final : public MixingMethod {
 public:
  void options(Schema& schema) override {
    schema
        .add("alpha", &alpha_,
             "both parameters of the Beta distribution of the share that an image keeps")
        .above(0);
    MixingMethod::options(schema);
  }

  [[nodiscard]] std::vector<MethodRule> rules() const override { return cut_mix_rules(); }

 private:
  [[nodiscard]] RandomStream stream(std::uint64_t seed, std::uint32_t rank,
                                    std::uint64_t global_step) const override {
    return {seed, rank, global_step, RandomUse::cutmix};
  }
  void mix(Batch& batch, RandomStream& random) const override {
    cut_mix(batch, random, alpha_, partner_distance());
  }

  double alpha_ = 1;
};

}  // namespace

std::unique_ptr<Method> make_cutmix() {
  return std::make_unique<Cutmix>();
}

}  // namespace precast::recipes
