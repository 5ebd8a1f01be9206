#pragma once

#include <c10/core/Device.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace precast::tools {

/// `precast-train versions [--json]`: prints the versions of libtorch, CUDA, cuDNN and NCCL at
/// build time and at run time, the GPUs, and libtorch's SIMD level and number of threads, as one
/// JSON object on standard output, with or without --json. `precast doctor` reads it.
int run_versions(const std::vector<std::string>& args);

/// The version of the loaded libtorch, such as "2.11.0".
[[nodiscard]] std::string torch_version();

/// {cuda: {build, run, driver}, cudnn: {build, run}, nccl: {build, run}, devices: [{name,
/// memory_bytes, compute_capability}]}. A driver version of "0.0" means that there is no driver. In
/// a build without CUDA, `cuda` is null and `devices` is empty.
[[nodiscard]] nlohmann::ordered_json cuda_versions();

/// The model name of a GPU, or of the processor for a CPU device.
[[nodiscard]] std::string device_name(at::Device device);

}  // namespace precast::tools
