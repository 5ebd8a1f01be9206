#include "tools/commands/dataset_output.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <fstream>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/beton/format.h"
#include "data/beton/sums.h"
#include "data/decode/jpeg_sidecar.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/format.h"

namespace precast::tools {
namespace {

namespace fs = std::filesystem;

/// Whether a file begins with the header of a .beton file. The rest of the file may be missing.
bool has_beton_header(const fs::path& path) {
  std::array<char, data::kHeaderBytes> head{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(head.data(), head.size())) return false;
  const auto* at = reinterpret_cast<const std::byte*>(head.data());
  const auto fields = data::load<std::uint16_t>(at + 2);
  const auto page_bytes = data::load<std::uint32_t>(at + 4);
  return data::load<std::uint16_t>(at) == data::kBetonVersion && fields > 0 &&
         fields <= data::kMaxFields && std::has_single_bit(page_bytes);
}

/// The canonical form of a path, so that two paths of one file are equal. The file need not exist.
fs::path resolved(const std::string& out) {
  std::error_code failure;
  const fs::path path = fs::weakly_canonical(fs::absolute(out), failure);
  return failure ? fs::path(out) : path;
}

}  // namespace

WriteProgressLine::WriteProgressLine(std::string what, std::uint64_t total)
    : what_(std::move(what)), total_(total) {}

void WriteProgressLine::show(std::uint64_t samples, std::uint64_t bytes) {
  if (!progress_.due()) return;
  progress_.show(fmt::format("{} {}/{} samples, {}, {}", what_, samples, total_,
                             format_bytes(static_cast<double>(bytes)),
                             progress_.rate(samples, total_)));
}

data::WriteSummary MonitoredWrite::run(const std::string& out, std::uint64_t samples,
                                       data::WriteOptions options, const Write& write) const {
  WriteProgressLine line(what_, samples);
  options.on_progress = [&line](std::uint64_t done, std::uint64_t bytes) {
    line.show(done, bytes);
  };
  options.cancel = &StopSignals::requested();
  try {
    return write(options);
  } catch (const data::Cancelled& cancelled) {
    line.clear();
    throw Error(fmt::format("{}: {}", out, cancelled.what()),
                static_cast<ExitCode>(StopSignals::exit_code()));
  } catch (const IoError& error) {
    // The error may name a temporary file, which the user does not know.
    if (std::string_view(error.what()).find(out + ": ") != std::string_view::npos) throw;
    throw IoError(fmt::format("{}: {}", out, error.what()));
  }
}

void check_different_file(const std::string& out, const std::filesystem::path& in) {
  std::error_code ignored;
  if (std::filesystem::equivalent(in, out, ignored))
    throw ConfigError(fmt::format("{}: expected an output file other than {}", out, in.string()));
}

void check_folder(const std::string& out) {
  if (out.empty()) throw ConfigError("expected the name of a file to write, got an empty name");
  const fs::path folder = fs::path(out).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    throw IoError(fmt::format(
        "cannot write {}: expected a folder {}, got none. Create it first: mkdir -p '{}'", out,
        folder.string(), folder.string()));
}

void check_output(const std::string& out, const std::vector<fs::path>& inputs) {
  check_folder(out);
  for (const fs::path& input : inputs) check_different_file(out, input);
  std::error_code ignored;
  if (!fs::is_regular_file(out, ignored) || fs::file_size(out, ignored) == 0 ||
      has_beton_header(out))
    return;
  throw ConfigError(fmt::format(
      "{}: expected no file there, or a .beton file to replace, got another file. Use another "
      "name, or remove the file first",
      out));
}

OutputFiles::OutputFiles(const std::vector<std::string>& outs) {
  for (const std::string& out : outs) {
    const fs::path target = resolved(out);
    File file{.target = target, .write_path = out, .names = {out, target}};
    for (const fs::path& name : file.names) data::check_sums_sidecar(name);
    if (std::ranges::find(files_, file.target, &File::target) != files_.end())
      throw ConfigError(
          fmt::format("{}: expected different files to write, got this file twice", out));
    if (outs.size() > 1) {
      std::error_code ignored;
      if (fs::exists(file.target, ignored) && !fs::is_regular_file(file.target, ignored))
        throw IoError(fmt::format(
            "cannot write {}: expected a regular file or a new name, got a {}", out,
            fs::is_directory(file.target, ignored) ? "folder" : "device, a pipe or a socket"));
      file.write_path = fmt::format("{}.part.{}", file.target.string(), ::getpid());
    }
    files_.push_back(std::move(file));
  }
}

OutputFiles::~OutputFiles() {
  std::error_code ignored;
  if (files_.size() < 2) return;
  for (const File& file : files_) fs::remove(file.write_path, ignored);
}

void OutputFiles::publish() {
  if (files_.size() < 2) return;
  FileOps& ops = posix_file_ops();
  for (const File& file : files_) {
    // A dataset without sidecars is valid, but a dataset with the sidecars of another dataset is
    // not.
    for (const fs::path& name : file.names) {
      data::remove_sums_sidecar(name, ops);
      data::remove_jpeg_sidecar(name, ops);
    }
    if (retry_on_eintr([&] { return ops.rename(file.write_path.c_str(), file.target.c_str()); }) !=
        0)
      throw IoError("cannot rename the temporary file to", file.target.string(), errno);
    const std::string folder = file.target.parent_path().string();
    if (retry_on_eintr([&] { return ops.fsync_folder(folder.c_str()); }) != 0)
      throw IoError("cannot sync the folder of", file.target.string(), errno);
  }
}

void print_skipped(const std::vector<data::SkippedSample>& skipped) {
  if (skipped.empty()) return;
  fmt::print(stderr, "warning: damaged or unsupported samples left out: {}\n", skipped.size());
  constexpr std::size_t kMaxShown = 10;
  for (const auto& [index, name, what] :
       std::span(skipped).first(std::min(skipped.size(), kMaxShown))) {
    // `name` is empty if the source could not read the sample. The message then names the sample.
    fmt::print(stderr, "  {}{}: {}\n", index, name.empty() ? "" : fmt::format(" ({})", name), what);
  }
  if (skipped.size() > kMaxShown)
    fmt::print(stderr, "  ... and {} more; --json lists all\n", skipped.size() - kMaxShown);
}

nlohmann::ordered_json skipped_json(const std::vector<data::SkippedSample>& skipped) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const data::SkippedSample& sample : skipped)
    list.push_back({{"sample", sample.index}, {"name", sample.name}, {"error", sample.error}});
  return list;
}

void print_written(const std::string& out, const data::WriteSummary& summary) {
  fmt::print("{}: {}, {} in {}, {}\n", out, format_count(summary.samples, "sample"),
             format_bytes(static_cast<double>(summary.file_bytes)),
             format_count(summary.pages, "page"), format_duration(summary.seconds));
  if (!summary.tally.empty()) fmt::print("counts: {}\n", tally_text(summary.tally));
}

std::string tally_text(const data::Tally& tally) {
  std::string text;
  for (const auto& [event, count] : tally)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", event, count);
  return text;
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
