#include "data/decode/jpeg_index.h"

#include <algorithm>
#include <utility>

#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kBlockNumbers = std::size_t{1} << 16;
/// Samples after which write() looks for a cancel request.
constexpr std::uint64_t kCancelSamples = 1024;

}  // namespace

JpegIndex::JpegIndex(std::uint64_t samples, std::size_t interval, std::uint64_t max_bytes)
    : interval_(interval), max_bytes_(max_bytes), entries_(samples) {
  require(interval > 0, "checkpoints have a distance");
}

JpegCheckpoints JpegIndex::find(std::uint64_t sample) const {
  if (sidecar_) return sidecar_->find(sample);
  const Entry entry = entries_[sample].load(std::memory_order_acquire);
  if (entry == nullptr) return {};
  return {interval_, {entry + 1, *entry}};
}

bool JpegIndex::wants(std::uint64_t sample) const {
  return !sidecar_ && entries_[sample].load(std::memory_order_relaxed) == nullptr &&
         !full_.load(std::memory_order_relaxed);
}

void JpegIndex::add(std::uint64_t sample, std::span<const std::uint64_t> points) {
  const std::size_t numbers = points.size() + 1;
  const std::scoped_lock lock(mutex_);
  if (!wants(sample)) return;
  if (used_bytes_ + numbers * sizeof(std::uint64_t) > max_bytes_) {
    full_ = true;
    return;
  }
  used_bytes_ += numbers * sizeof(std::uint64_t);
  if (blocks_.empty() || used_in_block_ + numbers > kBlockNumbers) {
    const std::size_t size = std::max(numbers, kBlockNumbers);
    blocks_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(size));
    used_in_block_ = 0;
    bytes_ += size * sizeof(std::uint64_t);
  }
  std::uint64_t* const entry = blocks_.back().get() + used_in_block_;
  used_in_block_ += numbers;
  entry[0] = points.size();
  std::ranges::copy(points, entry + 1);
  entries_[sample].store(entry, std::memory_order_release);
}

std::uint64_t JpegIndex::bytes() const {
  if (sidecar_) return sidecar_->bytes();
  return bytes_ + entries_.size() * sizeof(Entry);
}

std::uint64_t JpegIndex::bytes_at_most() const {
  if (sidecar_ || max_bytes_ == UINT64_MAX) return bytes();
  // The last block may be empty except for its start.
  return max_bytes_ + kBlockNumbers * sizeof(std::uint64_t) + entries_.size() * sizeof(Entry);
}

bool JpegIndex::write(const std::filesystem::path& path, const std::string& fingerprint,
                      const std::atomic<bool>* cancel) const {
  require(!sidecar_, "an index that was opened is already in a file");
  JpegSidecarWriter file(path, interval_);
  const auto cancelled = [cancel] { return cancel != nullptr && cancel->load(); };
  for (std::uint64_t sample = 0; sample < entries_.size(); ++sample) {
    if (sample % kCancelSamples == 0 && cancelled()) return false;
    file.add(find(sample).points);
  }
  file.complete(fingerprint);
  if (cancelled()) return false;
  file.commit();
  return true;
}

std::unique_ptr<JpegIndex> JpegIndex::open(const std::filesystem::path& path,
                                           const std::string& fingerprint, std::uint64_t samples) {
  auto sidecar = std::make_unique<JpegSidecar>(path, fingerprint, samples);
  auto index = std::make_unique<JpegIndex>(/*samples=*/0, sidecar->interval(), /*max_bytes=*/0);
  index->sidecar_ = std::move(sidecar);
  return index;
}

}  // namespace precast::data
