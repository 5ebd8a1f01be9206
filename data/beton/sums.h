#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast::data {

/// precast's additions to FFCV's format: hashes (XXH3-64) of everything that readers use, except
/// values of custom fields whose pointer is unknown, and a JSON text. They are stored between the
/// last page and the allocation table, where FFCV's readers read nothing, or, for a file that
/// another program wrote, in the sidecar FILE.beton.sum. FORMAT.md describes the layout.
///
///     hash of each large value u64[samples][value fields], text, trailer
struct SumsTrailer {
  std::uint64_t samples = 0;
  /// Number of fields that have a pointer (FieldInfo::has_pointer()).
  std::uint64_t value_fields = 0;
  std::uint64_t info_bytes = 0;
  /// Hash of header and field descriptors.
  std::uint64_t head = 0;
  /// Hash of all metadata records.
  std::uint64_t records = 0;
  /// Hash of the allocation table.
  std::uint64_t table = 0;
};

inline constexpr std::size_t kSumsTrailerBytes = 72;
/// Offset in the first field's arguments where kSumsFlag marks a file that contains checksums.
/// Without the flag, a file with a damaged trailer would look like a file without checksums.
inline constexpr std::size_t kSumsFlagAt = 760;
inline constexpr std::uint64_t kSumsFlag = 0x31304d5553434250;  // "PBCSUM01"

/// The path FILE.sum.
[[nodiscard]] PRECAST_API std::filesystem::path sums_sidecar(const std::filesystem::path& file);

/// Checks that FILE.sum may be removed. Call before overwriting FILE: a FILE.sum with checksums
/// will then be removed, but a FILE.sum with other content belongs to the user. @throws ConfigError
/// if FILE.sum exists, is not empty and does not contain checksums
PRECAST_API void check_sums_sidecar(const std::filesystem::path& file);
/// Removes FILE.sum if it exists and contains checksums or is empty. @throws IoError
PRECAST_API void remove_sums_sidecar(const std::filesystem::path& file,
                                     FileOps& ops = posix_file_ops());

/// The hash (XXH3-64) of a large value or of another part of the file.
[[nodiscard]] PRECAST_API std::uint64_t hash_of(std::span<const std::byte> bytes);

/// Hashes bytes that arrive in pieces.
class PRECAST_API RunningHash {
 public:
  RunningHash();
  RunningHash(const RunningHash&) = delete;
  RunningHash& operator=(const RunningHash&) = delete;
  ~RunningHash();
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t value() const;

 private:
  /// XXH3_state_t, which is large and has an alignment requirement.
  void* state_;
};

/// Size in bytes of the block of checksums: hashes, text and trailer.
[[nodiscard]] PRECAST_API std::uint64_t sums_bytes(std::uint64_t samples,
                                                   std::uint64_t value_fields,
                                                   std::uint64_t info_bytes);
/// @param values the hashes of the large values, [trailer.samples, trailer.value_fields].
/// @param info a JSON object, or empty; trailer.info_bytes is overwritten by its length.
[[nodiscard]] PRECAST_API std::vector<std::byte> encode_sums(SumsTrailer trailer,
                                                             std::span<const std::uint64_t> values,
                                                             std::string_view info);

/// Size of the block that ends with these kSumsTrailerBytes bytes; 0 if they are not a trailer,
/// UINT64_MAX if the trailer's numbers are too large.
[[nodiscard]] PRECAST_API std::uint64_t sums_bytes_of(std::span<const std::byte> trailer);

/// A block of checksums that has been verified with its own hash. Refers to the bytes it was
/// constructed from. Immutable and thread-safe.
class PRECAST_API FileSums {
 public:
  FileSums() = default;
  /// @throws DataError prefixed with `location` if the block is truncated, damaged, or belongs to a
  /// file whose numbers of samples and fields are not `samples` and `value_fields`.
  FileSums(std::span<const std::byte> block, std::uint64_t samples, std::uint64_t value_fields,
           const std::string& location);

  [[nodiscard]] bool empty() const { return block_.empty(); }
  [[nodiscard]] const SumsTrailer& trailer() const { return trailer_; }
  /// @param value_field index among the fields that have a pointer.
  [[nodiscard]] std::uint64_t value(std::uint64_t sample, std::size_t value_field) const;
  /// A JSON object, or empty.
  [[nodiscard]] std::string_view info() const;

 private:
  std::span<const std::byte> block_;
  SumsTrailer trailer_;
};

}  // namespace precast::data
