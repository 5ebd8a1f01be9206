#include "data/beton/reader.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "data/beton/allocation_table.h"
#include "data/beton/layout.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

/// expected_size() of a blob whose size only the table knows.
constexpr std::uint64_t kAnySize = UINT64_MAX;

BetonHeader parse_header(std::span<const std::byte> file, const BetonLimits& limits,
                         const std::string& place) {
  if (file.size() < kHeaderBytes) {
    throw DataError(fmt::format("{}: header: expected {} bytes, got {}. The file is cut off", place,
                                kHeaderBytes, file.size()));
  }
  BetonHeader header;
  header.version = load<std::uint16_t>(file.data());
  header.num_fields = load<std::uint16_t>(file.data() + 2);
  header.page_bytes = load<std::uint32_t>(file.data() + 4);
  header.num_samples = load<std::uint64_t>(file.data() + 8);
  header.table_offset = load<std::uint64_t>(file.data() + 16);
  if (header.version != kBetonVersion) {
    throw DataError(fmt::format("{}: header: expected version {}, got {}. Is this a .beton file?",
                                place, kBetonVersion, header.version));
  }
  if (header.num_fields == 0 || header.num_fields > kMaxFields) {
    throw DataError(fmt::format("{}: header: expected 1 to {} fields, got {}", place, kMaxFields,
                                header.num_fields));
  }
  if (!std::has_single_bit(header.page_bytes) || header.page_bytes < limits.min_page_bytes) {
    throw DataError(fmt::format(
        "{}: header: expected a page size that is a power of two of at least {}, got {}", place,
        limits.min_page_bytes, header.page_bytes));
  }
  if (header.num_samples == 0) {
    throw DataError(fmt::format("{}: header: expected samples, got none", place));
  }
  return header;
}

}  // namespace

BetonReader::BetonReader(const std::filesystem::path& path, BlobAccess access,
                         const BetonOptions& options)
    : path_(path) {
  if (access != BlobAccess::mapped) {
    disk_ = std::make_unique<DiskFile>(path);
    file_bytes_ = disk_->size();
  } else {
    file_ = std::make_unique<MappedFile>(path);
    bytes_ = file_->bytes();
    file_bytes_ = bytes_.size();
  }
  open({}, options);
  if (access == BlobAccess::on_disk_direct) disk_->read_directly();
}

BetonReader::BetonReader(std::span<const std::byte> bytes, std::filesystem::path path,
                         const BetonLimits& limits, const BetonOptions& options)
    : path_(std::move(path)), bytes_(bytes), file_bytes_(bytes.size()) {
  open(limits, options);
}

/// Makes the first `end` bytes of the file (or all, where it is shorter) part of bytes_.
void BetonReader::bring(std::uint64_t end) {
  end = std::min(end, file_bytes_);
  if (disk_ == nullptr || end <= head_.size()) return;
  const std::uint64_t there = head_.size();
  head_.resize(end);
  disk_->read(there, std::span(head_).subspan(there));
  bytes_ = head_;
}

void BetonReader::open(const BetonLimits& limits, const BetonOptions& options) {
  bring(kHeaderBytes);
  header_ = parse_header(bytes_, limits, place());
  const std::uint64_t metadata_end = check_extents(options);
  std::vector<std::byte> on_disk;
  if (disk_ != nullptr) {
    on_disk.resize(file_bytes_ - header_.table_offset);
    disk_->read(header_.table_offset, on_disk);
  }
  const auto table_bytes =
      disk_ != nullptr ? std::span<const std::byte>(on_disk) : bytes_.subspan(header_.table_offset);
  open_sums(table_bytes);
  const AllocationTable table(table_bytes, header_, metadata_end, place());
  blob_bytes_.resize(fields_.size());
  std::vector<bool> claimed(table.entries().size());
  bool custom = false;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (has_blob(fields_[i].type)) resolve_blobs(i, table, claimed);
    if (fields_[i].type != FieldType::custom) continue;
    custom = true;
    if (fields_[i].has_pointer()) resolve_custom(i, table, claimed);
  }
  if (custom) keep_unclaimed(table, claimed);
}

