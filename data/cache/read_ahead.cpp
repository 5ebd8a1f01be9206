#include "data/cache/read_ahead.h"

#include <algorithm>
#include <utility>

namespace precast::data {

ReadAhead::ReadAhead(MappedFiles files, RangesOf ranges_of, std::int64_t first, std::int64_t end)
    : files_(std::move(files)), ranges_of_(std::move(ranges_of)), end_(end), next_(first) {}

void ReadAhead::request_next() {
  const std::int64_t begin = next_.fetch_add(kSamplesPerCheck, std::memory_order_relaxed);
  const std::int64_t end = std::min(begin + kSamplesPerCheck, end_);
  if (begin >= end) return;
  if (!found_uncached_) {
    std::vector<FileRange> checked_ranges;
    for (std::int64_t i = begin; i < end && checked_ranges.empty(); ++i)
      checked_ranges = ranges_of_(i);
    if (checked_ranges.empty() || files_.cached(checked_ranges.front().begin)) return;
    found_uncached_ = true;
    files_.disable_readahead();
  }
  for (std::int64_t i = begin; i < end; ++i) {
    for (const FileRange& range : ranges_of_(i))
      files_.will_need(range.begin, range.end - range.begin);
  }
  requested_ += end - begin;
}

}  // namespace precast::data
