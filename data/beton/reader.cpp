#include "data/beton/reader.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <utility>

#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::data {

BetonReader::BetonReader(const std::filesystem::path& path, BlobAccess access,
                         const BetonOptions& options)
    : BetonReader(BetonBytes(path, access), {}, options) {
  if (access == BlobAccess::on_disk_direct) file_.read_directly();
}

BetonReader::BetonReader(std::span<const std::byte> bytes, std::filesystem::path path,
                         const BetonLimits& limits, const BetonOptions& options)
    : BetonReader(BetonBytes(bytes, std::move(path)), limits, options) {}

BetonReader::BetonReader(BetonBytes file, const BetonLimits& limits, const BetonOptions& options)
    : file_(std::move(file)), metadata_(file_, limits, options) {
  const std::uint64_t begin = header().table_offset;
  std::vector<std::byte> memory;
  const std::span<const std::byte> bytes = file_.read(begin, file_.size() - begin, memory);
  sums_ = StoredSums(file_, metadata_, bytes);
  const AllocationTable table(bytes, header(), metadata_.end(), place());
  blobs_ = BlobIndex(metadata_, table, place());
}

std::span<const std::byte> BetonReader::bytes() const {
  require(disk() == nullptr, "the whole file is asked for where it is mapped");
  return file_.known();
}

std::uint64_t BetonReader::memory_bytes() const {
  return file_.memory_bytes() + sums_.memory_bytes() + blobs_.memory_bytes();
}

std::span<const Allocation> BetonReader::unclaimed(std::uint64_t sample) const {
  require(sample < size(), "the sample exists");
  return blobs_.unclaimed(sample);
}

std::size_t BetonReader::field(std::string_view name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].name == name) return i;
    names.push_back(fields()[i].name);
  }
  throw DataError(fmt::format("{}: expected a field named '{}', got none. {}", place(), name,
                              suggest(name, names)));
}

std::size_t BetonReader::first_field(FieldType type) const {
  std::size_t i = 0;
  while (i < fields().size() && fields()[i].type != type) ++i;
  return i;
}

std::span<const std::byte> BetonReader::metadata(std::uint64_t sample, std::size_t field) const {
  return {metadata_.record(sample, field), fields()[field].layout.bytes};
}

void BetonReader::check_movable(std::uint64_t sample, std::size_t field) const {
  const std::span<const Allocation> blobs = unclaimed(sample);
  const FieldInfo& info = fields()[field];
  if (info.type != FieldType::custom || info.has_pointer() || blobs.empty()) return;
  throw DataError(fmt::format(
      "{}: sample {} field '{}': expected custom fields whose large values can be found, got {} "
      "bytes at {} that belong to one of them. Give --field-layout {}=BYTES:ALIGNMENT:POINTER, "
      "where POINTER is the offset of the pointer in its metadata",
      place(), sample, fields()[field].name, blobs[0].size, blobs[0].pointer,
      fields()[field].name));
}

ImageRecord BetonReader::image(std::uint64_t sample, std::size_t field,
                               const FileWindow& window) const {
  const std::byte* at = metadata_.record(sample, field);
  require(fields()[field].type == FieldType::image, "image() is asked for an image field");
  const ImageRecord record{static_cast<ImageMode>(*at), load<std::uint16_t>(at + kImageWidthAt),
                           load<std::uint16_t>(at + kImageHeightAt), blob(sample, field, window)};
  // Another process may have changed the mapped file after the constructor's checks.
  if (record.mode != ImageMode::jpg &&
      record.bytes.size() !=
          static_cast<std::size_t>(record.width) * static_cast<std::size_t>(record.height) * 3) {
    throw DataError(fmt::format("{}: sample {}: changed while it was read", place(), sample));
  }
  return record;
}

BetonReader::ImageSize BetonReader::image_size(std::uint64_t sample, std::size_t field) const {
  const std::byte* at = metadata_.record(sample, field);
  require(fields()[field].type == FieldType::image, "image_size() is asked for an image field");
  return {load<std::uint16_t>(at + kImageWidthAt), load<std::uint16_t>(at + kImageHeightAt)};
}

std::uint64_t BetonReader::image_pixels(std::uint64_t sample, std::size_t field) const {
  const ImageSize size = image_size(sample, field);
  return static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height);
}

ImageMode BetonReader::image_mode(std::uint64_t sample, std::size_t field) const {
  require(fields()[field].type == FieldType::image, "image_mode() is asked for an image field");
  return static_cast<ImageMode>(*metadata_.record(sample, field));
}

std::int64_t BetonReader::integer(std::uint64_t sample, std::size_t field) const {
  const std::byte* at = metadata_.record(sample, field);
  require(fields()[field].type == FieldType::integer, "integer() is asked for an int field");
  return load<std::int64_t>(at);
}

double BetonReader::floating(std::uint64_t sample, std::size_t field) const {
  const std::byte* at = metadata_.record(sample, field);
  require(fields()[field].type == FieldType::floating, "floating() is asked for a float field");
  return load<double>(at);
}

std::span<const std::byte> BetonReader::blob(std::uint64_t sample, std::size_t field,
                                             const FileWindow& window) const {
  require(field < fields().size() && sample < size(), "sample and field exist");
  require(blobs_.has_blobs(field) || fields()[field].type == FieldType::custom,
          "blob() is asked for a field with bytes");
  const std::uint64_t size = blob_bytes(sample, field);
  if (size == 0) return {};
  return bytes_of({sample, blob_offset(sample, field), size}, window);
}

std::span<const std::byte> BetonReader::bytes_of(const Allocation& allocation,
                                                 const FileWindow& window) const {
  const auto [sample, offset, size] = allocation;
  if (disk() != nullptr) {
    require(offset >= window.offset && offset - window.offset <= window.bytes.size() &&
                size <= window.bytes.size() - (offset - window.offset),
            "the window holds the sample's bytes");
    return window.bytes.subspan(offset - window.offset, size);
  }
  if (offset > header().table_offset || size > header().table_offset - offset) {
    throw DataError(fmt::format("{}: sample {}: changed while it was read", place(), sample));
  }
  return file_.known().subspan(offset, size);
}

void BetonReader::check_value(std::uint64_t sample, std::size_t field,
                              std::span<const std::byte> value) const {
  if (sums().empty()) return;
  const std::uint64_t expected = sums().value(sample, value_field(metadata_, field));
  const std::uint64_t found = hash_of(value);
  if (expected == found) return;
  throw DataError(
      fmt::format("{}: sample {} field '{}': expected checksum {:016x}, got {:016x}. Its bytes "
                  "have changed since they were written",
                  place(), sample, fields()[field].name, expected, found));
}

SumsTrailer BetonReader::hash_extents(std::span<const std::byte> table) const {
  return data::hash_extents(file_, metadata_, table);
}

std::string BetonReader::fingerprint() const {
  return fmt::format("{:016x}", XXH3_64bits(file_.known().data(), metadata_.end()));
}

void write_sums_sidecar(const BetonReader& reader, FileOps& ops) {
  const SumsTrailer trailer =
      reader.hash_extents(reader.bytes().subspan(reader.header().table_offset));
  std::vector<std::uint64_t> values;
  values.reserve(trailer.samples * trailer.value_fields);
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    for (std::size_t i = 0; i < reader.fields().size(); ++i) {
      if (reader.fields()[i].has_pointer()) values.push_back(hash_of(reader.blob(sample, i)));
    }
  }
  AtomicFile file(sums_sidecar(reader.path()), ops);
  file.append(encode_sums(trailer, values, {}));
  file.commit();
}

}  // namespace precast::data
