#include "recipes/methods/mixing.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/random_variables.h"

namespace precast::recipes {
namespace {

/// Returns [N] float32, copied from page-locked memory so that nothing waits for the device.
at::Tensor draw_shares(RandomStream& random, std::int64_t samples, double alpha,
                       at::Device device) {
  const at::Tensor shares =
      at::empty({samples}, at::TensorOptions(at::kFloat).pinned_memory(!device.is_cpu()));
  for (std::int64_t i = 0; i < samples; ++i)
    shares.mutable_data_ptr<float>()[i] = static_cast<float>(random_beta(random, alpha));
  return shares.to(device, /*non_blocking=*/true);
}

/// partner + share * (own - partner), row by row.
at::Tensor mix_rows(const at::Tensor& rows, const at::Tensor& shares) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rows.dim()), 1);
  shape[0] = shares.size(0);
  return at::lerp(partners(rows), rows, shares.view(shape).to(rows.scalar_type()));
}

/// A range of pixels along one side.
struct Extent {
  std::int64_t begin, end;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// The range around `middle` that covers the fraction `share` of `side`, clipped to [0, `side`].
Extent extent(std::int64_t middle, double share, std::int64_t side) {
  const auto half = static_cast<std::int64_t>(0.5 * share * static_cast<double>(side));
  return {std::max<std::int64_t>(0, middle - half), std::min(side, middle + half)};
}

}  // namespace

std::vector<MethodRule> cut_mix_rules() {
  return {{MethodRule::Kind::after, "batch_resize",
           "a crop after mixing changes the share of each image, but not the labels"}};
}

at::Tensor class_probabilities(const at::Tensor& labels, std::int64_t classes) {
  if (labels.is_floating_point()) return labels;
  require(labels.dim() == 1, "labels are [N] class indices or [N, classes] probabilities");
  // Not one_hot(), which waits for the device to check the indices.
  at::Tensor probabilities =
      at::zeros({labels.size(0), classes}, labels.options().dtype(at::kFloat));
  return probabilities.scatter_(1, labels.unsqueeze(1), 1.0);
}

at::Tensor partners(const at::Tensor& rows) {
  const std::int64_t count = rows.size(0);
  return at::cat({rows.narrow(0, count - 1, 1), rows.narrow(0, 0, count - 1)});
}

void mix_up(Batch& batch, double share) {
  batch.labels() = at::lerp(partners(batch.labels()), batch.labels(), share);
  batch.images() = at::lerp(partners(batch.images()), batch.images(), share);
}

void mix_up(Batch& batch, RandomStream& random, double alpha, bool same_lambda) {
  if (same_lambda) return mix_up(batch, random_beta(random, alpha));
  const at::Tensor shares = draw_shares(random, batch.size(), alpha, batch.labels().device());
  batch.labels() = mix_rows(batch.labels(), shares);
  batch.images() = mix_rows(batch.images(), shares);
}

void cut_mix(Batch& batch, double share, std::int64_t x, std::int64_t y) {
  const at::Tensor& images = batch.images();
  const std::int64_t height = images.size(2);
  const std::int64_t width = images.size(3);
  const double side = std::sqrt(1 - share);
  const Extent columns = extent(x, side, width);
  const Extent rows = extent(y, side, height);
  const double area = static_cast<double>(rows.size() * columns.size());
  const double own = 1 - area / static_cast<double>(height * width);

  // Changes a copy, because the loader's memory may be shared.
  at::Tensor mixed = images.clone();
  const auto box = [&](const at::Tensor& of) {
    return of.narrow(2, rows.begin, rows.size()).narrow(3, columns.begin, columns.size());
  };
  box(mixed).copy_(partners(box(images)));
  batch.images() = mixed;
  batch.labels() = at::lerp(partners(batch.labels()), batch.labels(), own);
}

void cut_mix(Batch& batch, RandomStream& random, double alpha) {
  const double share = random_beta(random, alpha);
  const auto place = [&](std::int64_t side) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(side)));
  };
  const std::int64_t x = place(batch.images().size(3));
  cut_mix(batch, share, x, place(batch.images().size(2)));
}

}  // namespace precast::recipes
