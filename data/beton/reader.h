#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
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
#include "data/beton/joined_files.h"
#include "data/beton/metadata.h"
#include "data/beton/stored_sums.h"
#include "data/beton/sums.h"
#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast::data {

/// One stored image.
struct ImageRecord {
  ImageMode mode = ImageMode::raw;
  /// In pixels, from the metadata. For jpg, the decoder compares them with the JPEG's size.
  int width = 0;
  int height = 0;
  /// raw: [height, width, 3] uint8 RGB. jpg: a JPEG file.
  std::span<const std::byte> bytes;
};

/// Reads a .beton version 2 file written by FFCV or precast: mapped read-only, in memory, or
/// through disk(). Opening checks every size and pointer in the file (10 million samples: < 2 s,
/// and 4 bytes of memory per sample and blob field), so reading a sample cannot access anything
/// outside the file. If the file has checksums (inside, or in FILE.sum next to it), opening checks
/// header, fields, metadata and table against them; check_value() checks values. Immutable and
/// thread-safe. Spans stay valid as long as the reader or a copy of it exists. The functions that
/// return values of samples throw std::logic_error for an index out of range or a field of the
/// wrong type.
///
/// A path `http://...` or `https://...` is a file on a server. The constructor fetches header,
/// metadata, checksums and table into a copy on disk (RemoteFile); a large value is fetched when it
/// is first used. Accessing such a value can then also throw IoError, and DataError for a wrong
/// checksum.
///
/// Several files with the same fields can be read as one dataset: the samples of the second file
/// follow the samples of the first, and so on, as in the file that `precast merge` writes. Offsets
/// then refer to the concatenated files, in which each file begins at a multiple of
/// header().page_bytes.
class PRECAST_API BetonReader {
 public:
  /// @throws IoError if the file cannot be opened or read; DataError naming file, location, what
  /// was expected and what was found if the content is wrong or truncated, or if the writer was
  /// killed before it had finished; ConfigError for wrong `options`, or a URL with `access` other
  /// than mapped.
  explicit BetonReader(const std::filesystem::path& path, BlobAccess access = BlobAccess::mapped,
                       const BetonOptions& options = {});
  /// Reads a file in memory. @param bytes must outlive the reader. @param path only for messages;
  /// sidecars are not read. @throws DataError as above.
  BetonReader(std::span<const std::byte> bytes, std::filesystem::path path,
              const BetonLimits& limits = {}, const BetonOptions& options = {});
  /// Reads several files as one. @param paths at least one. @throws the errors of the constructor
  /// for one path, and DataError if the fields of two files differ (check_same_fields() in
  /// several_files.h).
  explicit BetonReader(const std::vector<std::filesystem::path>& paths,
                       BlobAccess access = BlobAccess::mapped, const BetonOptions& options = {});

  [[nodiscard]] std::size_t num_files() const { return parts_.size(); }
  /// One reader for each file; all of them share this reader's memory.
  [[nodiscard]] std::vector<BetonReader> files() const;
  /// A sample of one of several files.
  struct FileSample {
    std::size_t file = 0;
    /// The sample's id in that file.
    std::uint64_t sample = 0;
  };
  [[nodiscard]] FileSample locate(std::uint64_t sample) const;
  /// `FILE: sample N` for messages, where N is the sample's id in FILE.
  [[nodiscard]] std::string sample_text(std::uint64_t sample) const;

