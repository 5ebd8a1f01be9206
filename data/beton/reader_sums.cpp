// What BetonReader does with checksums.
#include <fmt/core.h>

#include <algorithm>
#include <system_error>

#include "data/beton/reader.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Whether the writer of these descriptors says that the file has sums inside.
bool announces_sums(std::span<const std::byte> descriptors) {
  return load<std::uint64_t>(descriptors.data() + 1 + kFieldNameBytes + kSumsFlagAt) == kSumsFlag;
}

}  // namespace

std::span<const std::byte> BetonReader::sums_inside() {
  const std::uint64_t end = header_.table_offset;
  const std::uint64_t begin = metadata_begin_ + header_.num_samples * record_bytes_;
  const auto bytes_at = [&](std::uint64_t at, std::uint64_t size) {
    if (disk_ == nullptr) return bytes_.subspan(at, size);
    sums_bytes_.resize(size);
    disk_->read(at, sums_bytes_);
    return std::span<const std::byte>(sums_bytes_);
  };
  std::uint64_t size = 0;
  if (end - begin >= kSumsTrailerBytes)
    size = sums_bytes_of(bytes_at(end - kSumsTrailerBytes, kSumsTrailerBytes));
  if (size > 0 && size <= end - begin) return bytes_at(end - size, size);
  sums_bytes_.clear();
  if (size == 0 && !announces_sums(bytes_.subspan(kHeaderBytes))) return {};
  throw DataError(fmt::format(
      "{}: checksums: expected them before the allocation table at {}, got other bytes. The file "
      "is damaged",
      place(), end));
}

std::span<const std::byte> BetonReader::sums_beside() {
  const std::filesystem::path sidecar = sums_sidecar(path_);
  std::error_code unknown;
  if ((file_ == nullptr && disk_ == nullptr) || !std::filesystem::exists(sidecar, unknown))
    return {};
  sums_bytes_ = read_file(sidecar);
  if (!sums_bytes_.empty()) return sums_bytes_;
  throw DataError(fmt::format("{}: checksums: expected those of {}, got an empty file. Remove it",
                              sidecar.string(), place()));
}

/// @throws DataError that also says what to do about those of another file.
FileSums BetonReader::sums_of(std::span<const std::byte> block, bool inside) const {
  const std::string where = inside ? place() : sums_sidecar(path_).string();
  try {
    return {block, header_.num_samples, value_field(fields_.size()), where};
  } catch (const DataError& error) {
    if (inside) throw;
    const bool custom = std::ranges::count(fields_, FieldType::custom, &FieldInfo::type) > 0;
    throw DataError(fmt::format("{}. If {} was written again after {}{}, remove that", error.what(),
                                place(), where, custom ? ", or that with another --field" : ""));
  }
}

void BetonReader::open_sums(std::span<const std::byte> table) {
  std::span<const std::byte> block = sums_inside();
  const bool inside = !block.empty();
  if (!inside) block = sums_beside();
  if (block.empty()) return;
  const std::string where = inside ? place() : sums_sidecar(path_).string();
  const FileSums sums = sums_of(block, inside);
  const auto expect = [&](const char* part, std::uint64_t expected, std::uint64_t found) {
    if (expected == found) return;
    throw DataError(fmt::format(
        "{}: {}: expected checksum {:016x}, got {:016x}. {}", place(), part, expected, found,
        inside ? std::string("The file is damaged")
               : fmt::format("The file is damaged, or was written again after {}; remove that then",
                             where)));
  };
  const SumsTrailer found = hash_extents(table);
  expect("header and fields", sums.trailer().head, found.head);
  expect("metadata", sums.trailer().records, found.records);
  expect("allocation table", sums.trailer().table, found.table);
  sums_ = sums;
  if (inside) sums_inside_bytes_ = block.size();
}

SumsTrailer BetonReader::hash_extents(std::span<const std::byte> table) const {
  SumsTrailer trailer;
  trailer.samples = header_.num_samples;
  trailer.value_fields = value_field(fields_.size());
  trailer.head = hash_of(bytes_.first(metadata_begin_));
  trailer.records = hash_of(bytes_.subspan(metadata_begin_, header_.num_samples * record_bytes_));
  trailer.table = hash_of(table);
  return trailer;
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

std::size_t BetonReader::value_field(std::size_t field) const {
  return static_cast<std::size_t>(
      std::count_if(fields_.begin(), fields_.begin() + static_cast<std::ptrdiff_t>(field),
                    [](const FieldInfo& info) { return info.has_pointer(); }));
}

void BetonReader::check_value(std::uint64_t sample, std::size_t field,
                              std::span<const std::byte> value) const {
  if (sums_.empty()) return;
  const std::uint64_t expected = sums_.value(sample, value_field(field));
  const std::uint64_t found = hash_of(value);
  if (expected == found) return;
  throw DataError(
      fmt::format("{}: sample {} field '{}': expected checksum {:016x}, got {:016x}. Its bytes "
                  "have changed since they were written",
                  place(), sample, fields_[field].name, expected, found));
}

std::vector<std::string> BetonReader::class_names(std::size_t field) const {
  require(field < fields_.size(), "the field exists");
  return info().classes[fields_[field].name];
}

}  // namespace precast::data
