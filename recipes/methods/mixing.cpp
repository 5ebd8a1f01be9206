#include "recipes/methods/mixing.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/random_variables.h"
#include "recipes/methods/batch_inputs.h"

namespace precast::recipes {
namespace {

/// Draws a share for each sample from Beta(alpha, alpha): [N] float32. Copies the shares from
/// page-locked memory, so that nothing waits for the device.
at::Tensor draw_shares(RandomStream& random, std::int64_t samples, double alpha,
                       at::Device device) {
  const at::Tensor shares =
      at::empty({samples}, at::TensorOptions(at::kFloat).pinned_memory(!device.is_cpu()));
  for (std::int64_t i = 0; i < samples; ++i)
    shares.mutable_data_ptr<float>()[i] = static_cast<float>(random_beta(random, alpha));
  return shares.to(device, /*non_blocking=*/true);
}

/// partner + share * (own - partner), row by row.
at::Tensor mix_rows(const at::Tensor& rows, const at::Tensor& shares, std::int64_t distance) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rows.dim()), 1);
  shape[0] = shares.size(0);
  return at::lerp(partners(rows, distance), rows, shares.view(shape).to(rows.scalar_type()));
}

/// Replaces each input by `mixed(input)`. @throws ConfigError for an input that cannot be mixed
void mix_inputs(Batch& batch, const auto& mixed) {
  for (const std::size_t i : input_fields(batch)) {
    auto& [name, input] = batch.fields.at(i);
    if (!input.is_floating_point()) {
      throw ConfigError(
          fmt::format("data.inputs: expected inputs of a floating-point type, because mixup mixes "
                      "them, got '{}' of type {}",
                      name, c10::toString(input.scalar_type())));
    }
    input = mixed(input);
  }
}

/// @throws ConfigError if an input is not an image
void check_images(const Batch& batch) {
  for (const std::size_t i : input_fields(batch)) {
    const auto& [name, input] = batch.fields.at(i);
    if (is_image(input)) continue;
    throw ConfigError(fmt::format(
        "data.inputs: expected images [N, C, H, W], because cutmix mixes them, got '{}' with {} "
        "dimensions",
        name, input.dim()));
  }
}

/// A range of pixels along one side.
struct Extent {
  std::int64_t begin, end;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// The range around `centre` that covers the fraction `share` of `side`, clipped to [0, `side`].
Extent extent(std::int64_t centre, double share, std::int64_t side) {
  const auto half = static_cast<std::int64_t>(0.5 * share * static_cast<double>(side));
  return {std::max<std::int64_t>(0, centre - half), std::min(side, centre + half)};
}

/// A rectangle of pixels.
struct Box {
  Extent rows, columns;
  [[nodiscard]] double area() const { return static_cast<double>(rows.size() * columns.size()); }
  [[nodiscard]] at::Tensor crop(const at::Tensor& images) const {
    return images.narrow(2, rows.begin, rows.size()).narrow(3, columns.begin, columns.size());
  }
};

}  // namespace

std::vector<MethodRule> cut_mix_rules() {
  return {{MethodRule::Kind::after, "batch_resize",
           "a crop after mixing changes the share of each image, but not the labels"}};
}

at::Tensor class_probabilities(const at::Tensor& labels, std::int64_t classes) {
  if (labels.is_floating_point()) return labels;
  require(labels.dim() == 1, "labels are [N] class indices or [N, classes] probabilities");
  // one_hot() is not used, because it waits for the device to check the indices.
  at::Tensor probabilities =
      at::zeros({labels.size(0), classes}, labels.options().dtype(at::kFloat));
  return probabilities.scatter_(1, labels.unsqueeze(1), 1.0);
}

at::Tensor partners(const at::Tensor& rows, std::int64_t distance) {
  const std::int64_t count = rows.size(0);
  const std::int64_t end = std::min(distance, std::max<std::int64_t>(1, count / 2));
  return at::cat({rows.narrow(0, count - end, end), rows.narrow(0, 0, count - end)});
}

void mix_up(Batch& batch, double share, std::int64_t distance) {
  const auto mixed = [&](const at::Tensor& rows) {
    return at::lerp(partners(rows, distance), rows, share);
  };
  batch.labels() = mixed(batch.labels());
  mix_inputs(batch, mixed);
}

void mix_up(Batch& batch, RandomStream& random, double alpha, bool same_lambda,
            std::int64_t distance) {
  if (same_lambda) return mix_up(batch, random_beta(random, alpha), distance);
  const at::Tensor shares = draw_shares(random, batch.size(), alpha, batch.labels().device());
  const auto mixed = [&](const at::Tensor& rows) { return mix_rows(rows, shares, distance); };
  batch.labels() = mixed(batch.labels());
  mix_inputs(batch, mixed);
}

void cut_mix(Batch& batch, double share, std::int64_t x, std::int64_t y, std::int64_t distance) {
  check_images(batch);
  const std::int64_t height = batch.images().size(2);
  const std::int64_t width = batch.images().size(3);
  const double side = std::sqrt(1 - share);
  const auto box_in = [&](const at::Tensor& images) {
    const std::int64_t rows = images.size(2), columns = images.size(3);
    return Box{.rows = extent(y * rows / height, side, rows),
               .columns = extent(x * columns / width, side, columns)};
  };
  const double own = 1 - box_in(batch.images()).area() / static_cast<double>(height * width);
  for (const std::size_t i : input_fields(batch)) {
    at::Tensor& images = batch.fields.at(i).tensor;
    const Box box = box_in(images);
    // Changes a copy, because the loader's memory may be shared.
    at::Tensor mixed = images.clone();
    box.crop(mixed).copy_(partners(box.crop(images), distance));
    images = mixed;
  }
  batch.labels() = at::lerp(partners(batch.labels(), distance), batch.labels(), own);
}

void cut_mix(Batch& batch, RandomStream& random, double alpha, std::int64_t distance) {
  check_images(batch);
  const double share = random_beta(random, alpha);
  const auto random_position = [&](std::int64_t side) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(side)));
  };
  const std::int64_t x = random_position(batch.images().size(3));
  cut_mix(batch, share, x, random_position(batch.images().size(2)), distance);
}

std::int64_t MixingMethod::partner_distance() const {
  return (run_.repeats + run_.world - 1) / run_.world;
}

bool MixingMethod::accepts(TargetKind kind) const {
  return kind == TargetKind::class_index;
}

void MixingMethod::options(Schema& schema) {
  schema.add("probability", &probability_, "fraction of the batches that are mixed").min(0).max(1);
}

void MixingMethod::on_batch(Batch& batch, std::int64_t global_step) {
  if (probability_ == 0) return;
  RandomStream random = stream(run_.seed, static_cast<std::uint32_t>(run_.rank),
                               static_cast<std::uint64_t>(global_step));
  // Labels of an unmixed batch become probabilities too, so that shapes stay the same for recorded
  // graphs.
  batch.labels() = class_probabilities(batch.labels(), run_.num_classes);
  if (random.uniform() < probability_) mix(batch, random);
}

}  // namespace precast::recipes
