#include "data/decode/jpeg_sidecar.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "framework/core/error.h"
#include "framework/core/log.h"

namespace precast::data {
namespace {

/// "PJGIDX" and two digits of the version, little-endian. @{
constexpr std::uint64_t kMagic = 0x3230584449474A50;
constexpr std::uint64_t kAnyMagic = 0x0000584449474A50;
constexpr std::uint64_t kAnyMagicMask = 0x0000FFFFFFFFFFFF;
/// @}

/// The numbers at the start of a sidecar. Blocks follow, then the table. All numbers are 64 bits,
/// little-endian.
struct SidecarHeader {
  std::uint64_t magic = kMagic;
  /// Hash of the numbers below, followed by the table.
  std::uint64_t hash = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t interval = 0;
  std::uint64_t samples = 0;
  std::uint64_t table_at = 0;
};
constexpr std::size_t kHashedFrom = 2 * sizeof(std::uint64_t);
constexpr std::size_t kTableEntryBytes = 2 * sizeof(std::uint64_t);

constexpr bool is_index(std::uint64_t magic) {
  return (magic & kAnyMagicMask) == kAnyMagic;
}

std::string version_of(std::uint64_t magic) {
  std::array<char, sizeof magic> text{};
  std::memcpy(text.data(), &magic, sizeof magic);
  return {text.data() + 6, 2};
}

constexpr std::uint64_t blocks_of(std::uint64_t samples) {
  return samples / kSidecarBlockSamples + (samples % kSidecarBlockSamples != 0 ? 1 : 0);
}

std::uint64_t parse_fingerprint(const std::string& fingerprint) {
  return std::stoull(fingerprint, nullptr, 16);
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& numbers) {
  return std::as_bytes(std::span(numbers));
}

std::uint64_t hash_of_head(const SidecarHeader& header, std::span<const std::byte> table) {
  RunningHash hash;
  hash.add(std::as_bytes(std::span(&header, 1)).subspan(kHashedFrom));
  hash.add(table);
  return hash.value();
}

}  // namespace

std::filesystem::path jpeg_sidecar(const std::filesystem::path& dataset) {
  std::filesystem::path path = dataset;
  path += ".jidx";
  return path;
}

void remove_jpeg_sidecar(const std::filesystem::path& dataset, FileOps& ops) {
  const std::filesystem::path path = jpeg_sidecar(dataset);
  std::uint64_t magic = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(&magic), sizeof magic) || !is_index(magic)) return;
  if (ops.unlink(path.c_str()) != 0 && errno != ENOENT)
    throw IoError("cannot remove the JPEG index of an older file,", path.string(), errno);
}

// ---- Writing ----

JpegSidecarWriter::JpegSidecarWriter(const std::filesystem::path& path, std::size_t interval,
                                     FileOps& ops)
    : file_(path, ops), interval_(interval) {
  require(interval > 0, "the distance between checkpoints is above 0");
  // Readers reject this header of zeros until complete() overwrites it.
  const std::array<std::byte, sizeof(SidecarHeader)> placeholder{};
  file_.append(placeholder);
}

void JpegSidecarWriter::add(std::span<const std::uint64_t> points) {
  points_.insert(points_.end(), points.begin(), points.end());
  ends_.push_back(points_.size());
  ++samples_;
  if (ends_.size() == kSidecarBlockSamples) flush_block();
}

void JpegSidecarWriter::flush_block() {
  RunningHash hash;
  for (const auto bytes : {bytes_of(ends_), bytes_of(points_)}) {
    hash.add(bytes);
    file_.append(bytes);
  }
  table_.push_back(file_.size());
  table_.push_back(hash.value());
  ends_.clear();
  points_.clear();
}

void JpegSidecarWriter::complete(const std::string& fingerprint) {
  if (!ends_.empty()) flush_block();
  SidecarHeader header{.fingerprint = parse_fingerprint(fingerprint),
                       .interval = interval_,
                       .samples = samples_,
                       .table_at = file_.size()};
  header.hash = hash_of_head(header, bytes_of(table_));
  file_.append(bytes_of(table_));
  file_.write_at(0, std::as_bytes(std::span(&header, 1)));
}

// ---- Reading ----

JpegSidecar::JpegSidecar(const std::filesystem::path& path, const std::string& fingerprint,
                         std::uint64_t samples)
    : file_(std::make_unique<MappedFile>(path)),
      bytes_(file_->bytes()),
      samples_(samples),
      blocks_(blocks_of(samples)) {
  open(fingerprint);
}

JpegSidecar::JpegSidecar(std::span<const std::byte> bytes, const std::string& fingerprint,
                         std::uint64_t samples)
    : bytes_(bytes), samples_(samples), blocks_(blocks_of(samples)) {
  open(fingerprint);
}

