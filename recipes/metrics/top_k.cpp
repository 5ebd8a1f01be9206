#include "recipes/metrics/top_k.h"

#include <ATen/ops/eq.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/topk.h>
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "framework/core/error.h"
#include "recipes/detail/fused_logits.h"

namespace precast::recipes {
namespace {

class TopK final : public Metric {
 public:
  explicit TopK(const TopKOptions& options) : k_(options.k), fused_(options.fused()) {}

  [[nodiscard]] std::string name() const override { return fmt::format("top_{}", k_); }
  [[nodiscard]] bool accepts(TargetKind kind) const override {
    return kind == TargetKind::class_index;
  }
  [[nodiscard]] std::int64_t sums() const override { return 1; }
  [[nodiscard]] at::Tensor count(const at::Tensor& outputs, const Batch& batch) const override {
    const at::Tensor& classes = batch.target();
    require(outputs.dim() == 2 && classes.dim() == 1 && classes.scalar_type() == at::kLong,
            "top_k: logits are [N, classes] and targets [N] int64");
    if (fused_ && detail::can_fuse(outputs, classes))
      return detail::fused_top_k(outputs, classes, k_);
    const at::Tensor best =
        std::get<1>(at::topk(outputs, std::min(k_, outputs.size(1)), /*dim=*/1));
    return at::eq(best, classes.unsqueeze(1)).sum(at::kDouble).unsqueeze(0);
  }
  [[nodiscard]] double value(const at::Tensor& sums, std::int64_t samples) const override {
    return sums[0].item<double>() / static_cast<double>(samples);
  }

 private:
  std::int64_t k_;
  bool fused_;
};

}  // namespace

void TopKOptions::options(Schema& schema) {
  schema.add("k", &k, "a sample is correct if its class is among the k largest logits").min(1);
  KernelChoice::options(schema);
}

std::unique_ptr<Metric> make_top_k(const TopKOptions& options) {
  return std::make_unique<TopK>(options);
}

}  // namespace precast::recipes
