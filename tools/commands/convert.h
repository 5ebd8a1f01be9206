#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast convert IN OUT [--names torchvision|ffcv|timm] [--json]`: writes the tensors of a
/// weights file or of a training state (.pt, .pth, .safetensors) in the format given by OUT's
/// extension, under the names of another program; the model spec stays. Replaces an existing OUT
/// atomically.
/// @return an exit code.
int run_convert(const std::vector<std::string>& args);

}  // namespace precast::tools
