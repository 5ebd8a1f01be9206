#pragma once

#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/image/normalize.h"
#include "data/transforms/image_pipeline.h"
#include "tools/app/recipe.h"

namespace precast::tools {

/// The normalisation of the images that a model reads; empty lists if it reads unnormalised pixels.
[[nodiscard]] data::NormalizeOptions normalization_of(const data::ImagePipeline& images);

/// Whether two normalisations differ by no more than rounding, as 0.485 * 255 and 123.675 do.
[[nodiscard]] bool is_same_normalization(const data::NormalizeOptions& a,
                                         const data::NormalizeOptions& b);

/// `mean [M], std [S]`, or `none`.
[[nodiscard]] std::string normalization_text(const data::NormalizeOptions& normalization);

/// A warning if pipeline.train and pipeline.val normalise the model's first input in different
/// ways. Empty if they normalise it in the same way, or if it is not an image in one of them.
[[nodiscard]] std::string normalization_warning(const Recipe& recipe,
                                                const data::BetonReader& train,
                                                const data::BetonReader& val);

}  // namespace precast::tools
