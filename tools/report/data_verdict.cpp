#include "tools/report/data_verdict.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "framework/core/format.h"

namespace precast::tools {
namespace {

/// If the model waits for less than this share of the time, data loading is fast enough.
constexpr double kMinWaitShare = 0.02;
/// If the GPU copies batches for at least this share of the time, the model waits for the copies.
constexpr double kCopyingShare = 0.9;
/// With more major page faults per image than this, blocked threads are assumed to wait for the
/// disk.
constexpr double kMinDiskFaultsPerImage = 0.05;

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::string advice(const DataFacts& facts, DataBottleneck limit) {
  switch (limit) {
    case DataBottleneck::processing:
      if (facts.workers < facts.default_workers)
        return fmt::format("raise data.num_workers from {} to {}, its default", facts.workers,
                           facts.default_workers);
      if (!facts.has_jpegs) return "use fewer transforms (pipeline.train) or more cores";
      return "run `precast index` on the dataset, write it with smaller images "
             "(--image.max_resolution), or store some of them raw (--image.mode proportion)";
    case DataBottleneck::disk:
      if (facts.in_memory == 0)
        return "raise data.cache_mb, store JPEGs instead of raw images, or move the file to a "
               "faster disk";
      return "set data.in_memory: 2 if the file fits in memory, otherwise data.in_memory: 0 with "
             "data.order: quasi_random";
    case DataBottleneck::cores:
      return "lower data.num_workers or OMP_NUM_THREADS, so that threads do not compete for cores";
    case DataBottleneck::copies:
      return "copy fewer bytes: leave out `convert`, so that images are copied as uint8, or train "
             "on smaller images; and check the GPU's PCIe link (nvidia-smi -q -d PCIE)";
    case DataBottleneck::nothing:
      break;
  }
  return {};
}

std::string name(DataBottleneck limit) {
  switch (limit) {
    case DataBottleneck::processing:
      return "decoding";
    case DataBottleneck::disk:
      return "the disk";
    case DataBottleneck::cores:
      return "a free core";
    case DataBottleneck::copies:
    case DataBottleneck::nothing:
      break;
  }
  return {};
}

}  // namespace

DataBottleneck find_bottleneck(const DataFacts& facts) {
  if (share(facts.times.copying, facts.train_seconds) >= kCopyingShare)
    return DataBottleneck::copies;
  if (share(facts.wait_seconds, facts.train_seconds) < kMinWaitShare)
    return DataBottleneck::nothing;
  const SourceTimes& times = facts.times;
  if (times.processing + times.disk + times.blocked <= times.ahead) return DataBottleneck::nothing;
  const bool reads = static_cast<double>(facts.major_faults) >
                     kMinDiskFaultsPerImage * static_cast<double>(facts.process_images);
  const double disk = facts.times.disk + (reads ? facts.times.blocked : 0);
  const double cores = reads ? 0 : facts.times.blocked;
  const double longest = std::max({facts.times.processing, disk, cores});
  if (longest == disk && disk > 0) return DataBottleneck::disk;
  return longest == cores && cores > 0 ? DataBottleneck::cores : DataBottleneck::processing;
}

std::vector<std::string> describe_replaced(std::span<const ReplacedSample> replaced) {
  if (replaced.empty()) return {};
  constexpr std::size_t kMaxShown = 10;
  std::vector<std::string> lines = {
      fmt::format("{} cannot be decoded and {} replaced by the next intact one",
                  format_count(replaced.size(), "sample"), replaced.size() == 1 ? "was" : "were")};
  for (const ReplacedSample& entry : replaced.first(std::min(replaced.size(), kMaxShown)))
    lines.push_back(fmt::format("  {} replaced by {}, {}: {}", entry.sample, entry.by,
                                format_count(static_cast<std::uint64_t>(entry.times), "time"),
                                entry.error));
  if (replaced.size() > kMaxShown)
    lines.push_back(fmt::format("  ... and {} more", replaced.size() - kMaxShown));
  return lines;
}

std::vector<std::string> describe_data(const DataFacts& facts) {
  const SourceTimes& times = facts.times;
  const double all = times.processing + times.disk + times.blocked + times.ahead;
  const DataBottleneck limit = find_bottleneck(facts);
  const auto percent = [](double part) { return fmt::format("{:.1f} %", 100 * part); };
  // For `copies`, the line names no cause: the GPU waits for them between two steps, not the host.
  const std::string cause = name(limit);
  std::vector<std::string> lines = {fmt::format(
      "{} {}, {} waiting for data{}", percent(1 - share(facts.wait_seconds, facts.train_seconds)),
      limit == DataBottleneck::copies ? "computing or waiting for copies" : "computing",
      percent(share(facts.wait_seconds, facts.train_seconds)),
      cause.empty() ? "" : ", mainly for " + cause)};
  if (times.copying > 0)
    lines[0] += fmt::format("; copies to the GPU took {} of the time",
                            percent(share(times.copying, facts.train_seconds)));
  // If the run takes its batches from a ring, another process loads them, and there are no times to
  // show.
  if (all > 0) {
    lines[0] += fmt::format(
        "; {}: {} decoding, {} waiting for reads, {} blocked (page faults or busy "
        "cores), {} ahead of the model",
        format_count(static_cast<std::uint64_t>(facts.workers), "loader thread"),
        percent(share(times.processing, all)), percent(share(times.disk, all)),
        percent(share(times.blocked, all)), percent(share(times.ahead, all)));
  }
  if (limit != DataBottleneck::nothing) lines.push_back("to wait less: " + advice(facts, limit));
  for (std::string& line : describe_replaced(facts.replaced)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace precast::tools
