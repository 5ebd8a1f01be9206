#include "data/decode/jpeg_index.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "data/decode/index_share.h"
#include "framework/core/cancel.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kBlockNumbers = std::size_t{1} << 16;
/// write() checks for cancellation once per this many samples.
constexpr std::uint64_t kCancelSamples = 1024;

}  // namespace

JpegIndex::JpegIndex(std::uint64_t samples, std::size_t interval, std::uint64_t max_bytes)
    : samples_(samples), interval_(interval), max_bytes_(max_bytes), entries_(samples) {
  require(interval > 0, "the distance between checkpoints is above 0");
}

JpegIndex::JpegIndex(std::vector<std::shared_ptr<JpegIndex>> files)
    : JpegIndex(/*samples=*/0, files.at(0)->interval(), /*max_bytes=*/0) {
  std::uint64_t first = 0;
  for (std::shared_ptr<JpegIndex>& file : files) {
    const std::uint64_t samples = file->samples();
    parts_.push_back({std::move(file), first});
    first += samples;
  }
}

const JpegIndex::Part& JpegIndex::part_of(std::uint64_t sample) const {
  std::size_t i = parts_.size() - 1;
  while (i > 0 && parts_[i].first_sample > sample) --i;
  return parts_[i];
}

std::uint64_t JpegIndex::samples() const {
  if (!parts_.empty()) return parts_.back().first_sample + parts_.back().index->samples();
  return sidecar_ ? sidecar_->samples() : samples_;
}

std::size_t JpegIndex::interval(std::uint64_t sample) const {
  return parts_.empty() ? interval_ : part_of(sample).index->interval();
}

JpegCheckpoints JpegIndex::find(std::uint64_t sample) const {
  if (!parts_.empty()) {
    const Part& part = part_of(sample);
    return part.index->find(sample - part.first_sample);
  }
  if (sidecar_) return sidecar_->find(sample);
  if (shared_) return shared_->find(sample);
  const Entry entry = entries_[sample].load(std::memory_order_acquire);
  if (entry == nullptr) return {};
  return {interval_, {entry + 1, *entry}};
}

bool JpegIndex::accepts(std::uint64_t sample) const {
  if (!parts_.empty()) {
    const Part& part = part_of(sample);
    return part.index->accepts(sample - part.first_sample);
  }
  if (shared_) return shared_->accepts(sample);
  return !sidecar_ && entries_[sample].load(std::memory_order_relaxed) == nullptr &&
         !full_.load(std::memory_order_relaxed);
}

void JpegIndex::add(std::uint64_t sample, std::span<const std::uint64_t> points) {
  if (!parts_.empty()) {
    const Part& part = part_of(sample);
    return part.index->add(sample - part.first_sample, points);
  }
  if (shared_) return shared_->add(sample, points);
  const std::size_t numbers = points.size() + 1;
  const std::scoped_lock lock(mutex_);
  if (!accepts(sample)) return;
  const bool opens_block = blocks_.empty() || used_in_block_ + numbers > kBlockNumbers;
  // If these checkpoints do not fit in the last block, its unused end counts as well. Otherwise
  // bytes() could exceed max_memory_bytes().
  const std::uint64_t used_bytes =
      (opens_block ? bytes_.load() : used_bytes_) + numbers * sizeof(std::uint64_t);
  if (used_bytes > max_bytes_) {
    full_ = true;
    return;
  }
  used_bytes_ = used_bytes;
  if (opens_block) {
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
  if (shared_) return shared_->bytes();
  std::uint64_t bytes = bytes_ + entries_.size() * sizeof(Entry);
  for (const Part& part : parts_) bytes += part.index->bytes();
  return bytes;
}

std::uint64_t JpegIndex::max_memory_bytes() const {
  if (!parts_.empty()) {
    std::uint64_t bytes = 0;
    for (const Part& part : parts_) bytes += part.index->max_memory_bytes();
    return bytes;
  }
  if (shared_) return shared_->max_memory_bytes();
  if (sidecar_ || max_bytes_ == UINT64_MAX) return bytes();
  // add() limits only the bytes up to the last entry. Up to a block of unused memory may follow
  // them.
  return max_bytes_ + kBlockNumbers * sizeof(std::uint64_t) + entries_.size() * sizeof(Entry);
}

std::string JpegIndex::share() {
  std::string addresses;
  for (Part& part : parts_) addresses += part.index->share() + ' ';
  if (!parts_.empty()) return addresses;
  if (!can_grow_unshared()) return {};
  shared_ = SharedCheckpoints::make(samples_, interval_, max_bytes_);
  if (!shared_) return {};
  entries_ = std::vector<std::atomic<Entry>>();
  return shared_->address();
}

bool JpegIndex::join(const std::string& address) {
  if (!parts_.empty()) {
    std::istringstream addresses(address);
    bool any = false;
    std::string one;
    for (Part& part : parts_) any |= std::getline(addresses, one, ' ') && part.index->join(one);
    return any;
  }
  if (!can_grow_unshared()) return false;
  shared_ = SharedCheckpoints::open(address, samples_, interval_);
  if (!shared_) return false;
  entries_ = std::vector<std::atomic<Entry>>();
  return true;
}

void JpegIndex::limit(std::uint64_t max_bytes) {
  for (Part& part : parts_)
    part.index->limit(share_of(max_bytes, part.index->samples(), samples()));
  if (can_grow_unshared()) max_bytes_ = std::min(max_bytes_, max_bytes);
}

bool JpegIndex::write(const std::filesystem::path& path, const std::string& fingerprint,
                      const std::atomic<bool>* cancel) const {
  require(
      !sidecar_ && !shared_ && parts_.empty(),
      "an index that is written covers one file and is neither opened from a sidecar nor shared");
  JpegSidecarWriter file(path, interval_);
  for (std::uint64_t sample = 0; sample < entries_.size(); ++sample) {
    if (sample % kCancelSamples == 0 && is_set(cancel)) return false;
    file.add(find(sample).points);
  }
  file.complete(fingerprint);
  if (is_set(cancel)) return false;
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
