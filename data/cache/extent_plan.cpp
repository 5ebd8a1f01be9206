#include "data/cache/extent_plan.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>
#include <utility>

#include "data/beton/format.h"
#include "data/cache/disk_file.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
/// Whole pages are read where they bring at most so many times the bytes that samples need.
constexpr std::uint64_t kWorthWhile = 2;
constexpr std::uint64_t kSmallestBuffer = std::uint64_t{64} << 10;
constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

bool empty(const FileRange& range) {
  return range.begin == range.end;
}

/// The page that holds all of `range`, or the range itself where there is none.
FileRange unit_of(const FileRange& range, std::uint64_t page_bytes, std::uint64_t file_bytes) {
  const std::uint64_t page = range.begin / page_bytes;
  if ((range.end - 1) / page_bytes != page) return range;
  return {page * page_bytes, std::min((page + 1) * page_bytes, std::max(file_bytes, range.end))};
}

/// Each sample's bytes by themselves.
ExtentPlan plan_samples(std::span<const FileRange> ranges) {
  ExtentPlan plan;
  plan.extent_of.reserve(ranges.size());
  for (const FileRange& range : ranges) {
    plan.extent_of.push_back(empty(range) ? ExtentPlan::kNone
                                          : static_cast<std::uint32_t>(plan.extents.size()));
    if (empty(range)) continue;
    plan.extents.push_back({range, 1});
    plan.read_bytes += range.end - range.begin;
    plan.most_live_bytes = std::max(plan.most_live_bytes, buffer_bytes(range));
  }
  return plan;
}

/// For each sample, the next one in the same unit, or kNever.
std::vector<std::size_t> next_uses(std::span<const FileRange> ranges, std::uint64_t page_bytes,
                                   std::uint64_t file_bytes) {
  std::vector<std::size_t> next(ranges.size(), kNever);
  std::unordered_map<std::uint64_t, std::size_t> seen;
  for (std::size_t i = ranges.size(); i-- > 0;) {
    if (empty(ranges[i])) continue;
    const auto [at, fresh] = seen.try_emplace(unit_of(ranges[i], page_bytes, file_bytes).begin, i);
    if (!fresh) next[i] = std::exchange(at->second, i);
  }
  return next;
}

/// Walks the samples and keeps units as long as they fit.
class PagePlanner {
 public:
  explicit PagePlanner(std::uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  void use(const FileRange& unit, std::size_t next_use) {
    auto at = live_.find(unit.begin);
    // Units may begin at one place and differ in length: a page, and a sample across two.
    if (at != live_.end() && plan_.extents[at->second.extent].range.end != unit.end) {
      drop(at);
      at = live_.end();
    }
    if (at == live_.end()) {
      const std::uint64_t bytes = buffer_bytes(unit);
      while (!live_.empty() && live_bytes_ + bytes > capacity_bytes_)
        drop(live_.find(by_next_use_.rbegin()->second));
      live_bytes_ += bytes;
      plan_.most_live_bytes = std::max(plan_.most_live_bytes, live_bytes_);
      plan_.read_bytes += unit.end - unit.begin;
      at = live_.emplace(unit.begin, Live{static_cast<std::uint32_t>(plan_.extents.size()), kNever})
               .first;
      plan_.extents.push_back({unit, 0});
    } else {
      by_next_use_.erase({at->second.next_use, unit.begin});
    }
    ++plan_.extents[at->second.extent].uses;
    plan_.extent_of.push_back(at->second.extent);
    at->second.next_use = next_use;
    by_next_use_.emplace(next_use, unit.begin);
    if (next_use == kNever) drop(at);
  }
  void skip() { plan_.extent_of.push_back(ExtentPlan::kNone); }
  [[nodiscard]] ExtentPlan take() { return std::move(plan_); }

 private:
  struct Live {
    std::uint32_t extent;
    std::size_t next_use;
  };
  using LiveUnits = std::unordered_map<std::uint64_t, Live>;

  void drop(LiveUnits::iterator at) {
    live_bytes_ -= buffer_bytes(plan_.extents[at->second.extent].range);
    by_next_use_.erase({at->second.next_use, at->first});
    live_.erase(at);
  }

  std::uint64_t capacity_bytes_;
  std::uint64_t live_bytes_ = 0;
  ExtentPlan plan_;
  /// By where they begin.
  LiveUnits live_;
  std::set<std::pair<std::size_t, std::uint64_t>> by_next_use_;
};

}  // namespace

std::uint64_t buffer_bytes(const FileRange& range) {
  constexpr std::uint64_t kUnit = DiskFile::kDirectAlignment;
  const std::uint64_t bytes = round_up(range.end, kUnit) - range.begin / kUnit * kUnit;
  if (bytes > kMebibyte) return round_up(bytes, kMebibyte);
  return std::max(kSmallestBuffer, std::bit_ceil(bytes));
}

ExtentPlan plan_extents(std::span<const FileRange> ranges, std::uint64_t page_bytes,
                        std::uint64_t file_bytes, std::uint64_t capacity_bytes) {
  require(ranges.size() < ExtentPlan::kNone, "a rank's pass has fewer than 2^32 - 1 samples");
  const std::vector<std::size_t> next = next_uses(ranges, page_bytes, file_bytes);
  PagePlanner pages(capacity_bytes);
  std::uint64_t needed_bytes = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (empty(ranges[i])) {
      pages.skip();
      continue;
    }
    needed_bytes += ranges[i].end - ranges[i].begin;
    pages.use(unit_of(ranges[i], page_bytes, file_bytes), next[i]);
  }
  ExtentPlan plan = pages.take();
  const bool pays = plan.read_bytes <= kWorthWhile * needed_bytes;
  if (pays && plan.most_live_bytes <= capacity_bytes) return plan;
  return plan_samples(ranges);
}

}  // namespace precast::data
