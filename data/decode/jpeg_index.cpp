#include "data/decode/jpeg_index.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kBlockNumbers = std::size_t{1} << 16;
constexpr std::uint64_t kMagic = 0x3130584449474A50;  // "PJGIDX01", little-endian

/// The numbers at the start of a sidecar; after them, for each sample, the number of its
/// checkpoints and the checkpoints. All are 64 bits, little-endian.
struct SidecarHeader {
  std::uint64_t magic = kMagic;
  std::uint64_t hash = 0;  // XXH3-64 of all that follows
  std::uint64_t fingerprint = 0;
  std::uint64_t interval = 0;
  std::uint64_t samples = 0;
};
constexpr std::size_t kHashedFrom = 2 * sizeof(std::uint64_t);

std::uint64_t number_of(const std::string& fingerprint) {
  return std::stoull(fingerprint, nullptr, 16);
}

}  // namespace

JpegIndex::JpegIndex(std::uint64_t samples, std::size_t interval, std::uint64_t max_bytes)
    : interval_(interval), max_bytes_(max_bytes), entries_(samples) {
  require(interval > 0, "checkpoints have a distance");
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
  return parts_.empty() ? entries_.size()
                        : parts_.back().first_sample + parts_.back().index->samples();
}

std::size_t JpegIndex::interval(std::uint64_t sample) const {
  return parts_.empty() ? interval_ : part_of(sample).index->interval();
}

std::filesystem::path JpegIndex::sidecar(const std::filesystem::path& dataset) {
  std::filesystem::path path = dataset;
  path += ".jidx";
  return path;
}

JpegCheckpoints JpegIndex::find(std::uint64_t sample) const {
  if (!parts_.empty()) {
    const Part& part = part_of(sample);
    return part.index->find(sample - part.first_sample);
  }
  const Entry entry = entries_[sample].load(std::memory_order_acquire);
  if (entry == nullptr) return {};
  return {interval_, {entry + 1, *entry}};
}

bool JpegIndex::wants(std::uint64_t sample) const {
  if (!parts_.empty()) {
    const Part& part = part_of(sample);
    return part.index->wants(sample - part.first_sample);
  }
  return entries_[sample].load(std::memory_order_relaxed) == nullptr &&
         !full_.load(std::memory_order_relaxed);
}

void JpegIndex::add(std::uint64_t sample, std::span<const std::uint64_t> points) {
  if (!parts_.empty()) {
    const Part& part = part_of(sample);
    return part.index->add(sample - part.first_sample, points);
  }
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
  std::uint64_t bytes = bytes_ + entries_.size() * sizeof(Entry);
  for (const Part& part : parts_) bytes += part.index->bytes();
  return bytes;
}

std::uint64_t JpegIndex::bytes_at_most() const {
  if (!parts_.empty()) {
    std::uint64_t bytes = 0;
    for (const Part& part : parts_) bytes += part.index->bytes_at_most();
    return bytes;
  }
  const std::uint64_t pointers = entries_.size() * sizeof(Entry);
  if (file_ || max_bytes_ == UINT64_MAX) return bytes_ + pointers;
  // The last block may be empty except for its start.
  return max_bytes_ + kBlockNumbers * sizeof(std::uint64_t) + pointers;
}

bool JpegIndex::write(const std::filesystem::path& path, const std::string& fingerprint,
                      const std::atomic<bool>* cancel) const {
  require(parts_.empty(), "an index is written of one file");
  SidecarHeader header{
      .fingerprint = number_of(fingerprint), .interval = interval_, .samples = entries_.size()};
  AtomicFile file(path);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       XXH3_freeState);
  XXH3_state_t* const hash = state.get();
  XXH3_64bits_reset(hash);
  const auto cancelled = [cancel] { return cancel != nullptr && cancel->load(); };
  const auto append = [&](std::span<const std::uint64_t> numbers) {
    XXH3_64bits_update(hash, numbers.data(), numbers.size_bytes());
    file.append(std::as_bytes(numbers));
  };
  file.append(std::as_bytes(std::span(&header.magic, 2)));
  append(std::span(&header.fingerprint, 3));
  // Adjacent entries of a block are written a thousand at a time.
  std::vector<std::uint64_t> numbers;
  for (const std::atomic<Entry>& entry : entries_) {
    const Entry at = entry.load(std::memory_order_acquire);
    numbers.push_back(at == nullptr ? 0 : *at);
    if (at != nullptr) numbers.insert(numbers.end(), at + 1, at + 1 + *at);
    if (numbers.size() > kBlockNumbers) {
      if (cancelled()) return false;
      append(numbers);
      numbers.clear();
    }
  }
  append(numbers);
  header.hash = XXH3_64bits_digest(hash);
  if (cancelled()) return false;
  file.write_at(offsetof(SidecarHeader, hash), std::as_bytes(std::span(&header.hash, 1)));
  file.commit();
  return true;
}

std::unique_ptr<JpegIndex> JpegIndex::open(const std::filesystem::path& path,
                                           const std::string& fingerprint, std::uint64_t samples) {
  auto file = std::make_unique<MappedFile>(path);
  const auto bytes = file->bytes();
  const auto refuse = [&](std::string_view expected, const std::string& got) {
    throw DataError(fmt::format("{}: expected {}, got {}. Make it again: precast index {}",
                                path.string(), expected, got,
                                (path.parent_path() / path.stem()).string()));
  };
  SidecarHeader header;
  if (bytes.size() < sizeof header || bytes.size() % sizeof(std::uint64_t) != 0)
    refuse("an index of JPEGs", fmt::format("{} bytes", bytes.size()));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) refuse("an index of JPEGs", "another kind of file");
  if (header.fingerprint != number_of(fingerprint) || header.samples != samples)
    refuse("the index of this dataset", "that of another one");
  const auto hashed = bytes.subspan(kHashedFrom);
  if (header.hash != XXH3_64bits(hashed.data(), hashed.size()))
    refuse("the bytes that were written", "damaged ones");
  if (header.interval == 0 || header.interval > kMaxInterval)
    refuse(fmt::format("1 to {} MCUs between checkpoints", kMaxInterval),
           std::to_string(header.interval));

  auto index = std::make_unique<JpegIndex>(samples, header.interval, /*max_bytes=*/0);
  const auto* next = reinterpret_cast<Entry>(bytes.data() + sizeof header);
  const auto* const end = reinterpret_cast<Entry>(bytes.data() + bytes.size());
  for (auto& entry : index->entries_) {
    if (next == end || *next >= static_cast<std::uint64_t>(end - next))
      refuse("the checkpoints of all samples", "fewer");
    entry.store(next, std::memory_order_relaxed);
    next += 1 + *next;
  }
  index->bytes_ = bytes.size();
  index->file_ = std::move(file);
  return index;
}

}  // namespace precast::data
