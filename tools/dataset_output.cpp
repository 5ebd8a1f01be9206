#include "tools/dataset_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "framework/core/error.h"

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

data::WriteSummary WatchedWriting::run(const std::string& out, std::uint64_t samples,
                                       data::WriteOptions options, const Write& write) const {
  WriteProgressLine line(what_, samples);
  options.on_progress = [&line](std::uint64_t done, std::uint64_t bytes) {
    line.show(done, bytes);
  };
  options.cancel = &signals_.asked();
  try {
    return write(options);
  } catch (const data::Cancelled& cancelled) {
    line.clear();
    throw Error(fmt::format("{}: {}", out, cancelled.what()),
                static_cast<ExitCode>(signals_.exit_code()));
  }
}

void expect_other_file(const std::string& out, const std::filesystem::path& in) {
  std::error_code ignored;
  if (std::filesystem::equivalent(in, out, ignored))
    throw ConfigError(fmt::format("{}: expected another file to write than to read", out));
}

void print_written(const std::string& out, const data::WriteSummary& summary) {
  fmt::print("{}: {} samples, {} in {} pages, {}\n", out, summary.samples,
             format_bytes(static_cast<double>(summary.file_bytes)), summary.pages,
             format_duration(summary.seconds));
}

nlohmann::ordered_json written_json(const std::string& out, const data::WriteSummary& summary) {
  return {{"file", out},
          {"samples", summary.samples},
          {"pages", summary.pages},
          {"bytes", summary.file_bytes},
          {"seconds", summary.seconds},
          {"samples_per_second",
           static_cast<double>(summary.samples) / std::max(summary.seconds, 1e-9)},
          {"counts", summary.tally}};
}

}  // namespace precast::tools
