#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "data/loader/image_plan.h"
#include "data/loader/outputs.h"
#include "data/loader/pixel_steps.h"
#include "data/loader/sample_key.h"
#include "data/loader/stored_pixels.h"
#include "data/resample/resize_plan.h"
#include "framework/core/export.h"

namespace precast::data {

/// Changes all image outputs to plans (ImagePlan). @throws ConfigError if the file is on a server,
/// or a ConfigError that lists everything that a plan cannot express: images that are stored as
/// JPEG or have a side above kMaxPlannedWidth, transforms that are not edits
/// (Transform::is_edit()), more than ImagePlan::kMaxEdits transforms, `convert`, and images with
/// one channel
PRECAST_API void plan_images(const BetonReader& reader, std::vector<Output>& outputs);

/// Returns one stored image of a mapped file, not cropped; nothing if the image is damaged. Its
/// checksum is not verified. @throws ConfigError naming the sample if it is a JPEG
[[nodiscard]] PRECAST_API std::optional<StoredPixels> mapped_pixels(const BetonReader& reader,
                                                                    std::uint64_t sample,
                                                                    std::size_t field);

/// Returns the fields whose images are loaded as plans.
[[nodiscard]] PRECAST_API std::set<std::size_t> planned_fields(const std::vector<Output>& outputs);

/// The size of the RGB pixels of all images in planned_fields(), in bytes.
[[nodiscard]] PRECAST_API std::uint64_t planned_pixel_bytes(const BetonReader& reader,
                                                            const std::vector<Output>& outputs);

/// The size in bytes of a plan for images of `side` x `side` px; a multiple of 16. @throws
/// ConfigError if the stored images are too large for a resize to `side` in fixed point (more than
/// ResizePlan::kMaxFixedTaps taps)
[[nodiscard]] PRECAST_API std::size_t image_plan_bytes(const ImageOutput& image, int side);

/// Writes the plans of one output. Makes the same random choices as SampleDecoder. Use one per
/// thread.
class PRECAST_API ImagePlanner {
 public:
  /// Borrows `pipeline`. @param view see PixelSteps.
  ImagePlanner(const ImagePipeline& pipeline, std::uint64_t seed, std::string_view view)
      : pipeline_(pipeline), steps_(pipeline, seed, view) {}

  /// @param height, width the size of the stored image, px. @param out points to image_plan_bytes()
  /// bytes, aligned to 8 bytes.
  void plan(int height, int width, const SampleKey& key, int side, std::byte* out);

 private:
  void write_blends(const ImagePlan& plan, std::byte* out) const;
  void write_weights(const ImagePlan& plan, std::byte* out);

  const ImagePipeline& pipeline_;
  PixelSteps steps_;
  ResizePlan resize_;
  std::vector<std::uint16_t> weights_;
};

}  // namespace precast::data
