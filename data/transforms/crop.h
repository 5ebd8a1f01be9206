#pragma once

#include <string>

#include "data/image/image.h"
#include "framework/core/config/schema.h"
#include "framework/core/registry.h"
#include "framework/core/rng.h"

namespace precast::data {

/// Chooses the part of an image that becomes the sample; only that part is then decoded and
/// resized. Const and thread-safe.
class Crop {
 public:
  virtual ~Crop() = default;
  /// Declares the options that a recipe may set, bound to this crop's members.
  virtual void options(Schema& /*schema*/) {}
  /// Checks the options after they have been read. @return the problem; empty if there is none.
  [[nodiscard]] virtual std::string problem() const { return {}; }
  /// @param random the sample's random numbers; the same stream gives the same crop.
  /// @return a region inside height x width with at least one pixel.
  [[nodiscard]] virtual Rect choose(int height, int width, RandomStream& random) const = 0;
};

using CropRegistry = Registry<Crop>;

}  // namespace precast::data
