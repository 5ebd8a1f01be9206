#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// What precast knows about a .beton file beyond FFCV's format: hashes (XXH3-64) of everything in
/// it, and a text. It lies between the last page and the allocation table, where FFCV's readers do
/// not look, or in the sidecar FILE.beton.sum of a file that someone else wrote; FORMAT.md has the
/// layout.
struct FileSums {
  /// Of header and field descriptors.
  std::uint64_t head = 0;
  /// Of all metadata records.
  std::uint64_t records = 0;
  /// Of the allocation table.
  std::uint64_t table = 0;
  /// One a sample, as hash_sample().
  std::vector<std::uint64_t> samples;
  /// A JSON object: how the file was written, class names.
  std::string info;
};

/// Of a sample: its metadata record, then the bytes of its fields in their order.
class PRECAST_API SampleHash {
 public:
  SampleHash();
  SampleHash(const SampleHash&) = delete;
  SampleHash& operator=(const SampleHash&) = delete;
  ~SampleHash();
  void begin(std::span<const std::byte> record);
  void add(std::span<const std::byte> blob);
  [[nodiscard]] std::uint64_t value() const;

 private:
  /// XXH3_state_t, which is large and wants alignment.
  void* state_;
};

/// Bytes that encode_sums() gives.
[[nodiscard]] PRECAST_API std::uint64_t sums_bytes(std::uint64_t samples, std::uint64_t info_bytes);
[[nodiscard]] PRECAST_API std::vector<std::byte> encode_sums(const FileSums& sums);

/// What stands at the end of encode_sums() and tells the rest.
inline constexpr std::size_t kSumsTrailerBytes = 72;
/// How many bytes encode_sums() gave for which these are the last; 0 if they are none of them.
[[nodiscard]] PRECAST_API std::uint64_t sums_bytes_of(std::span<const std::byte> trailer);
/// @param bytes as sums_bytes_of() says, @param samples of the dataset. @throws DataError behind
/// `place` if they are damaged or of another number of samples.
[[nodiscard]] PRECAST_API FileSums decode_sums(std::span<const std::byte> bytes,
                                               std::uint64_t samples, const std::string& place);

}  // namespace precast::data
