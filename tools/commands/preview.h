#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast preview FILE.beton -o grid.png|pixels.npy`: writes images as the model sees them, as a
/// grid or as an array [n, H, W, C] uint8.
int run_preview(const std::vector<std::string>& args);

}  // namespace precast::tools