  /// The path of the file. For several files: their paths, separated by commas, for messages.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The whole file; for a file on a server, bytes that have not been fetched are 0. Only for a
  /// single file that is mapped or in memory.
  [[nodiscard]] std::span<const std::byte> bytes() const;
  /// Size of the file, or the sum of the sizes of several.
  [[nodiscard]] std::uint64_t file_bytes() const;
  /// The files to read blobs from, or null if the blobs are mapped or in memory.
  [[nodiscard]] const DiskFiles* disk() const { return disk_.empty() ? nullptr : &disk_; }
  /// The mappings, or null.
  [[nodiscard]] const MappedFiles* mapping() const {
    return mappings_.empty() ? nullptr : &mappings_;
  }
  /// The files that are on a server.
  [[nodiscard]] const std::vector<RemoteFile*>& remotes() const { return remotes_; }
  /// A value in a file on a server. @{
  struct Remote {
    RemoteFile* file = nullptr;
    RemoteValue value;
  };
  /// @return a Remote whose `file` is null if the sample's file is local or the value is empty.
  [[nodiscard]] Remote remote_value(std::uint64_t sample, std::size_t field) const;
  /// @}
  /// Bytes of memory that the reader itself holds.
  [[nodiscard]] std::uint64_t memory_bytes() const;
  /// For several files, page_bytes is the page size of the merged file (copy_page_bytes() in
  /// several_files.h), num_samples is the sum, and table_offset is the offset of the last file's
  /// table.
  [[nodiscard]] const BetonHeader& header() const { return header_; }
  /// In file order.
  [[nodiscard]] const std::vector<FieldInfo>& fields() const { return first().metadata.fields(); }
  /// The arguments of a field's descriptor in the first file, [kFieldArgumentsBytes].
  [[nodiscard]] std::span<const std::byte> arguments(std::size_t field) const;
  /// Index of the field with this name. @throws DataError whose message suggests a similar name or
  /// lists all names.
  [[nodiscard]] std::size_t field(std::string_view name) const;
  /// Index of the first field with this type, or fields().size() if there is none.
  [[nodiscard]] std::size_t first_field(FieldType type) const;
  /// Number of samples, at least 1.
  [[nodiscard]] std::uint64_t size() const { return header_.num_samples; }

  /// @param window with on_disk access: a part of the file that contains the image; otherwise
  /// ignored.
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
  /// all samples. Takes a few milliseconds for 1.3 million samples. For several files: a hash of
  /// their fingerprints, in order.
  [[nodiscard]] std::string fingerprint() const;

  /// How an image is stored, according to its metadata.
  [[nodiscard]] ImageMode image_mode(std::uint64_t sample, std::size_t field) const;
  [[nodiscard]] std::int64_t integer(std::uint64_t sample, std::size_t field) const;
  [[nodiscard]] double floating(std::uint64_t sample, std::size_t field) const;
  /// A field's bytes in the sample's record. For a custom field whose pointer is unknown, nothing
  /// else can be read.
  [[nodiscard]] std::span<const std::byte> metadata(std::uint64_t sample, std::size_t field) const;
  /// In a file with custom fields: the sample's entries in the table that no known pointer refers
  /// to, sorted by pointer. They are blobs of custom fields; the file does not say to which field
  /// an entry belongs. Only for a single file.
  [[nodiscard]] std::span<const Allocation> unclaimed(std::uint64_t sample) const;
  /// Call before copying a custom field's metadata into another file. @throws DataError if the
  /// sample has unclaimed bytes and the metadata may contain a pointer to them at an unknown
  /// offset.
  void check_movable(std::uint64_t sample, std::size_t field) const;
  /// The bytes of an unclaimed entry. @param window as above.
  [[nodiscard]] std::span<const std::byte> bytes_of(const Allocation& allocation,
                                                    const FileWindow& window = {}) const;
  /// The bytes of an image, bytes, json, ndarray, tensor or custom field. For a custom field, the
  /// bytes that the pointer in its metadata refers to; none if the pointer's offset is unknown.
  /// @param window as above.
  [[nodiscard]] std::span<const std::byte> blob(std::uint64_t sample, std::size_t field,
                                                const FileWindow& window = {}) const;
  /// Size of blob(); 0 for a number. A value with a size above 0 has a blob_offset().
  [[nodiscard]] std::uint64_t blob_bytes(std::uint64_t sample, std::size_t field) const {
    const LocalSample at = to_local(sample);
    return at.part.file->blobs.bytes(at.sample, field);
  }
  /// Offset of blob() in the file. Divided by header().page_bytes, it is the number of the page.
  [[nodiscard]] std::uint64_t blob_offset(std::uint64_t sample, std::size_t field) const {
    const LocalSample at = to_local(sample);
    return at.part.begin + at.part.file->metadata.pointer(at.sample, field);
  }

