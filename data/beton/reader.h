#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/allocation_table.h"
#include "data/beton/blob_index.h"
#include "data/beton/bytes.h"
#include "data/beton/disk_file.h"
#include "data/beton/field_info.h"
#include "data/beton/format.h"
#include "data/beton/metadata.h"
#include "data/beton/stored_sums.h"
#include "data/beton/sums.h"
#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast::data {

/// One stored image.
struct ImageRecord {
  ImageMode mode = ImageMode::raw;
  /// In pixels. For jpg, what the metadata says; the decoder compares it with the JPEG.
  int width = 0;
  int height = 0;
  /// raw: [height, width, 3] uint8 RGB. jpg: a JPEG file.
  std::span<const std::byte> bytes;
};

/// Reads a .beton version 2 file written by FFCV or precast, mapped read-only or in memory. Opening
/// checks every size and pointer in the file, so that reading a sample needs no further checks and
/// cannot access anything outside the file (10 million samples: < 2 s; holds 4 bytes per sample and
/// blob field). If the file has checksums (inside, or in FILE.sum next to it), opening checks
/// header, fields, metadata and table against them; check_value() checks values.
/// Immutable and thread-safe. Spans stay valid as long as the reader exists. An index out of range
/// or a field of another type throws std::logic_error.
class PRECAST_API BetonReader {
 public:
  /// @throws IoError if the file cannot be opened; DataError naming file, place, what was expected
  /// and what was found if its content is wrong, cut off, or left by a writer that was killed.
  explicit BetonReader(const std::filesystem::path& path, BlobAccess access = BlobAccess::mapped,
                       const BetonOptions& options = {});
  /// Reads a file that is in memory. @param bytes must outlive the reader. @param path names it in
  /// messages; no sidecar is looked for. @throws DataError as above.
  BetonReader(std::span<const std::byte> bytes, std::filesystem::path path,
              const BetonLimits& limits = {}, const BetonOptions& options = {});

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  /// The whole file; not with on_disk access.
  [[nodiscard]] std::span<const std::byte> bytes() const;
  [[nodiscard]] std::uint64_t file_bytes() const { return file_.size(); }
  /// The file to read blobs from, or null where they are mapped or in memory.
  [[nodiscard]] const DiskFile* disk() const { return file_.disk(); }
  /// The mapping of the file, or null.
  [[nodiscard]] const MappedFile* mapping() const { return file_.mapping(); }
  /// Bytes of memory that the reader itself holds.
  [[nodiscard]] std::uint64_t memory_bytes() const;
  [[nodiscard]] const BetonHeader& header() const { return metadata_.header(); }
  /// In file order.
  [[nodiscard]] const std::vector<FieldInfo>& fields() const { return metadata_.fields(); }
  /// Index of the field of that name. @throws DataError listing the existing names.
  [[nodiscard]] std::size_t field(std::string_view name) const;
  /// Index of the first field of that type, or fields().size().
  [[nodiscard]] std::size_t first_field(FieldType type) const;
  /// Number of samples, at least 1.
  [[nodiscard]] std::uint64_t size() const { return metadata_.size(); }

  /// @param window with on_disk access: bytes of the file that include the image's; else ignored.
  [[nodiscard]] ImageRecord image(std::uint64_t sample, std::size_t field,
                                  const FileWindow& window = {}) const;
  /// Width and height in pixels, from the metadata.
  struct ImageSize {
    int width = 0;
    int height = 0;
  };
  [[nodiscard]] ImageSize image_size(std::uint64_t sample, std::size_t field) const;
  /// Width x height of the image.
  [[nodiscard]] std::uint64_t image_pixels(std::uint64_t sample, std::size_t field) const;
  /// A hash (XXH3-64, 16 hex digits) of header, fields and metadata: labels, sizes and offsets of
  /// all samples. Reads 1.3 million samples in some milliseconds.
  [[nodiscard]] std::string fingerprint() const;

  /// Whether an image is stored as a JPEG, from the metadata alone.
  [[nodiscard]] ImageMode image_mode(std::uint64_t sample, std::size_t field) const;
  [[nodiscard]] std::int64_t integer(std::uint64_t sample, std::size_t field) const;
  [[nodiscard]] double floating(std::uint64_t sample, std::size_t field) const;
  /// A field's bytes in the sample's record, for any type: all that is known of a custom field.
  [[nodiscard]] std::span<const std::byte> metadata(std::uint64_t sample, std::size_t field) const;
  /// In a file with custom fields: the entries of the table for this sample that no known pointer
  /// refers to, sorted by pointer. They are blobs of its custom fields; the file does not say of
  /// which one.
  [[nodiscard]] std::span<const Allocation> unclaimed(std::uint64_t sample) const;
  /// Call before copying a custom field's metadata into another file. @throws DataError if it may
  /// point to unclaimed bytes, since the offset of such a pointer is unknown.
  void check_movable(std::uint64_t sample, std::size_t field) const;
  /// The bytes of an unclaimed entry. @param window as above.
  [[nodiscard]] std::span<const std::byte> bytes_of(const Allocation& allocation,
                                                    const FileWindow& window = {}) const;
  /// The bytes of an image, bytes, json, ndarray, tensor or custom field. For a custom field, the
  /// bytes that the pointer in its metadata refers to; none if the pointer's offset is unknown.
  /// @param window as above.
  [[nodiscard]] std::span<const std::byte> blob(std::uint64_t sample, std::size_t field,
                                                const FileWindow& window = {}) const;
  /// Size of blob(); 0 for a number. A field with a size above 0 has a blob_offset().
  [[nodiscard]] std::uint64_t blob_bytes(std::uint64_t sample, std::size_t field) const {
    return blobs_.bytes(sample, field);
  }
  /// Offset of blob() in the file. Divided by header().page_bytes it gives the page.
  [[nodiscard]] std::uint64_t blob_offset(std::uint64_t sample, std::size_t field) const {
    return metadata_.pointer(sample, field);
  }

  /// Where the file's pages end (or its records, if it has no pages).
  [[nodiscard]] std::uint64_t pages_end() const {
    return header().table_offset - sums_.bytes_inside();
  }
  /// The file's checksums; empty() if it has none.
  [[nodiscard]] const FileSums& sums() const { return sums_.sums(); }
  /// Whether the checksums are inside the file, and not next to it.
  [[nodiscard]] bool sums_are_inside() const { return sums_.bytes_inside() > 0; }
  /// Hashes the parts that the checksums' trailer covers. @param table the allocation table's
  /// bytes.
  [[nodiscard]] SumsTrailer hash_extents(std::span<const std::byte> table) const;
  /// Checks the bytes of a field with blobs against their checksum. Does nothing if the file has no
  /// checksums. @param value what blob() returned. @throws DataError naming file, sample and field.
  void check_value(std::uint64_t sample, std::size_t field, std::span<const std::byte> value) const;

 private:
  BetonReader(BetonBytes file, const BetonLimits& limits, const BetonOptions& options);
  /// The path, for messages.
  [[nodiscard]] std::string place() const { return file_.place(); }

  BetonBytes file_;
  BetonMetadata metadata_;
  StoredSums sums_;
  BlobIndex blobs_;
};

/// Hashes all of a mapped file and writes FILE.sum next to it, atomically. @throws IoError
PRECAST_API void write_sums_sidecar(const BetonReader& reader, FileOps& ops = posix_file_ops());

}  // namespace precast::data
