#include "tools/experiments/trial/slot.h"

#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <type_traits>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/parse_number.h"

namespace precast::tools {
namespace {

/// Returns the names of a folder's entries; empty if the folder does not exist.
std::vector<std::string> entries_of(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (auto entry = std::filesystem::directory_iterator(folder, none);
       !none && entry != std::filesystem::directory_iterator(); entry.increment(none)) {
    names.push_back(entry->path().filename());
  }
  return names;
}

/// Whether `device` is `nvidia0`, `nvidia1` ...
bool names_a_gpu(const std::string& device) {
  constexpr std::string_view kPrefix = "nvidia";
  return device.size() > kPrefix.size() && device.starts_with(kPrefix) &&
         std::all_of(device.begin() + kPrefix.size(), device.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::size_t gpu_count(const std::filesystem::path& root) {
  std::size_t count = entries_of(root / "proc/driver/nvidia/gpus").size();
  // A container may have only the device files.
  if (count == 0)
    count = static_cast<std::size_t>(std::ranges::count_if(entries_of(root / "dev"), names_a_gpu));
  std::error_code none;
  // /dev/dxg exists for GPUs of any vendor, the CUDA library only for Nvidia GPUs.
  if (count == 0 && std::filesystem::exists(root / "dev/dxg", none) &&
      std::filesystem::exists(root / "usr/lib/wsl/lib/libcuda.so.1", none)) {
    count = 1;
  }
  return count;
}

/// The GPU with that index; null if there is none. @param index decimal digits.
const std::string* gpu_at(const std::string& index, const std::vector<std::string>& gpus) {
  const auto at = parse_number<std::size_t>(index);
  return at && *at < gpus.size() ? &gpus[*at] : nullptr;
}

bool is_index(const std::string& device) {
  return device != "auto" && device != "cpu";
}

/// The number of `cores` that `slots` processes together can use. A single process applies the CPU
/// quota itself; each of several processes would claim the whole quota.
std::size_t limited_cores(const std::vector<int>& cores, int usable, std::size_t slots) {
  if (slots == 1) return cores.size();
  return std::min(cores.size(), static_cast<std::size_t>(std::max(1, usable)));
}

}  // namespace

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

std::vector<std::string> visible_gpus(const std::filesystem::path& root) {
  std::vector<std::string> gpus;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
    std::istringstream text(visible);
    for (std::string gpu; std::getline(text, gpu, ',');) {
      if (gpu.starts_with('-')) break;  // CUDA ignores the first invalid index and all after it
      if (!gpu.empty()) gpus.push_back(gpu);
    }
    return gpus;
  }
  const std::size_t count = gpu_count(root);
  for (std::size_t gpu = 0; gpu < count; ++gpu) gpus.push_back(std::to_string(gpu));
  return gpus;
}

std::vector<std::string> missing_gpus(const SlotOptions& options,
                                      const std::vector<std::string>& gpus) {
  std::vector<std::string> missing;
  std::ranges::copy_if(options.devices, std::back_inserter(missing),
                       [&](const std::string& device) {
                         return is_index(device) && gpu_at(device, gpus) == nullptr;
                       });
  return missing;
}

std::vector<Slot> make_slots(const SlotOptions& options, const std::vector<int>& cores,
                             const std::vector<std::string>& gpus, int usable) {
  require(!cores.empty() && options.slots_per_device > 0, "there is a core and a slot");
  std::vector<std::string> devices = options.devices;
  for (std::string& device : devices) {
    if (!is_index(device)) continue;
    if (const std::string* const gpu = gpu_at(device, gpus)) device = *gpu;
  }
  if (devices == std::vector<std::string>{"auto"}) devices = gpus;
  if (devices.empty()) devices = {"cpu"};
  const std::size_t count = devices.size() * static_cast<std::size_t>(options.slots_per_device);
  const auto part = [count](std::size_t all) { return std::max<std::size_t>(1, all / count); };
  std::size_t share = part(limited_cores(cores, usable, count));
  std::size_t spacing = part(cores.size());
  if (options.cores_per_slot > 0)
    share = spacing = static_cast<std::size_t>(options.cores_per_slot);
  std::vector<Slot> slots;
  for (const std::string& device : devices) {
    for (int i = 0; i < options.slots_per_device; ++i) {
      Slot slot;
      if (device != "cpu") slot.gpu = device;
      slot.name = device == "cpu" ? device : "gpu" + device;
      if (options.slots_per_device > 1) slot.name += fmt::format(".{}", i);
      for (std::size_t core = 0; core < std::min(share, cores.size()); ++core)
        slot.cores.push_back(cores[(slots.size() * spacing + core) % cores.size()]);
      slots.push_back(std::move(slot));
    }
  }
  return slots;
}

std::vector<Slot> partition_into_slots(int count, const std::vector<int>& cores,
                                       const std::vector<std::string>& gpus, int usable) {
  require(count > 0 && !cores.empty(), "there is a slot and a core");
  const auto n = static_cast<std::size_t>(count);
  // Part i of n contiguous parts. If there are fewer than n elements, several parts share one.
  const auto part = [n](const auto& all, std::size_t i) {
    using List = std::decay_t<decltype(all)>;
    const std::size_t first = i * all.size() / n;
    const std::size_t last = std::max(first + 1, (i + 1) * all.size() / n);
    return List(all.begin() + static_cast<std::ptrdiff_t>(first),
                all.begin() + static_cast<std::ptrdiff_t>(std::min(last, all.size())));
  };
  const std::size_t limit = limited_cores(cores, usable, n);
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < n; ++i) {
    std::string visible;
    if (!gpus.empty()) visible = fmt::format("{}", fmt::join(part(gpus, i), ","));
    std::vector<int> own = part(cores, i);
    own.resize(std::min(own.size(), std::max<std::size_t>(1, (i + 1) * limit / n - i * limit / n)));
    slots.push_back({.name = fmt::format("part{}", i), .gpu = visible, .cores = std::move(own)});
  }
  return slots;
}

}  // namespace precast::tools
