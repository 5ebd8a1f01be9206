#include "data/beton/sums.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <cstring>
#include <new>
#include <utility>

#include "data/beton/format.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Reads `PCSUMS01` in a file.
constexpr std::uint64_t kMagic = 0x3130534d55534350;
/// Places in the trailer.
constexpr std::size_t kSamplesAt = 0;
constexpr std::size_t kInfoBytesAt = 8;
constexpr std::size_t kHeadAt = 16;
constexpr std::size_t kRecordsAt = 24;
constexpr std::size_t kTableAt = 32;
/// Two numbers that are 0.
constexpr std::size_t kSpareAt = 40;
/// Of all that stands before.
constexpr std::size_t kOwnAt = 56;
constexpr std::size_t kMagicAt = 64;
static_assert(kMagicAt + 8 == kSumsTrailerBytes);

XXH3_state_t* state_of(void* state) {
  return static_cast<XXH3_state_t*>(state);
}

}  // namespace

SampleHash::SampleHash() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
}
SampleHash::~SampleHash() {
  XXH3_freeState(state_of(state_));
}
void SampleHash::begin(std::span<const std::byte> record) {
  XXH3_64bits_reset(state_of(state_));
  add(record);
}
void SampleHash::add(std::span<const std::byte> blob) {
  XXH3_64bits_update(state_of(state_), blob.data(), blob.size());
}
std::uint64_t SampleHash::value() const {
  return XXH3_64bits_digest(state_of(state_));
}

std::uint64_t sums_bytes(std::uint64_t samples, std::uint64_t info_bytes) {
  return 8 * samples + info_bytes + kSumsTrailerBytes;
}

std::vector<std::byte> encode_sums(const FileSums& sums) {
  std::vector<std::byte> bytes(sums_bytes(sums.samples.size(), sums.info.size()));
  std::byte* at = bytes.data();
  std::memcpy(at, sums.samples.data(), 8 * sums.samples.size());
  at += 8 * sums.samples.size();
  std::memcpy(at, sums.info.data(), sums.info.size());
  at += sums.info.size();
  store(at + kSamplesAt, std::uint64_t{sums.samples.size()});
  store(at + kInfoBytesAt, std::uint64_t{sums.info.size()});
  store(at + kHeadAt, sums.head);
  store(at + kRecordsAt, sums.records);
  store(at + kTableAt, sums.table);
  static_assert(kSpareAt + 16 == kOwnAt);
  const auto before = static_cast<std::size_t>(at + kOwnAt - bytes.data());
  store(at + kOwnAt, std::uint64_t{XXH3_64bits(bytes.data(), before)});
  store(at + kMagicAt, kMagic);
  return bytes;
}

std::uint64_t sums_bytes_of(std::span<const std::byte> trailer) {
  require(trailer.size() == kSumsTrailerBytes, "a trailer is given");
  if (load<std::uint64_t>(trailer.data() + kMagicAt) != kMagic) return 0;
  const auto samples = load<std::uint64_t>(trailer.data() + kSamplesAt);
  const auto info_bytes = load<std::uint64_t>(trailer.data() + kInfoBytesAt);
  constexpr std::uint64_t kMost = UINT64_MAX / 32;
  if (samples > kMost || info_bytes > kMost) return UINT64_MAX;
  return sums_bytes(samples, info_bytes);
}

FileSums decode_sums(std::span<const std::byte> bytes, std::uint64_t samples,
                     const std::string& place) {
  const bool whole = bytes.size() >= kSumsTrailerBytes &&
                     sums_bytes_of(bytes.last(kSumsTrailerBytes)) == bytes.size();
  if (!whole) throw DataError(fmt::format("{}: checksums: they are cut off or damaged", place));
  const std::byte* at = bytes.data() + bytes.size() - kSumsTrailerBytes;
  const auto before = static_cast<std::size_t>(at + kOwnAt - bytes.data());
  if (load<std::uint64_t>(at + kOwnAt) != XXH3_64bits(bytes.data(), before))
    throw DataError(fmt::format("{}: checksums: their own checksum does not fit", place));
  const auto count = load<std::uint64_t>(at + kSamplesAt);
  if (count != samples) {
    throw DataError(
        fmt::format("{}: checksums: expected those of {} samples, got {}", place, samples, count));
  }
  FileSums sums{.head = load<std::uint64_t>(at + kHeadAt),
                .records = load<std::uint64_t>(at + kRecordsAt),
                .table = load<std::uint64_t>(at + kTableAt),
                .samples = std::vector<std::uint64_t>(samples),
                .info = std::string(load<std::uint64_t>(at + kInfoBytesAt), '\0')};
  std::memcpy(sums.samples.data(), bytes.data(), 8 * samples);
  std::memcpy(sums.info.data(), bytes.data() + 8 * samples, sums.info.size());
  return sums;
}

}  // namespace precast::data
