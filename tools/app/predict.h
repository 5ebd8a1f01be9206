#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast predict RUN [INPUT...] [-o FILE]`: writes a model's predictions for image files or for
/// the samples of a dataset. tools/README.md has the formats.
/// @return 3 if an image file was skipped, otherwise 0.
int run_predict(const std::vector<std::string>& args);

}  // namespace precast::tools
