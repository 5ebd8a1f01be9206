#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast predict RUN [IMAGES ...] -o predictions.csv`: classes and probabilities of image files,
/// or the logits of the samples of a dataset. tools/README.md has the formats.
/// @return 3 if an image file could not be read.
int run_predict(const std::vector<std::string>& args);

}  // namespace precast::tools
