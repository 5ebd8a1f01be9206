#include "data/loader/pixel_steps.h"

#include <algorithm>
#include <memory>

#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

PixelSteps::PixelSteps(const ImagePipeline& pipeline, std::uint64_t seed, std::string_view view)
    : pipeline_(pipeline), seed_(view.empty() ? seed : derived_seed(seed, view)) {
  for (const PipelineStep& step : pipeline.steps) {
    step_seeds_.push_back(derived_seed(seed_, step.random_key));
  }
}

Rect PixelSteps::region(int height, int width, const SampleKey& key) const {
  RandomStream random(seed_, static_cast<std::uint32_t>(key.epoch), key.position, RandomUse::crop);
  return pipeline_.crop->choose(height, width, random);
}

bool PixelSteps::flipped(const SampleKey& key) const {
  if (pipeline_.flip_probability <= 0) return false;
  RandomStream random(seed_, static_cast<std::uint32_t>(key.epoch), key.position, RandomUse::flip);
  return random.uniform() < pipeline_.flip_probability;
}

std::size_t PixelSteps::max_values(const PixelShape& resized, bool mask) const {
  PixelShape shape = resized;
  std::size_t values = shape.values();
  for (const PipelineStep& step : pipeline_.steps) {
    if (skips(step, mask)) continue;
    shape = step.transform->output(shape);
    values = std::max(values, shape.values());
  }
  return values;
}

int PixelSteps::edits(const PixelShape& resized, const SampleKey& key,
                      std::span<PixelEdit> out) const {
  require(pipeline_.steps.size() <= out.size(), "plan_images() has checked the number of steps");
  for (std::size_t i = 0; i < pipeline_.steps.size(); ++i) {
    RandomStream random = random_of(i, key);
    out[i] = pipeline_.steps[i].transform->edit(resized, random);
  }
  return static_cast<int>(pipeline_.steps.size());
}

Pixels PixelSteps::run(Pixels image, const SampleKey& key, std::optional<std::uint8_t> mask_fill) {
  for (std::size_t i = 0; i < pipeline_.steps.size(); ++i) {
    const PipelineStep& step = pipeline_.steps[i];
    if (skips(step, mask_fill.has_value())) continue;
    TransformContext context{.random = random_of(i, key),
                             .sample = key.sample,
                             .scratch = scratch(step.transform->scratch_bytes(image.shape)),
                             .mask_fill = mask_fill};
    step.transform->apply(image, context);
    image.shape = step.transform->output(image.shape);
  }
  return image;
}

RandomStream PixelSteps::random_of(std::size_t step, const SampleKey& key) const {
  return {step_seeds_[step], static_cast<std::uint32_t>(key.epoch), key.position,
          RandomUse::transform};
}

std::span<std::byte> PixelSteps::scratch(std::size_t bytes) {
  // Grows during the first samples of a pass and then keeps its size.
  if (scratch_.size() < bytes + kAlignment) scratch_.resize(bytes + kAlignment);
  void* start = scratch_.data();
  std::size_t left = scratch_.size();
  return {static_cast<std::byte*>(std::align(kAlignment, bytes, start, left)), bytes};
}

}  // namespace precast::data
