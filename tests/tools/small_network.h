#pragma once

#include <string>
#include <vector>

namespace precast::test {

/// `model.params` of a network with convolutions, batch norm and a residual block, for tests of
/// programs in which the architecture does not matter. The default, ResNet-18, would take most of
/// their time: 11 million weights to initialise, train, save, hash and load.
inline constexpr const char* kSmallNetwork =
    "{layers: [conv: {out: 16, stride: 2, bias: false}, bn, relu, "
    "residual: {layers: [conv: {out: 16, bias: false}, bn]}, relu, "
    "conv: {out: 32, stride: 2, bias: false}, bn, relu, global_avg_pool, flatten, linear]}";

/// The small network as options of a command.
inline std::vector<std::string> small_network() {
  return {"--model.arch=layers", std::string("--model.params=") + kSmallNetwork};
}

/// Options of a run of one epoch, called `r`, on images of 32 px. @param folder the folder of runs
inline std::vector<std::string> short_run(const std::string& folder) {
  return {"--resolution.min_res=32", "--resolution.max_res=32", "--validation.resolution=32",
          "--training.epochs=1",     "--lr.lr=0.001",           "--logging.folder=" + folder,
          "--logging.run_id=r"};
}

/// The small network as a line of a recipe.
inline std::string small_network_line() {
  return std::string("model: {arch: layers, params: ") + kSmallNetwork + "}\n";
}

}  // namespace precast::test
