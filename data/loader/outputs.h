#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/transforms/normalize.h"
#include "data/transforms/pipeline.h"

namespace precast::data {

enum class OutputKind { image, mask, integer, floating, array, sample_id };

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
  /// array: of one sample.
  std::vector<std::int64_t> shape = {};
  /// array, mask of an ndarray: bytes of one sample in the file.
  std::size_t stored_bytes = 0;
};

/// Finds the fields of `pipeline` in the file.
/// @param normalize what images come out as that the pipeline leaves open: float32 normalised, or
/// u8.
/// @throws ConfigError with all that does not fit the file.
[[nodiscard]] PRECAST_API std::vector<Output> resolve_outputs(const BetonReader& reader,
                                                              const Pipeline& pipeline,
                                                              bool normalize);

/// What numpy's type string stands for; nothing if batches cannot hold it.
[[nodiscard]] PRECAST_API std::optional<ElementType> element_type_of(const std::string& dtype);

}  // namespace precast::data