std::span<const std::byte> BetonReader::bytes() const {
  require(disk_ == nullptr, "the whole file is asked for where it is mapped");
  return bytes_;
}

std::uint64_t BetonReader::memory_bytes() const {
  std::uint64_t bytes = head_.size() + sums_bytes_.size();
  for (const auto& sizes : blob_bytes_) bytes += sizes.size() * sizeof(sizes[0]);
  bytes += unclaimed_.size() * sizeof(Allocation);
  return bytes;
}

/// Reads the field descriptors and checks that descriptors, metadata and table follow each other
/// inside the file. @return the end of the metadata.
std::uint64_t BetonReader::check_extents(const BetonOptions& options) {
  const std::uint64_t file_bytes = file_bytes_;
  metadata_begin_ = kHeaderBytes + std::size_t{header_.num_fields} * kFieldBytes;
  if (file_bytes < metadata_begin_) {
    throw DataError(fmt::format(
        "{}: field descriptors: expected {} bytes for {} fields, got a file of {}. It is cut off",
        place(), metadata_begin_, header_.num_fields, file_bytes));
  }
  if (header_.table_offset == 0) {
    throw DataError(fmt::format(
        "{}: header: expected the place of the allocation table, got 0. The program that wrote the "
        "file was stopped before it had finished; write the file again",
        place()));
  }
  bring(metadata_begin_);
  fields_ = parse_fields(bytes_.subspan(kHeaderBytes), header_.num_fields, place(), options);
  record_bytes_ = record_bytes(fields_);

  std::uint64_t end = 0;
  if (__builtin_mul_overflow(header_.num_samples, std::uint64_t{record_bytes_}, &end) ||
      __builtin_add_overflow(end, std::uint64_t{metadata_begin_}, &end) || end > file_bytes) {
    throw DataError(fmt::format(
        "{}: metadata: expected {} records of {} bytes from {} on, got a file of {} bytes. It is "
        "cut off, or its header is damaged",
        place(), header_.num_samples, record_bytes_, metadata_begin_, file_bytes));
  }
  if (header_.table_offset < end || header_.table_offset > file_bytes) {
    throw DataError(fmt::format(
        "{}: header: expected an allocation table inside [{}, {}], got one at {}. The file is cut "
        "off, or its header is damaged",
        place(), end, file_bytes, header_.table_offset));
  }
  bring(end);
  return end;
}

/// Checks every pointer of one field against the table and keeps the sizes.
void BetonReader::resolve_blobs(std::size_t field, const AllocationTable& table,
                                std::vector<bool>& claimed) {
  std::vector<std::uint32_t>& sizes = blob_bytes_[field];
  sizes.resize(header_.num_samples);
  std::size_t hint = 0;
  for (std::uint64_t sample = 0; sample < header_.num_samples; ++sample) {
    const std::uint64_t expected = expected_size(sample, field);
    if (expected == 0) continue;
    const std::uint64_t pointer = blob_offset(sample, field);
    const Allocation* found = table.find(pointer, hint);
    if (found == nullptr || found->sample != sample) {
      throw DataError(fmt::format(
          "{}: sample {} field '{}': expected a pointer to bytes that the allocation table gives "
          "to this sample, got {}, where {}",
          place(), sample, fields_[field].name, pointer,
          found == nullptr ? std::string("no bytes begin")
                           : fmt::format("bytes of sample {} begin", found->sample)));
    }
    if (expected != kAnySize && found->size != expected) {
      throw DataError(
          fmt::format("{}: sample {} field '{}': expected {} bytes, got {} in the "
                      "allocation table",
                      place(), sample, fields_[field].name, expected, found->size));
    }
    sizes[sample] = static_cast<std::uint32_t>(found->size);
    claimed[static_cast<std::size_t>(found - table.entries().data())] = true;
  }
}

