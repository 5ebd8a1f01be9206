#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast preview FILE.beton -o grid.png|pixels.npy`: what the model sees, [n, H, W, 3] uint8.
int run_preview(const std::vector<std::string>& args);

}  // namespace precast::tools
