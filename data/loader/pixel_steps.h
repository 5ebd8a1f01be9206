#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/image/image.h"
#include "data/loader/sample_key.h"
#include "data/transforms/image_pipeline.h"

namespace precast::data {

/// Makes the random choices and runs the transforms of one image pipeline. All choices are
/// functions of seed, view and SampleKey, so they are the same for an image and for its mask.
/// Keeps scratch memory: use one per thread.
class PRECAST_API PixelSteps {
 public:
  /// Borrows `pipeline`. @param view see ImageOutput::view.
  PixelSteps(const ImagePipeline& pipeline, std::uint64_t seed, std::string_view view);

  [[nodiscard]] Rect region(int height, int width, const SampleKey& key) const;
  [[nodiscard]] bool flipped(const SampleKey& key) const;
  /// The changes that the steps make to an image, if all steps are edits (Transform::is_edit()).
  /// Writes one per step. @return their number.
  int edits(const PixelShape& resized, const SampleKey& key, std::span<PixelEdit> out) const;
  /// The largest number of values that an image has before, between or after the steps.
  [[nodiscard]] std::size_t max_values(const PixelShape& resized, bool mask) const;
  /// @param image has memory for max_values() values. @param mask_fill set for a mask; only steps
  /// that move pixels then run. @return the resulting pixels, at the start of `image`.
  Pixels run(Pixels image, const SampleKey& key, std::optional<std::uint8_t> mask_fill);

 private:
  [[nodiscard]] RandomStream random_of(std::size_t step, const SampleKey& key) const;
  [[nodiscard]] bool skips(const PipelineStep& step, bool mask) const {
    return mask && !step.transform->moves_pixels();
  }
  std::span<std::byte> scratch(std::size_t bytes);

  const ImagePipeline& pipeline_;
  std::uint64_t seed_;
  /// One per step.
  std::vector<std::uint64_t> step_seeds_;
  std::vector<std::byte> scratch_;
};

}  // namespace precast::data
