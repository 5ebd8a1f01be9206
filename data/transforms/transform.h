#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/image/pixels.h"
#include "data/transforms/pixel_edit.h"
#include "framework/core/config/schema.h"
#include "framework/core/export.h"
#include "framework/core/registry.h"
#include "framework/core/rng.h"

namespace precast::data {

/// Inputs that a transform may use in addition to the pixels.
struct TransformContext {
  /// The random numbers of this step for this sample, which do not depend on threads or ranks.
  RandomStream random;
  /// The sample's index in the dataset file.
  std::uint64_t sample = 0;
  /// Scratch memory of the size that the transform requested, aligned to 64 bytes; its content is
  /// undefined.
  std::span<std::byte> scratch;
  /// Set if the pixels are a mask. A transform then uses nearest-neighbour interpolation, and this
  /// value for areas without source pixels.
  std::optional<std::uint8_t> mask_fill;
};

/// One operation on decoded, resized pixels, in place. Const and thread-safe; random numbers come
/// only from the context.
class PRECAST_API Transform {
 public:
  virtual ~Transform();
  /// Declares the options that a recipe may set, bound to this transform's members.
  virtual void options(Schema& /*schema*/) {}
  /// Checks the options after they have been read. @return the problem; empty if there is none.
  [[nodiscard]] virtual std::string problem() const { return {}; }
  /// Reads files that the options name, once, after problem(). @throws ConfigError, IoError
  virtual void prepare() {}
  /// The shape of the output for an input of shape `in`; the number of channels stays the same.
  /// @throws ConfigError if the transform cannot work on such an input; the message (`expected ..,
  /// got ..`) does not name the transform.
  [[nodiscard]] virtual PixelShape output(const PixelShape& in) const { return in; }
  /// Bytes of scratch memory that apply() needs for an input of shape `in`.
  [[nodiscard]] virtual std::size_t scratch_bytes(const PixelShape& /*in*/) const { return 0; }
  /// Whether the transform moves pixels. If so, it is also applied to masks; otherwise masks skip
  /// this step.
  [[nodiscard]] virtual bool moves_pixels() const { return false; }
  /// Whether the output blends copies whose pixels were moved in different ways. If so, the image
  /// cannot have a mask.
  [[nodiscard]] virtual bool blends_moved_copies() const { return false; }
  /// Whether edit() describes what apply() does to an image. The output then has the input's shape.
  [[nodiscard]] virtual bool is_edit() const { return false; }
  /// The change that apply() makes to an image of this shape, drawn from the random numbers of the
  /// context. Called only if is_edit().
  [[nodiscard]] virtual PixelEdit edit(const PixelShape& /*shape*/,
                                       RandomStream& /*random*/) const {
    return {};
  }
  /// @param image has room for the larger of the input and the output; the output is written to its
  /// start. @param context must be used in the same way for an image and for its mask, so that both
  /// get the same random numbers.
  virtual void apply(const Pixels& image, TransformContext& context) const = 0;
};

using TransformRegistry = Registry<Transform>;

/// One operation on an integer of a sample, usually a class index. Const and thread-safe.
class PRECAST_API LabelTransform {
 public:
  virtual ~LabelTransform();
  virtual void options(Schema& /*schema*/) {}
  [[nodiscard]] virtual std::string problem() const { return {}; }
  virtual void prepare() {}
  /// @param sample the sample's index in the dataset file.
  [[nodiscard]] virtual std::int64_t apply(std::int64_t label, std::uint64_t sample) const = 0;
};

using LabelTransformRegistry = Registry<LabelTransform>;

}  // namespace precast::data
