#include "tools/commands/sizes_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "framework/core/format.h"

namespace precast::tools {
namespace {

/// Above these values, more pixels or a higher quality made no difference in training.
constexpr int kEnoughPx = 512;
constexpr int kEnoughQuality = 90;

/// How far a way of storing images meets each requirement: a fraction, at most 1.
struct Score {
  double memory = 1;
  double rate = 1;
};

Score score(const MeasuredSettings& settings, double bytes, const Machine& machine) {
  Score found;
  if (machine.ram_bytes) found.memory = std::min(1.0, kMemoryShare * *machine.ram_bytes / bytes);
  if (machine.target_images_per_second)
    found.rate = std::min(
        1.0, machine.cores * settings.images_per_core_second / *machine.target_images_per_second);
  return found;
}

std::string explain(const MeasuredSettings& settings, double bytes, const Machine& machine) {
  std::string why = fmt::format("the dataset takes {}", format_bytes(bytes));
  if (machine.ram_bytes)
    why += fmt::format(", {} {:.0f} % of {}",
                       bytes <= kMemoryShare * *machine.ram_bytes ? "at most" : "more than",
                       100 * kMemoryShare, format_bytes(*machine.ram_bytes));
  const double rate = machine.cores * settings.images_per_core_second;
  why +=
      fmt::format("; {} core{} {:.0f} images/s from it ({:.0f} each)", machine.cores,
                  machine.cores == 1 ? " loads" : "s load", rate, settings.images_per_core_second);
  if (machine.target_images_per_second)
    why += fmt::format(", the target is {:.0f}", *machine.target_images_per_second);
  return why;
}

}  // namespace

Advice advise(const std::vector<MeasuredSettings>& candidates, std::uint64_t images,
              const Machine& machine) {
  const auto bytes_of = [&](const MeasuredSettings& settings) {
    return settings.bytes * static_cast<double>(images);
  };
  const auto rank = [&](const MeasuredSettings& measured) {
    const StorageSettings& settings = measured.settings;
    const Score found = score(measured, bytes_of(measured), machine);
    const int side = settings.max_resolution_px == 0 ? kEnoughPx : settings.max_resolution_px;
    const int quality = settings.jpeg_share == 0 ? kEnoughQuality : settings.quality;
    return std::tuple(found.memory * found.rate, quality >= kEnoughQuality,
                      std::min(side, kEnoughPx), std::min(quality, kEnoughQuality),
                      -measured.bytes);
  };
  const MeasuredSettings& best = *std::ranges::max_element(candidates, {}, rank);
  const double bytes = bytes_of(best);
  const Score found = score(best, bytes, machine);
  return {best, found.memory == 1, found.rate == 1, explain(best, bytes, machine)};
}

std::string mode_text(const StorageSettings& settings) {
  if (settings.jpeg_share == 0) return "raw";
  return settings.jpeg_share == 1 ? "jpg" : fmt::format("proportion {}", settings.jpeg_share);
}

std::string write_options(const StorageSettings& settings) {
  std::string text = fmt::format("--image.max_resolution {}", settings.max_resolution_px);
  if (settings.jpeg_share == 0) return "--image.mode raw " + text;
  text += fmt::format(" --image.quality {}", settings.quality);
  if (settings.jpeg_share == 1) return "--image.mode jpg " + text;
  return fmt::format("--image.mode proportion --image.compress_probability {} {}",
                     settings.jpeg_share, text);
}

}  // namespace precast::tools
