#include "data/beton/stored_sums.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "data/beton/format.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Whether the descriptors say that the file has checksums inside.
bool has_sums_flag(std::span<const std::byte> descriptors) {
  return load<std::uint64_t>(descriptors.data() + 1 + kFieldNameBytes + kSumsFlagAt) == kSumsFlag;
}

/// @throws DataError; for a sidecar, its message says in which case the user should remove the
/// sidecar.
FileSums parse_sums(const BetonBytes& file, const BetonMetadata& metadata,
                    std::span<const std::byte> block, bool inside) {
  const std::string where = inside ? file.location() : sums_sidecar(file.path()).string();
  const std::vector<FieldInfo>& fields = metadata.fields();
  try {
    return {block, metadata.size(), value_fields_before(metadata, fields.size()), where};
  } catch (const DataError& error) {
    if (inside) throw;
    const bool custom = std::ranges::count(fields, FieldType::custom, &FieldInfo::type) > 0;
    throw DataError(fmt::format(
        "{0}. If {1} was written again after {2}{3}, remove {2}", error.what(), file.location(),
        where,
        custom ? fmt::format(", or {} was written with a different --field-layout", where)
               : std::string()));
  }
}

/// @throws DataError for the first part of the file that does not match its checksum.
void check_parts(const BetonBytes& file, const SumsTrailer& expected, const SumsTrailer& found,
                 bool inside) {
  const auto expect = [&](const char* part, std::uint64_t stored, std::uint64_t actual) {
    if (stored == actual) return;
    throw DataError(fmt::format(
        "{}: {}: expected checksum {:016x}, got {:016x}. {}", file.location(), part, stored, actual,
        inside
            ? std::string("The file is damaged")
            : fmt::format(
                  "The file is damaged, or was written again after {0}; in that case, remove {0}",
                  sums_sidecar(file.path()).string())));
  };
  expect("header and fields", expected.head, found.head);
  expect("metadata", expected.records, found.records);
  expect("allocation table", expected.table, found.table);
}

}  // namespace

StoredSums::StoredSums(const BetonBytes& file, const BetonMetadata& metadata,
                       std::span<const std::byte> table) {
  std::span<const std::byte> block = find_embedded(file, metadata);
  const bool inside = !block.empty();
  if (!inside) block = read_sidecar(file);
  if (block.empty()) return;
  sums_ = parse_sums(file, metadata, block, inside);
  check_parts(file, sums_.trailer(), hash_extents(file, metadata, table), inside);
  if (inside) embedded_bytes_ = block.size();
}

std::span<const std::byte> StoredSums::find_embedded(const BetonBytes& file,
                                                     const BetonMetadata& metadata) {
  const std::uint64_t begin = metadata.end();
  const std::uint64_t end = metadata.header().table_offset;
  std::uint64_t size = 0;
  if (end - begin >= kSumsTrailerBytes)
    size = sums_bytes_of(file.read(end - kSumsTrailerBytes, kSumsTrailerBytes, memory_));
  if (size > 0 && size <= end - begin) return file.read(end - size, size, memory_);
  memory_.clear();
  if (size == 0 && !has_sums_flag(file.available().subspan(kHeaderBytes))) return {};
  throw DataError(fmt::format(
      "{}: expected checksums before the allocation table at {}, got other bytes. The file "
      "is damaged",
      file.location(), end));
}

std::span<const std::byte> StoredSums::read_sidecar(const BetonBytes& file) {
  const std::filesystem::path sidecar = sums_sidecar(file.path());
  const bool in_memory = file.mapping() == nullptr && file.disk() == nullptr;
  std::error_code unknown;
  if (in_memory || !std::filesystem::exists(sidecar, unknown)) return {};
  memory_ = read_file(sidecar);
  if (!memory_.empty()) return memory_;
  throw DataError(fmt::format("{}: expected the checksums of {}, got an empty file. Remove it",
                              sidecar.string(), file.location()));
}

std::size_t value_fields_before(const BetonMetadata& metadata, std::size_t field) {
  const auto first = metadata.fields().begin();
  return static_cast<std::size_t>(
      std::count_if(first, first + static_cast<std::ptrdiff_t>(field),
                    [](const FieldInfo& info) { return info.has_pointer(); }));
}

SumsTrailer hash_extents(const BetonBytes& file, const BetonMetadata& metadata,
                         std::span<const std::byte> table) {
  SumsTrailer trailer;
  trailer.samples = metadata.size();
  trailer.value_fields = value_fields_before(metadata, metadata.fields().size());
  trailer.head = hash_of(file.available().first(metadata.begin()));
  trailer.records =
      hash_of(file.available().subspan(metadata.begin(), metadata.end() - metadata.begin()));
  trailer.table = hash_of(table);
  return trailer;
}

}  // namespace precast::data
