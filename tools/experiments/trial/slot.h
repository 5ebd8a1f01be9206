#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace precast::tools {

/// A part of this host on which one trial runs at a time: GPUs, or none, and cores.
struct Slot {
  /// make_slots(): `gpu0`, `cpu`; if several slots share the device, followed by the slot's number:
  /// `gpu0.1`. partition_into_slots(): `part0`, `part1` ...
  std::string name;
  /// The value of CUDA_VISIBLE_DEVICES; empty: no GPU.
  std::string gpu;
  /// The processors, numbered as in sched_setaffinity, to which the slot's process is bound.
  std::vector<int> cores;
};

struct SlotOptions {
  /// `auto` (every GPU, or the CPU if there is none), `cpu`, or indices of visible_gpus().
  std::vector<std::string> devices{"auto"};
  int slots_per_device = 1;
  /// 0: an equal share of the usable cores for each slot.
  int cores_per_slot = 0;
};

/// The processors that this process may run on, ascending.
[[nodiscard]] std::vector<int> allowed_cores();
/// Returns the GPUs that this process may use: those in CUDA_VISIBLE_DEVICES if it is set (up to
/// the first negative index, as in CUDA), otherwise all GPUs that the driver shows. WSL does not
/// report the number of GPUs; there the result is one GPU. Needs no CUDA library. @param root the
/// parent of /proc and /dev, for tests.
[[nodiscard]] std::vector<std::string> visible_gpus(const std::filesystem::path& root = "/");

/// The indices in `options.devices` that are not indices of `gpus`.
[[nodiscard]] std::vector<std::string> missing_gpus(const SlotOptions& options,
                                                    const std::vector<std::string>& gpus);

/// Creates the slots of `options` and distributes `cores` over them. Each slot gets neighbouring
/// cores, which often share caches and a NUMA node. If there are too few cores, slots share
/// cores.
/// @param gpus the GPUs to which `auto` and indices refer. A plan for another host may have indices
/// without a GPU here (missing_gpus()); such an index is used as the GPU's number.
/// @param usable the number of cores that all slots together can use at the same time, which a CPU
/// quota limits (usable_cores()). If it is lower than the number of `cores` and there are
/// several slots, each slot gets an equal share of this number, and the first cores of the slots
/// are evenly spaced over `cores` (unless `cores_per_slot` is set). A single slot gets all cores:
/// its process applies the quota itself, and is not bound to a few cores that other containers may
/// use.
[[nodiscard]] std::vector<Slot> make_slots(const SlotOptions& options,
                                           const std::vector<int>& cores,
                                           const std::vector<std::string>& gpus,
                                           int usable = std::numeric_limits<int>::max());

/// Creates `count` slots that divide `gpus` and `cores` as evenly as possible. Each slot gets
/// neighbouring GPUs and cores; the first slot gets the fewest if they do not divide evenly. If
/// there are fewer GPUs (or cores) than slots, several slots share one.
/// @param usable as for make_slots()
[[nodiscard]] std::vector<Slot> partition_into_slots(int count, const std::vector<int>& cores,
                                                     const std::vector<std::string>& gpus,
                                                     int usable = std::numeric_limits<int>::max());

}  // namespace precast::tools