void JpegSidecar::throw_invalid(std::string_view expected, const std::string& got) const {
  const std::filesystem::path path = file_ ? file_->path() : "memory";
  throw DataError(fmt::format("{}: expected {}, got {}. Recreate it with: precast index {}",
                              path.string(), expected, got,
                              (path.parent_path() / path.stem()).string()));
}

/// Verifies header and table.
void JpegSidecar::open(const std::string& fingerprint) {
  SidecarHeader header;
  if (bytes_.size() < sizeof header)
    throw_invalid("a JPEG index", fmt::format("{} bytes", bytes_.size()));
  std::memcpy(&header, bytes_.data(), sizeof header);
  if (!is_index(header.magic)) throw_invalid("a JPEG index", "another kind of file");
  if (header.magic != kMagic)
    throw_invalid("version 02 of the JPEG index format", version_of(header.magic));
  if (header.fingerprint != parse_fingerprint(fingerprint) || header.samples != samples_)
    throw_invalid("the index of this dataset", "the index of a different dataset");
  const std::uint64_t table_bytes = blocks_.size() * kTableEntryBytes;
  if (header.table_at > bytes_.size() || bytes_.size() - header.table_at != table_bytes ||
      header.table_at % sizeof(std::uint64_t) != 0)
    throw_invalid("a complete index",
                  fmt::format("an index of the wrong size, {} bytes", bytes_.size()));
  const auto table = bytes_.last(table_bytes);
  verified_bytes_ = sizeof header + table.size();
  if (header.hash != hash_of_head(header, table))
    throw_invalid("an intact header and table", "damaged ones");
  if (header.interval == 0 || header.interval > kMaxCheckpointInterval)
    throw_invalid(fmt::format("1 to {} MCUs between checkpoints", kMaxCheckpointInterval),
                  std::to_string(header.interval));
  interval_ = header.interval;
  table_ = reinterpret_cast<const std::uint64_t*>(table.data());
  for (std::uint64_t block = 0; block < blocks_.size(); ++block) {
    const std::uint64_t min_end = block_begin(block) + samples_of(block) * sizeof(std::uint64_t);
    const std::uint64_t end = block_end(block);
    if (end < min_end || end > header.table_at || end % sizeof(std::uint64_t) != 0)
      throw_invalid("consecutive blocks of checkpoints", "a table with wrong positions");
  }
}

std::uint64_t JpegSidecar::block_begin(std::uint64_t block) const {
  return block == 0 ? sizeof(SidecarHeader) : block_end(block - 1);
}

std::uint64_t JpegSidecar::block_end(std::uint64_t block) const {
  return table_[2 * block];
}

std::uint64_t JpegSidecar::samples_of(std::uint64_t block) const {
  return std::min(kSidecarBlockSamples, samples_ - block * kSidecarBlockSamples);
}

JpegSidecar::Block JpegSidecar::verify(std::uint64_t block) const {
  const auto bytes = bytes_.subspan(block_begin(block), block_end(block) - block_begin(block));
  verified_bytes_ += bytes.size();
  if (hash_of(bytes) != table_[2 * block + 1]) return Block::damaged;
  const std::span ends(reinterpret_cast<const std::uint64_t*>(bytes.data()), samples_of(block));
  const std::uint64_t points = bytes.size() / sizeof(std::uint64_t) - ends.size();
  const bool fits = std::ranges::is_sorted(ends) && ends.back() == points;
  return fits ? Block::intact : Block::damaged;
}

void JpegSidecar::warn_damaged(std::uint64_t block) const {
  if (damaged_.exchange(true) || !file_) return;
  const std::filesystem::path& path = file_->path();
  log_warning(
      "{}: expected intact checkpoints at bytes {} to {}, got damaged ones. Their images are "
      "decoded without the index. Recreate it with: precast index {}",
      path.string(), block_begin(block), block_end(block),
      (path.parent_path() / path.stem()).string());
}

JpegCheckpoints JpegSidecar::find(std::uint64_t sample) const {
  const std::uint64_t block = sample / kSidecarBlockSamples;
  Block state = blocks_[block].load(std::memory_order_relaxed);
  if (state == Block::unknown) {
    state = verify(block);
    blocks_[block].store(state, std::memory_order_relaxed);
    if (state == Block::damaged) warn_damaged(block);
  }
  if (state == Block::damaged) return {};
  const auto* const ends =
      reinterpret_cast<const std::uint64_t*>(bytes_.data() + block_begin(block));
  const std::uint64_t index = sample % kSidecarBlockSamples;
  const std::uint64_t begin = index == 0 ? 0 : ends[index - 1];
  return {interval_, {ends + samples_of(block) + begin, ends[index] - begin}};
}

}  // namespace precast::data
