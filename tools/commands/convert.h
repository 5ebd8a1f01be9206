#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast convert IN OUT [--names torchvision|ffcv|timm] [--json]`: writes the model's weights
/// from a weights file or a training state (.pt, .pth, .safetensors), or from the folder of a
/// checkpoint, in the format given by OUT's extension. With --names, the tensors get the names that
/// the given program uses. The model spec is kept. Replaces an existing OUT atomically.
/// @return an exit code.
int run_convert(const std::vector<std::string>& args);

}  // namespace precast::tools
