#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace precast::tools {

/// A place where one training at a time runs.
struct Slot {
  /// `gpu0`, `cpu`, with the model's number behind it where several share the device: `gpu0.1`.
  std::string name;
  /// What CUDA_VISIBLE_DEVICES is set to; empty: no GPU.
  std::string gpu;
  /// The processors (as in sched_setaffinity) that its process is bound to.
  std::vector<int> cores;
};

struct SlotOptions {
  /// `auto` (every GPU, or the CPU where there is none), `cpu`, or GPUs as CUDA_VISIBLE_DEVICES
  /// names them.
  std::vector<std::string> devices{"auto"};
  int slots_per_device = 1;
  /// 0: the usable cores in equal shares.
  int cores_per_slot = 0;
};

/// The processors that this process may run on, in rising order.
[[nodiscard]] std::vector<int> allowed_cores();
/// The GPUs of this machine: those of CUDA_VISIBLE_DEVICES where that is set, else all that the
/// driver shows; one on Windows' subsystem for Linux, which does not say how many. Needs no CUDA
/// library. @param root where /proc and /dev are, for tests.
[[nodiscard]] std::vector<std::string> visible_gpus(const std::filesystem::path& root = "/");

/// Lays `options` out over `cores`, slot by slot in runs of neighbours (which share caches and a
/// memory node). Where there are too few cores, slots share them in turn.
/// @param gpus what `auto` stands for.
[[nodiscard]] std::vector<Slot> make_slots(const SlotOptions& options,
                                           const std::vector<int>& cores,
                                           const std::vector<std::string>& gpus);

/// `count` slots that share all of `gpus` and `cores` evenly, neighbours together: several GPUs for
/// a slot where there are enough, else several slots on a GPU.
[[nodiscard]] std::vector<Slot> share_slots(int count, const std::vector<int>& cores,
                                            const std::vector<std::string>& gpus);

}  // namespace precast::tools