  /// The end of the pages of the file, or of its records if it has no pages. Like all functions
  /// below except check_value(), only for a single file.
  [[nodiscard]] std::uint64_t pages_end() const {
    return header().table_offset - single_file().sums.embedded_bytes();
  }
  /// The file's checksums; empty() if it has none.
  [[nodiscard]] const FileSums& sums() const { return single_file().sums.sums(); }
  /// Whether the checksums are inside the file instead of next to it.
  [[nodiscard]] bool has_embedded_sums() const { return single_file().sums.embedded_bytes() > 0; }
  /// Hashes the parts of the file that are covered by the trailer of the checksums. @param table
  /// the bytes of the allocation table.
  [[nodiscard]] SumsTrailer hash_extents(std::span<const std::byte> table) const;
  /// Checks a blob against its checksum. Does nothing if the file has no checksums. @param value
  /// what blob() returned. @throws DataError naming file, sample and field.
  void check_value(std::uint64_t sample, std::size_t field, std::span<const std::byte> value) const;

 private:
  /// One file.
  struct File {
    File(BetonBytes file, const BetonLimits& limits, const BetonOptions& options);
    static std::shared_ptr<const File> open(const std::filesystem::path& path, BlobAccess access,
                                            const BetonOptions& options);
    static std::shared_ptr<const File> open_remote(const std::string& url, BlobAccess access,
                                                   const BetonOptions& options);

    BetonBytes bytes;
    BetonMetadata metadata;
    StoredSums sums;
    BlobIndex blobs;
  };
  struct Part {
    std::shared_ptr<const File> file;
    std::uint64_t first_sample = 0;
    /// Offset of the file's first byte in the concatenated files.
    std::uint64_t begin = 0;
  };
  /// The file that contains a sample, and the sample's id in that file.
  struct LocalSample {
    const Part& part;
    std::uint64_t sample;
  };

  explicit BetonReader(std::shared_ptr<const File> file);
  [[nodiscard]] const File& first() const { return *parts_.front().file; }
  [[nodiscard]] const File& single_file() const {
    require(parts_.size() == 1, "this function needs a dataset of one file");
    return first();
  }
  /// The metadata of one field of a sample.
  [[nodiscard]] const std::byte* record(std::uint64_t sample, std::size_t field) const {
    const LocalSample at = to_local(sample);
    return at.part.file->metadata.record(at.sample, field);
  }
  /// The bytes that a table entry refers to. They are in memory, mapped, or in `window`.
  [[nodiscard]] std::span<const std::byte> stored(const Allocation& allocation,
                                                  const FileWindow& window) const;
  [[nodiscard]] LocalSample to_local(std::uint64_t sample) const {
    std::size_t i = parts_.size() - 1;
    while (i > 0 && parts_[i].first_sample > sample) --i;
    return {parts_[i], sample - parts_[i].first_sample};
  }
  /// Adds a file. @param begin offset of its first byte in the concatenated files.
  void add(std::shared_ptr<const File> file, std::uint64_t begin);

  std::filesystem::path path_;
  BetonHeader header_;
  /// At least one.
  std::vector<Part> parts_;
  DiskFiles disk_;
  MappedFiles mappings_;
  std::vector<RemoteFile*> remotes_;
};

/// Hashes a mapped file and writes its checksums atomically to FILE.sum next to it. @throws IoError
PRECAST_API void write_sums_sidecar(const BetonReader& reader, FileOps& ops = posix_file_ops());

}  // namespace precast::data
