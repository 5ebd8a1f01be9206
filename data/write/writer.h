#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "data/beton/format.h"
#include "data/beton/layout.h"
#include "data/beton/sums.h"
#include "data/write/field.h"
#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast::data {

/// Name and type of a field to write.
struct FieldColumn {
  std::string name;
  FieldType type = FieldType::integer;
  /// As returned by Field::arguments(). The arguments of a custom field contain its layout.
  std::vector<std::byte> arguments = {};
};

/// How a file is laid out.
struct BetonLayout {
  /// A power of two from 2 MiB to 2 GiB. All blobs of a sample are in one page.
  std::uint64_t page_bytes = kDefaultPageBytes;
  /// Whether to store checksums of everything (sums.h), in a part of the file that FFCV ignores.
  bool checksums = true;
  /// With checksums: a JSON object to store in the file. `classes` in it maps names of int fields
  /// to lists of class names.
  std::string info = {};
};

/// Writes samples to a .beton file. Without checksums, the file has the same bytes as the one that
/// FFCV writes with one worker, except for empty values and the unused ends of pages
/// (data/FORMAT.md): blobs follow each other without gaps, all blobs of a sample are in one page,
/// the unused end of a page is zero, the allocation table follows the last page, and the header's
/// pointer to the table is written last. With checksums, values begin in the page in which the
/// records end, if those of the first sample fit into it, and the last page ends with its last
/// value, so that a small dataset does not need two complete pages. The file appears under its name
/// only in finish(); an older file stays until then. Needs memory for one page, and 32 bytes per
/// blob. Not thread-safe.
class PRECAST_API BetonWriter {
 public:
  /// @param num_samples the maximum number of samples. @throws ConfigError for an invalid page
  /// size, for 0 samples, for 0 or more than kMaxFields fields, for field names that are empty,
  /// over 16 characters, not printable ASCII or duplicate, for a custom field whose arguments do
  /// not contain its layout, for a FILE.sum that is not a file of checksums, and, with checksums,
  /// for a first field whose arguments leave no room for the mark of a file with checksums
  /// (kSumsFlagAt); IoError if the file cannot be created.
  BetonWriter(const std::filesystem::path& path, std::vector<FieldColumn> columns,
              std::uint64_t num_samples, const BetonLayout& layout = {},
              FileOps& ops = posix_file_ops());

  /// Adds the next sample. @param values one per column. @throws DataError naming the needed page
  /// size if the sample's blobs do not fit in a page; IoError.
  void add(std::span<const EncodedValue> values);
  /// Writes the remaining data. Call once, after the last sample. If fewer samples than announced
  /// were added, the header has the actual number, and pages begin later than necessary.
  /// @throws DataError if no sample was added; IoError.
  void complete();
  /// The file's BetonReader::fingerprint(), after complete(). Reads the records again. @throws
  /// IoError
  [[nodiscard]] std::string fingerprint() const;
  /// Calls complete() if it has not been called, makes the file durable and visible, and removes
  /// the checksums (FILE.sum) and the JPEG index (FILE.jidx) of an older file of that name; if the
  /// name is a symbolic link, those of the link and of its target. Call once. @throws the errors of
  /// complete().
  void finish();

  /// Number of pages with values that have been written; after complete(), of all pages with
  /// values.
  [[nodiscard]] std::uint64_t pages() const { return filled_pages_; }
  /// Size of the file so far in bytes, without the page that is being filled.
  [[nodiscard]] std::uint64_t file_bytes() const;

 private:
  [[nodiscard]] std::vector<std::byte> head() const;
  void make_room(std::uint64_t bytes);
  /// @param end offset in the page, in bytes, up to which the page is written to the file.
  void flush_page(std::uint64_t end);
  /// Whether the record points to a large value. False for fields without large values, and for an
  /// empty value of a custom field whose metadata contains the pointer 0. The 0 is then stored
  /// unchanged, because the class that reads this field may test for it.
  [[nodiscard]] bool points_to_value(std::size_t field, const EncodedValue& value) const;
  void flush_metadata();
  void write_sums();

  std::vector<FieldColumn> columns_;
  RecordLayout layout_;
  /// One per column.
  std::vector<FieldLayout> fields_;
  bool checksums_;
  std::string info_;
  BetonHeader header_;
  std::uint64_t samples_ = 0;

  FileOps& ops_;
  AtomicFile file_;
  /// The names under which readers look for sidecars: the path and, if it is a symbolic link, its
  /// target.
  std::set<std::filesystem::path> names_;
  /// Records not yet written, and the offset at which they will be written.
  std::vector<std::byte> metadata_;
  std::uint64_t metadata_at_ = 0;
  std::vector<std::byte> page_;
  /// The offset in this page at which its values begin (0 unless the records end in this page), and
  /// the number of bytes of the page that are used.
  std::uint64_t page_begin_ = 0;
  std::uint64_t page_used_ = 0;
  std::uint64_t first_page_at_ = 0;
  /// Number of pages before this one, counted from first_page_at_, and the number of these pages
  /// that have values.
  std::uint64_t pages_ = 0;
  std::uint64_t filled_pages_ = 0;
  /// The offset at which the last written page ends.
  std::uint64_t pages_end_ = 0;
  std::vector<std::byte> table_;
  /// With checksums: the hashes of the blobs, and the hash of the records so far.
  std::vector<std::uint64_t> value_sums_;
  RunningHash records_hash_;
  bool is_complete_ = false;
};

}  // namespace precast::data
