#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace precast::tools {

/// A device and a set of cores that run one trial at a time.
struct Slot {
  /// `gpu0`, `cpu`; if several slots share the device, followed by the slot's number: `gpu0.1`.
  std::string name;
  /// The value of CUDA_VISIBLE_DEVICES; empty: no GPU.
  std::string gpu;
  /// The processors (as in sched_setaffinity) that its process is bound to.
  std::vector<int> cores;
};

struct SlotOptions {
  /// `auto` (every GPU, or the CPU if there is none), `cpu`, or GPUs in the form of
  /// CUDA_VISIBLE_DEVICES.
  std::vector<std::string> devices{"auto"};
  int slots_per_device = 1;
  /// 0: the usable cores in equal shares.
  int cores_per_slot = 0;
};

/// The processors that this process may run on, ascending.
[[nodiscard]] std::vector<int> allowed_cores();
/// The GPUs of this machine: those of CUDA_VISIBLE_DEVICES if set, else all that the driver shows;
/// one on WSL, which does not report how many. Needs no CUDA library. @param root the parent of
/// /proc and /dev, for tests.
[[nodiscard]] std::vector<std::string> visible_gpus(const std::filesystem::path& root = "/");

/// Distributes `cores` over the slots of `options`; each slot gets neighbouring cores, which share
/// caches and a memory node. If there are fewer cores than slots, slots share cores.
/// @param gpus the GPUs to which `auto` refers.
[[nodiscard]] std::vector<Slot> make_slots(const SlotOptions& options,
                                           const std::vector<int>& cores,
                                           const std::vector<std::string>& gpus);

/// `count` slots that share all of `gpus` and `cores` evenly, neighbours together: several GPUs per
/// slot if there are enough, else several slots per GPU.
[[nodiscard]] std::vector<Slot> share_slots(int count, const std::vector<int>& cores,
                                            const std::vector<std::string>& gpus);

}  // namespace precast::tools
