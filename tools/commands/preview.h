#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast preview FILE.beton -o grid.png|pixels.npy`: writes the images as the model sees them,
/// [n, H, W, 3] uint8.
int run_preview(const std::vector<std::string>& args);

}  // namespace precast::tools
