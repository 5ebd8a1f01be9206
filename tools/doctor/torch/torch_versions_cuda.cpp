#include <ATen/detail/CUDAHooksInterface.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include "tools/doctor/torch/torch_versions.h"

namespace precast::tools {
namespace {

using Json = nlohmann::ordered_json;

/// 13000 -> "13.0"
std::string cuda_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// 91900 -> "9.19.0"
std::string cudnn_text(long version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// 22809 -> "2.28.9"
std::string nccl_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string nccl_at_run_time() {
  // Calls the NCCL that libtorch_cuda has loaded. libtorch's own function returns the version with
  // which libtorch was built.
  void* symbol = dlsym(RTLD_DEFAULT, "ncclGetVersion");
  if (symbol == nullptr) return "none";
  int version = 0;
  const auto get_version = reinterpret_cast<ncclResult_t (*)(int*)>(symbol);
  return get_version(&version) == ncclSuccess ? nccl_text(version) : "unknown";
}

Json devices() {
  Json all = Json::array();
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return all;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) continue;
    all.push_back({{"name", properties.name},
                   {"memory_bytes", properties.totalGlobalMem},
                   {"compute_capability",
                    std::to_string(properties.major) + "." + std::to_string(properties.minor)}});
  }
  return all;
}

}  // namespace

Json cuda_versions() {
  int run = 0;
  int driver = 0;
  cudaRuntimeGetVersion(&run);
  cudaDriverGetVersion(&driver);
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  return {{"cuda",
           {{"build", cuda_text(CUDART_VERSION)},
            {"run", cuda_text(run)},
            {"driver", cuda_text(driver)}}},
          {"cudnn",
           {{"build", cudnn_text(hooks.versionCuDNN())},
            {"run", cudnn_text(hooks.versionRuntimeCuDNN())}}},
          {"nccl", {{"build", nccl_text(NCCL_VERSION_CODE)}, {"run", nccl_at_run_time()}}},
          {"devices", devices()}};
}

}  // namespace precast::tools
