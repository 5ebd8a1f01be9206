#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/image/normalize.h"
#include "data/transforms/pipeline.h"

namespace precast::data {

enum class OutputKind {
  image,
  mask,
  integer,
  floating,
  array,
  sample_id,
  /// The bytes of a bytes field, or of a JSON text without its last zero.
  bytes,
  /// Of a pixels or ragged field.
  shaped,
  /// How large each value of the output before is: its bytes, or its extents.
  extents,
};

/// One tensor of every batch: a pipeline's output beside the dataset's field.
struct Output {
  std::string name;
  OutputKind kind = OutputKind::integer;
  /// Its field in the file (none for sample_id).
  std::size_t field = 0;
  /// What the values come out as.
  ElementType type = ElementType::i64;
  /// image and mask: the steps, and under which name they draw random numbers; empty: the seed's
  /// own.
  ImagePipeline image = {};
  std::string view = {};
  /// image: [3, H, W]. What the consumer normalises itself is left [H, W, 3] for it.
  bool channels_first = false;
  /// image: applied to floats if set.
  std::shared_ptr<const Normalize> normalize = {};
  /// mask: the field of the image that it follows; what comes in; 3 if it is stored as an image.
  std::size_t image_field = 0;
  std::uint8_t fill = 0;
  int channels = 1;
  std::vector<std::shared_ptr<const LabelTransform>> labels = {};
  /// array: of one sample. extents: [] for bytes, else [dimensions]. bytes, shaped: what each is
  /// padded to.
  std::vector<std::int64_t> shape = {};
  /// bytes, shaped: nothing says what values are padded to, so it is the largest of each batch, and
  /// `shape` holds the elements of the largest in the file. Such arrays come flat, [N, elements].
  bool variable = false;
  /// pixels of one size: others are an error and not padded.
  bool exact = false;
  /// array, mask of an ndarray: bytes of one sample in the file.
  std::size_t stored_bytes = 0;
};

/// Finds the fields of `pipeline` in the file. Outputs of bytes and shaped values are followed by
/// one of their extents: NAME.lengths, NAME.extents. Without a list of outputs there is one for
/// each field that batches can hold; in a file with images, bytes, JSON and what has a tag are left
/// out.
/// @param normalize what images come out as that the pipeline leaves open: float32 normalised, or
/// u8.
/// @throws ConfigError with all that does not fit the file.
[[nodiscard]] PRECAST_API std::vector<Output> resolve_outputs(const BetonReader& reader,
                                                              const Pipeline& pipeline,
                                                              bool normalize);

/// What numpy's type string stands for; nothing if batches cannot hold it.
[[nodiscard]] PRECAST_API std::optional<ElementType> element_type_of(const std::string& dtype);

}  // namespace precast::data