/// A custom field's values may be empty, and what then stands in its pointer is its own business:
/// only one that points exactly at bytes of its sample is followed.
void BetonReader::resolve_custom(std::size_t field, const AllocationTable& table,
                                 std::vector<bool>& claimed) {
  std::vector<std::uint32_t>& sizes = blob_bytes_[field];
  sizes.resize(header_.num_samples);
  std::size_t hint = 0;
  for (std::uint64_t sample = 0; sample < header_.num_samples; ++sample) {
    const Allocation* found = table.find(blob_offset(sample, field), hint);
    if (found == nullptr || found->sample != sample) continue;
    sizes[sample] = static_cast<std::uint32_t>(found->size);
    claimed[static_cast<std::size_t>(found - table.entries().data())] = true;
  }
}

void BetonReader::keep_unclaimed(const AllocationTable& table, const std::vector<bool>& claimed) {
  for (std::size_t i = 0; i < claimed.size(); ++i)
    if (!claimed[i]) unclaimed_.push_back(table.entries()[i]);
  std::ranges::stable_sort(unclaimed_, {}, &Allocation::sample);
}

std::span<const Allocation> BetonReader::unclaimed(std::uint64_t sample) const {
  require(sample < header_.num_samples, "the sample exists");
  const auto [begin, end] = std::ranges::equal_range(unclaimed_, sample, {}, &Allocation::sample);
  return {begin, end};
}

/// What the metadata says a blob's size must be. @throws DataError for an image of unknown mode or
/// without pixels.
std::uint64_t BetonReader::expected_size(std::uint64_t sample, std::size_t field) const {
  const FieldInfo& info = fields_[field];
  const std::byte* at = record(sample, field);
  if (info.type == FieldType::ndarray || info.type == FieldType::tensor) return info.value_bytes;
  if (info.type != FieldType::image) return load<std::uint64_t>(at + 8);
  const auto mode = std::to_integer<int>(*at);
  const auto width = load<std::uint16_t>(at + kImageWidthAt);
  const auto height = load<std::uint16_t>(at + kImageHeightAt);
  if (mode > 1 || width == 0 || height == 0) {
    throw DataError(fmt::format(
        "{}: sample {} field '{}': expected mode 0 (jpg) or 1 (raw) and at least 1 x 1 pixel, got "
        "mode {} and {} x {}",
        place(), sample, info.name, mode, width, height));
  }
  return mode == 1 ? std::uint64_t{width} * height * 3 : kAnySize;
}

std::size_t BetonReader::field(std::string_view name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == name) return i;
    names.push_back(fields_[i].name);
  }
  throw DataError(fmt::format("{}: expected a field named '{}', got none. {}", place(), name,
                              suggest(name, names)));
}

std::size_t BetonReader::first_field(FieldType type) const {
  std::size_t i = 0;
  while (i < fields_.size() && fields_[i].type != type) ++i;
  return i;
}

const std::byte* BetonReader::record(std::uint64_t sample, std::size_t field) const {
  require(sample < header_.num_samples, "the sample exists");
  require(field < fields_.size(), "the field exists");
  return bytes_.data() + metadata_begin_ + sample * record_bytes_ + fields_[field].offset;
}

std::span<const std::byte> BetonReader::metadata(std::uint64_t sample, std::size_t field) const {
  return {record(sample, field), fields_[field].layout.bytes};
}

void BetonReader::check_movable(std::uint64_t sample, std::size_t field) const {
  const std::span<const Allocation> blobs = unclaimed(sample);
  const FieldInfo& info = fields_[field];
  if (info.type != FieldType::custom || info.has_pointer() || blobs.empty()) return;
  throw DataError(fmt::format(
      "{}: sample {} field '{}': expected custom fields whose large values can be found, got {} "
      "bytes at {} that belong to one of them. Say --field {}=BYTES:ALIGNMENT:POINTER, POINTER "
      "being the place of the pointer in its metadata",
      place(), sample, fields_[field].name, blobs[0].size, blobs[0].pointer, fields_[field].name));
}

