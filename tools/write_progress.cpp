#include "tools/write_progress.h"

#include <fmt/core.h>

#include <utility>

namespace precast::tools {

WriteProgressLine::WriteProgressLine(std::string what, std::uint64_t total)
    : what_(std::move(what)), total_(total) {}

void WriteProgressLine::show(std::uint64_t samples, std::uint64_t bytes) {
  if (!progress_.due()) return;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double rate = static_cast<double>(samples) / seconds;
  progress_.show(fmt::format("{} {}/{} samples, {}, {:.0f} img/s, {} left", what_, samples, total_,
                             format_bytes(static_cast<double>(bytes)), rate,
                             format_duration(static_cast<double>(total_ - samples) / rate)));
}

}  // namespace precast::tools
