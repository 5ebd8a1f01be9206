#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "data/beton/reader.h"
#include "data/image/normalize.h"
#include "data/transforms/pipeline.h"

namespace precast::data {

/// An image, RGB or luma, from an image field or from a field for which holds_pixels() is true.
struct ImageOutput {
  ImagePipeline pipeline;
  /// The name from which the seed of this output's random numbers is derived (derived_seed()), so
  /// that views of one image differ. Empty: the loader's seed itself.
  std::string view = {};
  /// Whether the layout is [C, H, W]. Images that the consumer normalises stay [H, W, C].
  bool channels_first = false;
  /// Set if the loader normalises the image.
  std::shared_ptr<const Normalize> normalize = {};
  /// Set if batches contain plans in place of pixels (ImagePlan): the longest side of the stored
  /// images, px.
  std::optional<int> max_stored_side_px = {};
};

/// A mask. The crop, the flip and the geometric transforms of its image are also applied to the
/// mask.
struct MaskOutput {
  /// The pipeline and view of the image that the mask belongs to.
  ImagePipeline pipeline = {};
  std::string view = {};
  /// The index of the image's field in the file.
  std::size_t image_field = 0;
  /// The value for areas without source pixels.
  std::uint8_t fill = 0;
  /// 3 if the mask is stored as an image, otherwise 1.
  int channels = 1;
  /// Height and width of a mask in an ndarray or tensor field. Empty if each value has its own
  /// size.
  std::vector<std::uint64_t> sides = {};
};

/// An int field.
struct IntegerOutput {
  /// Label transforms, applied in this order.
  std::vector<std::shared_ptr<const LabelTransform>> labels = {};
};

/// A float field.
struct FloatingOutput {};

/// An ndarray or tensor field.
struct ArrayOutput {
  std::vector<std::int64_t> shape;
  /// Bytes of one sample, in the file and in a batch.
  std::size_t bytes = 0;
};

/// The bytes of a bytes field, or of a JSON document without the zero byte at its end.
struct BytesOutput {
  /// The size in bytes to which values are padded; with `packed`, the size of the largest value in
  /// the file.
  std::int64_t capacity = 0;
  /// Set if there is no pad_to: values are then padded to the largest value of their batch.
  bool packed = false;
};

/// A pixels or ragged field.
struct ShapedOutput {
  enum class Size {
    /// Values are padded to `shape`.
    padded,
    /// All values must have this shape. Used for pixels without pad_to.
    exact,
    /// Values are flattened to [N, elements] and padded to the largest value of their batch;
    /// `shape` is the number of elements of the largest value in the file. Used for ragged arrays
    /// without pad_to.
    packed,
  };
  std::vector<std::int64_t> shape;
  Size size = Size::padded;
};

/// The number of bytes of each value of the preceding BytesOutput.
struct LengthOutput {};

/// The shape of each value of the preceding ShapedOutput: [height, width] of pixels, all dimensions
/// of a ragged array.
struct ExtentsOutput {
  std::size_t dimensions = 0;
};

/// The sample's index in the dataset file.
struct SampleIdOutput {};

/// One tensor of every batch: an output of the pipeline and the field from which it is made.
struct Output {
  using Kind = std::variant<ImageOutput, MaskOutput, IntegerOutput, FloatingOutput, ArrayOutput,
                            BytesOutput, ShapedOutput, LengthOutput, ExtentsOutput, SampleIdOutput>;

  std::string name;
  /// Index of the field in the file; 0 for a SampleIdOutput.
  std::size_t field = 0;
  /// The type of the tensor's elements.
  ElementType type = ElementType::i64;
  Kind kind = IntegerOutput{};
};

template <typename Kind>
[[nodiscard]] bool is(const Output& output) {
  return std::holds_alternative<Kind>(output.kind);
}

/// Whether the output's values are padded to the largest value of their batch.
[[nodiscard]] PRECAST_API bool is_packed(const Output& output);

/// Returns the outputs of `pipeline`, each with its field in the file. A BytesOutput is followed by
/// an output NAME.lengths, and a ShapedOutput by an output NAME.extents. If the pipeline lists no
/// outputs, there is one for each field that batches can hold; however, in a file with image
/// fields, bytes fields (with or without a tag) and JSON fields are left out. In a file without
/// image fields, pixels fields of u8 go through the image pipeline.
/// @param normalize determines the type of images whose pipeline sets no type: normalised float32
/// if true, otherwise u8.
/// @throws ConfigError listing everything that does not fit the file, or all fields and their types
/// if batches can hold none of them; DataError if the first value of a pixels field without pad_to
/// is damaged, because it determines the size of the output.
[[nodiscard]] PRECAST_API std::vector<Output> resolve_outputs(const BetonReader& reader,
                                                              const Pipeline& pipeline,
                                                              bool normalize);

/// The fields that batches cannot hold because of their type, each with its type, such as
/// `box (ndarray >f4), mesh (custom)`; empty if there are none.
[[nodiscard]] PRECAST_API std::string unusable_fields(const BetonReader& reader);

/// The element type for a NumPy type string such as `<f4`; nothing if batches cannot hold this
/// type.
[[nodiscard]] PRECAST_API std::optional<ElementType> element_type_of(const std::string& dtype);

}  // namespace precast::data
