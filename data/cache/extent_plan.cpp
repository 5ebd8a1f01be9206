#include "data/cache/extent_plan.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>
#include <utility>

#include "data/beton/disk_file.h"
#include "data/beton/format.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
/// Complete pages are read only if their total size is at most this multiple of the bytes that the
/// samples need.
constexpr std::uint64_t kMaxReadAmplification = 2;
constexpr std::uint64_t kMinBufferBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

bool empty(const FileRange& range) {
  return range.begin == range.end;
}

bool in_one_page(const FileRange& range, std::uint64_t page_bytes) {
  return range.begin / page_bytes == (range.end - 1) / page_bytes;
}

/// Plans a separate read for each sample.
ExtentPlan plan_samples(std::span<const FileRange> ranges) {
  ExtentPlan plan;
  plan.extent_of.reserve(ranges.size());
  for (const FileRange& range : ranges) {
    plan.extent_of.push_back(empty(range) ? ExtentPlan::kNone
                                          : static_cast<std::uint32_t>(plan.extents.size()));
    if (empty(range)) continue;
    plan.extents.push_back({range, 1});
    plan.read_bytes += range.end - range.begin;
    plan.max_live_bytes = std::max(plan.max_live_bytes, buffer_bytes(range));
  }
  return plan;
}

/// Returns, for each sample that is inside one page, the index of the next sample in that page, or
/// kNever.
std::vector<std::size_t> next_uses(std::span<const FileRange> ranges, std::uint64_t page_bytes) {
  std::vector<std::size_t> next(ranges.size(), kNever);
  std::unordered_map<std::uint64_t, std::size_t> seen;
  for (std::size_t i = ranges.size(); i-- > 0;) {
    if (empty(ranges[i]) || !in_one_page(ranges[i], page_bytes)) continue;
    const auto [at, fresh] = seen.try_emplace(ranges[i].begin / page_bytes, i);
    if (!fresh) next[i] = std::exchange(at->second, i);
  }
  return next;
}

/// Goes through the samples in order, and plans how long each page stays in memory.
class PagePlanner {
 public:
  PagePlanner(std::uint64_t page_bytes, std::uint64_t file_bytes, std::uint64_t capacity_bytes)
      : page_bytes_(page_bytes), file_bytes_(file_bytes), capacity_bytes_(capacity_bytes) {}

  void use_page(std::uint64_t page, std::size_t next_use) {
    auto at = live_.find(page);
    if (at == live_.end()) {
      const FileRange range{page * page_bytes_, std::min((page + 1) * page_bytes_, file_bytes_)};
      make_room(buffer_bytes(range));
      at = live_.emplace(page, Live{add(range), kNever}).first;
      live_bytes_ += buffer_bytes(range);
    } else {
      by_next_use_.erase({at->second.next_use, page});
    }
    ++plan_.extents[at->second.extent].uses;
    plan_.extent_of.push_back(at->second.extent);
    at->second.next_use = next_use;
    by_next_use_.emplace(next_use, page);
    if (next_use == kNever) drop(at);
  }
  /// Plans a separate read for one sample.
  void use_separately(const FileRange& range) {
    make_room(buffer_bytes(range));
    plan_.extent_of.push_back(add(range));
    plan_.extents.back().uses = 1;
  }
  void skip() { plan_.extent_of.push_back(ExtentPlan::kNone); }
  [[nodiscard]] ExtentPlan take() { return std::move(plan_); }

 private:
  struct Live {
    std::uint32_t extent;
    std::size_t next_use;
  };
  using LivePages = std::unordered_map<std::uint64_t, Live>;

  /// Drops pages until another `bytes` bytes fit, or no page is left.
  void make_room(std::uint64_t bytes) {
    while (!live_.empty() && live_bytes_ + bytes > capacity_bytes_)
      drop(live_.find(by_next_use_.rbegin()->second));
    plan_.max_live_bytes = std::max(plan_.max_live_bytes, live_bytes_ + bytes);
  }
  std::uint32_t add(const FileRange& range) {
    plan_.read_bytes += range.end - range.begin;
    plan_.extents.push_back({range, 0});
    return static_cast<std::uint32_t>(plan_.extents.size() - 1);
  }
  void drop(LivePages::iterator at) {
    live_bytes_ -= buffer_bytes(plan_.extents[at->second.extent].range);
    by_next_use_.erase({at->second.next_use, at->first});
    live_.erase(at);
  }

  const std::uint64_t page_bytes_;
  const std::uint64_t file_bytes_;
  const std::uint64_t capacity_bytes_;
  std::uint64_t live_bytes_ = 0;
  ExtentPlan plan_;
  LivePages live_;
  std::set<std::pair<std::size_t, std::uint64_t>> by_next_use_;
};

}  // namespace

std::uint64_t buffer_bytes(const FileRange& range) {
  constexpr std::uint64_t kUnit = DiskFile::kDirectAlignment;
  const std::uint64_t bytes = round_up(range.end, kUnit) - range.begin / kUnit * kUnit;
  if (bytes > kMebibyte) return round_up(bytes, kMebibyte);
  return std::max(kMinBufferBytes, std::bit_ceil(bytes));
}

ExtentPlan plan_extents(std::span<const FileRange> ranges, std::uint64_t page_bytes,
                        std::uint64_t file_bytes, std::uint64_t capacity_bytes) {
  require(ranges.size() < ExtentPlan::kNone, "a rank's pass has fewer than 2^32 - 1 samples");
  const std::vector<std::size_t> next = next_uses(ranges, page_bytes);
  PagePlanner pages(page_bytes, file_bytes, capacity_bytes);
  std::uint64_t needed_bytes = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    needed_bytes += ranges[i].end - ranges[i].begin;
    if (empty(ranges[i])) {
      pages.skip();
    } else if (in_one_page(ranges[i], page_bytes)) {
      pages.use_page(ranges[i].begin / page_bytes, next[i]);
    } else {
      pages.use_separately(ranges[i]);
    }
  }
  ExtentPlan plan = pages.take();
  const bool is_efficient = plan.read_bytes <= kMaxReadAmplification * needed_bytes;
  if (is_efficient && plan.max_live_bytes <= capacity_bytes) return plan;
  return plan_samples(ranges);
}

}  // namespace precast::data
