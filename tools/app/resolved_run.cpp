#include "tools/app/resolved_run.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>

#include "data/loader/loader.h"
#include "framework/core/error.h"
#include "framework/core/system.h"

namespace precast::tools {
namespace {

at::Device prepare_cpu(const TrainConfig& config, const RankInfo& info) {
  if (config.training.precision == "fp16") {
    throw ConfigError(
        "training.precision: expected fp32 or bf16 on a CPU, got fp16 (no GPU was found)");
  }
  if (const std::string& graphs = config.training.cuda_graphs; graphs == "on" || graphs == "step") {
    throw ConfigError(
        fmt::format("training.cuda_graphs: expected auto or off on a CPU, got {}", graphs));
  }
  at::set_num_threads(std::max(1, usable_cores() / info.local_world));
  return at::kCPU;
}

}  // namespace

std::int64_t ResolvedRun::rank_batch_size() const {
  return tools::rank_batch_size(config(), world);
}

double ResolvedRun::peak_lr() const {
  const auto& lr = config().lr;
  if (lr.reference_batch_size == 0) return lr.lr;
  return lr.lr * static_cast<double>(global_batch_size()) /
         static_cast<double>(lr.reference_batch_size);
}

int ResolvedRun::loader_threads() const {
  const std::int64_t given = config().data.num_workers;
  if (given > 0) return static_cast<int>(given);
  return data::loader_threads(usable_cores(), static_cast<int>(local_world),
                              /*gpu_host=*/!device.is_cpu());
}

ResolvedRun as_requested(const Recipe& recipe) {
  const std::int64_t ranks = requested_ranks(recipe.config);
  return {.recipe = recipe,
          .device = recipe.config.training.device == "cuda" ? at::kCUDA : at::kCPU,
          .world = ranks,
          .local_world = ranks};
}

ResolvedRun resolve_run(const Recipe& recipe, const RankInfo& info) {
  return {.recipe = recipe,
          .device = prepare_device(recipe.config, info),
          .world = info.world,
          .local_world = info.local_world,
          .local_rank = info.local_rank};
}

at::Device prepare_device(const TrainConfig& config, const RankInfo& info) {
  const std::string& wanted = config.training.device;
  const bool has_gpu = at::globalContext().hasCUDA();
  if (wanted == "cpu" || (wanted == "auto" && !has_gpu)) return prepare_cpu(config, info);
  if (!has_gpu) {
    throw DeviceError(
        "training.device: expected a GPU that libtorch can use, got none. See precast doctor");
  }
  at::globalContext().setBenchmarkCuDNN(true);
  // srun --gpus-per-task=1 shows each rank its own GPU as number 0.
  const int gpus = at::detail::getCUDAHooks().getNumGPUs();
  if (gpus > 1 && info.local_rank >= gpus) {
    throw DeviceError(fmt::format(
        "ranks: expected at most {} on this host, one for each GPU, got {}. See dist.nproc", gpus,
        info.local_world));
  }
  const at::Device device(at::kCUDA,
                          static_cast<at::DeviceIndex>(std::min(info.local_rank, gpus - 1)));
  // Otherwise code that does not name a device would use GPU 0 in every rank.
  c10::impl::VirtualGuardImpl(at::kCUDA).setDevice(device);
  return device;
}

}  // namespace precast::tools
