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
  /// In pixels. For jpg this is what the metadata says; whoever decodes compares it with the JPEG.
  int width = 0;
  int height = 0;
  /// raw: [height, width, 3] uint8 RGB. jpg: a JPEG file.
  std::span<const std::byte> bytes;
};

/// A .beton version 2 file, as FFCV or precast wrote it, mapped read-only or in memory. Opening
/// checks every size and pointer in the file, so that reading a sample needs no further checks and
/// cannot leave the file (10 million samples: < 2 s, 4 bytes a sample and blob field are kept).
/// Where the file has checksums (inside, or in FILE.sum beside it) header, fields, metadata and
/// table are held against them when it is opened; values are by check_value().
/// Immutable and thread-safe. Spans live as long as the reader. Indices out of range and a field of
/// another type are std::logic_error.
class PRECAST_API BetonReader {
 public:
  /// @throws IoError if the file cannot be opened; DataError naming file, place, what was expected
  /// and what was found if its content is wrong, cut off, or of a writer that was killed.
  explicit BetonReader(const std::filesystem::path& path, BlobAccess access = BlobAccess::mapped,
                       const BetonOptions& options = {});
  /// Reads a file that lies in memory. @param bytes must outlive the reader. @param path names it
  /// in messages; no sidecar is looked for. @throws DataError as above.
  BetonReader(std::span<const std::byte> bytes, std::filesystem::path path,
              const BetonLimits& limits = {}, const BetonOptions& options = {});

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  /// The whole file; without on_disk access only.
  [[nodiscard]] std::span<const std::byte> bytes() const;
  [[nodiscard]] std::uint64_t file_bytes() const { return file_.size(); }
  /// The file to read blobs from, or null where they are mapped or in memory.
  [[nodiscard]] const DiskFile* disk() const { return file_.disk(); }
  /// The mapping of the file, or null.
  [[nodiscard]] const MappedFile* mapping() const { return file_.mapping(); }
  /// Bytes that the reader itself keeps in memory.
  [[nodiscard]] std::uint64_t memory_bytes() const;
  [[nodiscard]] const BetonHeader& header() const { return metadata_.header(); }
  /// In file order.
  [[nodiscard]] const std::vector<FieldInfo>& fields() const { return metadata_.fields(); }
  /// Index of the field of that name. @throws DataError listing the names there are.
  [[nodiscard]] std::size_t field(std::string_view name) const;
  /// Index of the first field of that type, or fields().size().
  [[nodiscard]] std::size_t first_field(FieldType type) const;
  /// Number of samples, at least 1.
  [[nodiscard]] std::uint64_t size() const { return metadata_.size(); }

  /// @param window with on_disk access: bytes of the file, among them the image's; else not looked
  /// at.
  [[nodiscard]] ImageRecord image(std::uint64_t sample, std::size_t field,
                                  const FileWindow& window = {}) const;
  /// Its sides in pixels, from the metadata.
  struct ImageSize {
    int width = 0;
    int height = 0;
  };
  [[nodiscard]] ImageSize image_size(std::uint64_t sample, std::size_t field) const;
  /// Its width x height.
  [[nodiscard]] std::uint64_t image_pixels(std::uint64_t sample, std::size_t field) const;
  /// A hash (XXH3-64, 16 hex digits) of header, fields and metadata: labels, sizes and places of
  /// all samples. Reads 1.3 million samples in some milliseconds.
  [[nodiscard]] std::string fingerprint() const;

  /// Whether an image is stored as a JPEG, from the metadata alone.
  [[nodiscard]] ImageMode image_mode(std::uint64_t sample, std::size_t field) const;
  [[nodiscard]] std::int64_t integer(std::uint64_t sample, std::size_t field) const;
  [[nodiscard]] double floating(std::uint64_t sample, std::size_t field) const;
  /// A field's own bytes in the sample's record, of any type: all that is known of a custom field.
  [[nodiscard]] std::span<const std::byte> metadata(std::uint64_t sample, std::size_t field) const;
  /// In a file with custom fields: the entries of the table for this sample that no pointer of a
  /// known place points to. They are blobs of its custom fields; of which one, the file does not
  /// say. By place.
  [[nodiscard]] std::span<const Allocation> unclaimed(std::uint64_t sample) const;
  /// Before a custom field's metadata is copied into another file. @throws DataError if it may
  /// point to unclaimed bytes, since nobody knows where in it.
  void check_movable(std::uint64_t sample, std::size_t field) const;
  /// The bytes of one of the unclaimed. @param window as above.
  [[nodiscard]] std::span<const std::byte> bytes_of(const Allocation& allocation,
                                                    const FileWindow& window = {}) const;
  /// The bytes of an image, bytes, json, ndarray, tensor or custom field; of a custom one those
  /// that the pointer in its metadata points to, none where its place is not known. @param window
  /// as above.
  [[nodiscard]] std::span<const std::byte> blob(std::uint64_t sample, std::size_t field,
                                                const FileWindow& window = {}) const;
  /// How many they are; 0 for a number. Others than 0 have a blob_offset().
  [[nodiscard]] std::uint64_t blob_bytes(std::uint64_t sample, std::size_t field) const {
    return blobs_.bytes(sample, field);
  }
  /// Where blob() lies in the file. Its page is this divided by header().page_bytes.
  [[nodiscard]] std::uint64_t blob_offset(std::uint64_t sample, std::size_t field) const {
    return metadata_.pointer(sample, field);
  }

  /// Where its pages end (or its records, where it has no pages).
  [[nodiscard]] std::uint64_t pages_end() const {
    return header().table_offset - sums_.bytes_inside();
  }
  /// Its checksums; empty() where it has none.
  [[nodiscard]] const FileSums& sums() const { return sums_.sums(); }
  /// Whether they lie in the file, and not beside it.
  [[nodiscard]] bool sums_are_inside() const { return sums_.bytes_inside() > 0; }
  /// Hashes what their trailer covers. @param table the allocation table's bytes.
  [[nodiscard]] SumsTrailer hash_extents(std::span<const std::byte> table) const;
  /// Holds the bytes of a field with blobs against their checksum. Without checksums it does
  /// nothing. @param value what blob() gave. @throws DataError naming file, sample and field.
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

/// Hashes all of a mapped file and writes FILE.sum beside it, atomically. @throws
/// IoError
PRECAST_API void write_sums_sidecar(const BetonReader& reader, FileOps& ops = posix_file_ops());

}  // namespace precast::data
