#include "data/cache/read_ahead.h"

#include <algorithm>
#include <utility>

namespace precast::data {

ReadAhead::ReadAhead(MappedFiles files, RangesOf ranges_of, std::int64_t first, std::int64_t end)
    : files_(std::move(files)), ranges_of_(std::move(ranges_of)), end_(end), next_(first) {}

void ReadAhead::ask() {
  const std::int64_t begin = next_.fetch_add(kSamplesALook, std::memory_order_relaxed);
  const std::int64_t end = std::min(begin + kSamplesALook, end_);
  if (begin >= end) return;
  if (!missing_) {
    std::vector<FileRange> looked_at;
    for (std::int64_t i = begin; i < end && looked_at.empty(); ++i) looked_at = ranges_of_(i);
    if (looked_at.empty() || files_.cached(looked_at.front().begin)) return;
    missing_ = true;
    files_.read_single_pages();
  }
  for (std::int64_t i = begin; i < end; ++i) {
    for (const FileRange& range : ranges_of_(i))
      files_.will_need(range.begin, range.end - range.begin);
  }
  asked_ += end - begin;
}

}  // namespace precast::data
