#include "data/cache/read_ahead.h"

#include <algorithm>
#include <utility>

#include "framework/core/file.h"

namespace precast::data {
namespace {

/// So many times kSamplesALook samples are asked for after one was missing: in a file of which a
/// part is cached, looks at cached samples do not stop the reading of the others.
constexpr int kAsksAfterMiss = 64;

}  // namespace

ReadAhead::ReadAhead(const MappedFile& file, std::function<FileRange(std::int64_t)> range_of,
                     std::int64_t first, std::int64_t end)
    : file_(file), range_of_(std::move(range_of)), end_(end), next_(first) {}

void ReadAhead::ask() {
  const std::int64_t begin = next_.fetch_add(kSamplesALook, std::memory_order_relaxed);
  const std::int64_t end = std::min(begin + kSamplesALook, end_);
  if (begin >= end) return;
  const FileRange looked_at = range_of_(begin);
  if (looked_at.begin < looked_at.end && !file_.cached(looked_at.begin)) {
    if (asked_ == 0) file_.read_single_pages();
    missing_ = kAsksAfterMiss;
  }
  if (missing_ <= 0) return;
  --missing_;
  for (std::int64_t i = begin; i < end; ++i) {
    const FileRange range = range_of_(i);
    file_.will_need(range.begin, range.end - range.begin);
  }
  asked_ += end - begin;
}

}  // namespace precast::data
