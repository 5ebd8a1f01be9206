#include "tools/app/resolved_run.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "data/loader/loader.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/system.h"

namespace precast::tools {
namespace {

at::Device prepare_cpu(const TrainConfig& config, const RankInfo& info, bool trains) {
  if (config.training.precision == "fp16") {
    throw ConfigError(
        "training.precision: expected fp32 or bf16 on a CPU, got fp16 (no GPU was found)");
  }
  const std::string& graphs = config.training.cuda_graphs;
  if (trains && (graphs == "on" || graphs == "step")) {
    throw ConfigError(
        fmt::format("training.cuda_graphs: expected auto or off on a CPU, got {}", graphs));
  }
  at::set_num_threads(compute_threads(info, process_environment()).number);
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

ResolvedRun requested_run(const Recipe& recipe) {
  const std::int64_t ranks = requested_ranks(recipe.config);
  return {.recipe = recipe,
          .device = recipe.config.training.device == "cuda" ? at::kCUDA : at::kCPU,
          .world = ranks,
          .local_world = ranks};
}

ResolvedRun resolve_run(const Recipe& recipe, const RankInfo& info, bool trains) {
  const ComputeThreads threads = compute_threads(info, process_environment());
  return {.recipe = recipe,
          .device = prepare_device(recipe.config, info, trains),
          .world = info.world,
          .local_world = info.local_world,
          .local_rank = info.local_rank,
          .max_threads = threads.given ? 0 : threads.number};
}

int usable_gpus() {
  return at::globalContext().hasCUDA() ? static_cast<int>(at::detail::getCUDAHooks().getNumGPUs())
                                       : 0;
}

std::string gpu_problem(std::string_view setting, std::string_view device, int ranks, int gpus,
                        std::string_view hint) {
  if (device == "cpu" || (device == "auto" && gpus == 0)) return {};
  if (gpus == 0)
    return "training.device: expected a GPU that libtorch can use, got none. See `precast doctor`";
  if (ranks <= gpus) return {};
  const auto count = [](int number, std::string_view one) {
    return format_count(static_cast<std::uint64_t>(number), one);
  };
  return fmt::format(
      "{}: expected at most {}, got {}: NCCL needs one GPU per rank, and this host has {}. {}",
      setting, count(gpus, "rank"), count(ranks, "rank"), count(gpus, "usable GPU"), hint);
}

std::string gpu_problem(const RankInfo& info, std::string_view device, int gpus) {
  const int counted = info.local_world_known ? info.local_world : 0;
  const int ranks = gpus == 1 ? 1 : std::max(counted, info.local_rank + 1);
  return gpu_problem("ranks", device, ranks, gpus,
                     "Have the launcher start fewer ranks on this host");
}

void check_gpus(const std::string& problem) {
  if (!problem.empty()) throw DeviceError(problem);
}

ComputeThreads compute_threads(const RankInfo& info, const Environment& environment) {
  const int share = std::max(1, usable_cores() / info.local_world);
  const char* text = environment("OMP_NUM_THREADS");
  const std::int64_t number = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  if (number < 1 || number > std::numeric_limits<int>::max() || number == share)
    return {.number = share};
  return {.number = static_cast<int>(number), .given = true};
}

at::Device prepare_device(const TrainConfig& config, const RankInfo& info, bool trains) {
  const std::string& requested = config.training.device;
  const int gpus = usable_gpus();
  if (requested == "cpu" || (requested == "auto" && gpus == 0))
    return prepare_cpu(config, info, trains);
  check_gpus(gpu_problem(info, requested, gpus));
  at::globalContext().setBenchmarkCuDNN(true);
  const at::Device device(at::kCUDA,
                          static_cast<at::DeviceIndex>(std::min(info.local_rank, gpus - 1)));
  // Otherwise code that does not name a device would use GPU 0 in every rank.
  c10::impl::VirtualGuardImpl(at::kCUDA).setDevice(device);
  return device;
}

}  // namespace precast::tools