ImageRecord BetonReader::image(std::uint64_t sample, std::size_t field,
                               const FileWindow& window) const {
  const std::byte* at = record(sample, field);
  require(fields_[field].type == FieldType::image, "image() is asked for an image field");
  const ImageRecord record{static_cast<ImageMode>(*at), load<std::uint16_t>(at + kImageWidthAt),
                           load<std::uint16_t>(at + kImageHeightAt), blob(sample, field, window)};
  // The mapping shows a change that another process makes after the checks of the constructor.
  if (record.mode != ImageMode::jpg &&
      record.bytes.size() !=
          static_cast<std::size_t>(record.width) * static_cast<std::size_t>(record.height) * 3) {
    throw DataError(fmt::format("{}: sample {}: changed while it was read", place(), sample));
  }
  return record;
}

BetonReader::ImageSize BetonReader::image_size(std::uint64_t sample, std::size_t field) const {
  const std::byte* at = record(sample, field);
  require(fields_[field].type == FieldType::image, "image_size() is asked for an image field");
  return {load<std::uint16_t>(at + kImageWidthAt), load<std::uint16_t>(at + kImageHeightAt)};
}

std::uint64_t BetonReader::image_pixels(std::uint64_t sample, std::size_t field) const {
  const ImageSize size = image_size(sample, field);
  return static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height);
}

ImageMode BetonReader::image_mode(std::uint64_t sample, std::size_t field) const {
  require(fields_[field].type == FieldType::image, "image_mode() is asked for an image field");
  return static_cast<ImageMode>(*record(sample, field));
}

std::int64_t BetonReader::integer(std::uint64_t sample, std::size_t field) const {
  const std::byte* at = record(sample, field);
  require(fields_[field].type == FieldType::integer, "integer() is asked for an int field");
  return load<std::int64_t>(at);
}

double BetonReader::floating(std::uint64_t sample, std::size_t field) const {
  const std::byte* at = record(sample, field);
  require(fields_[field].type == FieldType::floating, "floating() is asked for a float field");
  return load<double>(at);
}

std::uint64_t BetonReader::blob_offset(std::uint64_t sample, std::size_t field) const {
  const std::byte* at = record(sample, field);
  const auto pointer_at = fields_[field].layout.pointer_at;
  require(pointer_at.has_value(), "blob_offset() is asked for a field with a pointer");
  return load<std::uint64_t>(at + *pointer_at);
}

std::span<const std::byte> BetonReader::blob(std::uint64_t sample, std::size_t field,
                                             const FileWindow& window) const {
  require(field < fields_.size() && sample < header_.num_samples, "sample and field exist");
  require(!blob_bytes_[field].empty() || fields_[field].type == FieldType::custom,
          "blob() is asked for a field with bytes");
  const std::uint64_t size = blob_bytes(sample, field);
  if (size == 0) return {};
  return bytes_of({sample, blob_offset(sample, field), size}, window);
}

std::span<const std::byte> BetonReader::bytes_of(const Allocation& allocation,
                                                 const FileWindow& window) const {
  const auto [sample, offset, size] = allocation;
  if (disk_ != nullptr) {
    require(offset >= window.offset && offset - window.offset <= window.bytes.size() &&
                size <= window.bytes.size() - (offset - window.offset),
            "the window holds the sample's bytes");
    return window.bytes.subspan(offset - window.offset, size);
  }
  if (offset > header_.table_offset || size > header_.table_offset - offset) {
    throw DataError(fmt::format("{}: sample {}: changed while it was read", place(), sample));
  }
  return bytes_.subspan(offset, size);
}

std::string BetonReader::fingerprint() const {
  const std::size_t end = metadata_begin_ + header_.num_samples * record_bytes_;
  return fmt::format("{:016x}", XXH3_64bits(bytes_.data(), end));
}

}  // namespace precast::data
