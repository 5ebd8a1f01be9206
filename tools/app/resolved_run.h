#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/launch/rank_info.h"
#include "tools/app/recipe.h"

namespace precast::tools {

/// A recipe together with what is determined at the start of a run: the ranks and the device. The
/// recipe is not changed; all values that depend on the machine are derived here. Immutable.
struct ResolvedRun {
  /// Borrowed.
  const Recipe& recipe;
  at::Device device = at::kCPU;
  /// The number of ranks that train together; the number of ranks on this host, which share its
  /// memory and cores; and the number of this rank among the ranks on this host.
  std::int64_t world = 1;
  std::int64_t local_world = 1;
  std::int64_t local_rank = 0;
  /// The largest number of compute threads that a run on a CPU adopts from its checkpoint when it
  /// resumes; 0 if OMP_NUM_THREADS sets the number.
  int max_threads = 0;
  /// The value of --ring: a ring from which training batches are taken if it loads the same
  /// batches.
  std::string ring = {};

  [[nodiscard]] const TrainConfig& config() const { return recipe.config; }
  /// Samples per step on one rank, and over all ranks.
  [[nodiscard]] std::int64_t rank_batch_size() const;
  [[nodiscard]] std::int64_t global_batch_size() const { return rank_batch_size() * world; }
  /// The peak rate that the schedule is given: lr.lr, or, if lr.reference_batch_size is set, by the
  /// linear scaling rule (Goyal et al. 2017) lr.lr * global batch / lr.reference_batch_size.
  [[nodiscard]] double peak_lr() const;
  /// data.num_workers; if that is 0, its automatic value (data::loader_threads).
  [[nodiscard]] int loader_threads() const;
};

/// The run that the recipe requests. It has all its ranks on this host, and uses a GPU only with
/// `training.device: cuda`. The function accesses no device, so the plan for a GPU can be printed
/// on a machine without a GPU.
[[nodiscard]] ResolvedRun requested_run(const Recipe& recipe);

/// Prepares the device of this rank (prepare_device()), and returns its run.
[[nodiscard]] ResolvedRun resolve_run(const Recipe& recipe, const RankInfo& info,
                                      bool trains = true);

/// The number of GPUs that libtorch can use.
[[nodiscard]] int usable_gpus();

/// Why `ranks` ranks cannot run on a host with `gpus` usable GPUs; empty if they can. Ranks on GPUs
/// use NCCL, which needs a GPU for each rank. Any number of ranks can run on CPUs, where they use
/// Gloo.
/// @param setting what determines the number of ranks, such as `--ranks`.
/// @param device training.device. @param hint what to do if there are too few GPUs.
[[nodiscard]] std::string gpu_problem(std::string_view setting, std::string_view device, int ranks,
                                      int gpus, std::string_view hint);
/// Why the ranks on this host cannot run, as seen by a rank that has already been started and sees
/// `gpus` usable GPUs; empty if they can. If the number of ranks on the host is not known, only the
/// local rank is compared with the number of GPUs. A rank that sees a single GPU passes: the other
/// ranks may see other GPUs, because srun --gpus-per-task=1 shows each rank its own GPU as number
/// 0.
[[nodiscard]] std::string gpu_problem(const RankInfo& info, std::string_view device, int gpus);
/// @throws DeviceError if there is a problem.
void check_gpus(const std::string& problem);

/// The compute threads (libtorch's intra-op threads) of a rank on a CPU.
struct ComputeThreads {
  int number = 1;
  /// Whether OMP_NUM_THREADS sets a number other than the default, which is the rank's share of its
  /// host's cores. precast's launcher sets the variable to this default.
  bool given = false;
};
/// @param environment contains OMP_NUM_THREADS. Its first number is used, as by OpenMP; an invalid
/// value is ignored.
[[nodiscard]] ComputeThreads compute_threads(const RankInfo& info, const Environment& environment);

/// Chooses the device for training.device and prepares libtorch for it (threads, cuDNN). The ranks
/// on a host share its cores and use one GPU each.
/// @param trains whether the run trains: only then must training.cuda_graphs suit a CPU.
/// @throws DeviceError if the recipe requests a GPU that does not exist; ConfigError for a setting
/// that the device does not support.
[[nodiscard]] at::Device prepare_device(const TrainConfig& config, const RankInfo& info,
                                        bool trains = true);

}  // namespace precast::tools
