#include "recipes/methods/cutmix.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/lerp.h>

#include <algorithm>
#include <cmath>

#include "framework/api/batch.h"
#include "framework/api/run_facts.h"
#include "recipes/methods/mixing.h"

namespace precast::recipes {
namespace {

/// From one place to another along one side.
struct Extent {
  std::int64_t begin, end;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// About `middle`, `half` to either side, cut at 0 and `side`.
Extent extent(std::int64_t middle, double share, std::int64_t side) {
  const auto half = static_cast<std::int64_t>(0.5 * share * static_cast<double>(side));
  return {std::max<std::int64_t>(0, middle - half), std::min(side, middle + half)};
}

class Cutmix final : public Method {
 public:
  void options(Schema& schema) override {
    schema.add("alpha", &alpha_, "both parameters of the Beta distribution").above(0);
    schema.add("probability", &probability_, "share of batches mixed").min(0).max(1);
  }

  [[nodiscard]] std::vector<MethodRule> rules() const override {
    return {{MethodRule::Kind::after, "batch_resize",
             "a crop afterwards changes the shares that the labels stand for"}};
  }

  void on_run(const RunFacts& run) override { run_ = run; }

  void on_batch(Batch& batch, std::int64_t global_step) override {
    if (probability_ == 0) return;
    RandomStream random(run_.seed, static_cast<std::uint32_t>(run_.rank),
                        static_cast<std::uint64_t>(global_step), RandomUse::cutmix);
    // Probabilities also of a batch that is not mixed: shapes stay the same for captured graphs.
    batch.labels() = class_probabilities(batch.labels(), run_.num_classes);
    if (random.uniform() < probability_) mix(batch, random);
  }

 private:
  void mix(Batch& batch, RandomStream& random) const {
    const at::Tensor& images = batch.images();
    const std::int64_t height = images.size(2);
    const std::int64_t width = images.size(3);
    const double share = std::sqrt(1 - random_beta(random, alpha_));
    const auto x = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width)));
    const auto y = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(height)));
    const Extent columns = extent(x, share, width);
    const Extent rows = extent(y, share, height);
    const double area = static_cast<double>(rows.size() * columns.size());
    const double own = 1 - area / static_cast<double>(height * width);

    // A copy: the loader's memory may be someone else's too.
    at::Tensor mixed = images.clone();
    const auto box = [&](const at::Tensor& of) {
      return of.narrow(2, rows.begin, rows.size()).narrow(3, columns.begin, columns.size());
    };
    box(mixed).copy_(partners(box(images)));
    batch.images() = mixed;
    batch.labels() = at::lerp(partners(batch.labels()), batch.labels(), own);
  }

  double alpha_ = 1;
  double probability_ = 1;
  RunFacts run_;
};

}  // namespace

std::unique_ptr<Method> make_cutmix() {
  return std::make_unique<Cutmix>();
}

}  // namespace precast::recipes
