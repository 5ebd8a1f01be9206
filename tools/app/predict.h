#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast predict CONFIG.yaml --model.weights=F -o logits.npy|.csv`: logits [n, classes] float32,
/// in file order.
int run_predict(const std::vector<std::string>& args);

}  // namespace precast::tools
