#include "data/beton/metadata.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <span>
#include <string>

#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Rejects a file that does not begin with the number of version 2. @throws DataError always
[[noreturn]] void throw_wrong_format(std::span<const std::byte> file, const std::string& location) {
  const auto version = load<std::uint16_t>(file.data());
  // Later versions of the format would also begin with a small number.
  constexpr std::uint16_t kMaxVersions = 255;
  if (version > 0 && version <= kMaxVersions)
    throw DataError(fmt::format("{}: header: expected version {} of the .beton format, got {}",
                                location, kBetonVersion, version));
  constexpr std::size_t kShown = 4;
  std::string start;
  for (const std::byte byte : file.first(std::min(kShown, file.size())))
    start += fmt::format("{}{:02x}", start.empty() ? "" : " ", std::to_integer<int>(byte));
  throw DataError(
      fmt::format("{}: expected a .beton file, which begins with the bytes {:02x} 00, got a file "
                  "that begins with {}. It is not a .beton file",
                  location, kBetonVersion, start));
}

BetonHeader parse_header(std::span<const std::byte> file, const BetonLimits& limits,
                         const std::string& location) {
  if (file.size() >= sizeof kBetonVersion && load<std::uint16_t>(file.data()) != kBetonVersion)
    throw_wrong_format(file, location);
  if (file.size() < kHeaderBytes) {
    throw DataError(fmt::format("{}: header: expected {} bytes, got {}. The file is truncated",
                                location, kHeaderBytes, file.size()));
  }
  BetonHeader header;
  header.version = load<std::uint16_t>(file.data());
  header.num_fields = load<std::uint16_t>(file.data() + 2);
  header.page_bytes = load<std::uint32_t>(file.data() + 4);
  header.num_samples = load<std::uint64_t>(file.data() + 8);
  header.table_offset = load<std::uint64_t>(file.data() + 16);
  if (header.num_fields == 0 || header.num_fields > kMaxFields) {
    throw DataError(fmt::format("{}: header: expected 1 to {} fields, got {}", location, kMaxFields,
                                header.num_fields));
  }
  if (!std::has_single_bit(header.page_bytes) || header.page_bytes < limits.min_page_bytes) {
    throw DataError(fmt::format(
        "{}: header: expected a page size that is a power of two of at least {} bytes, got {}",
        location, limits.min_page_bytes, header.page_bytes));
  }
  if (header.num_samples == 0) {
    throw DataError(fmt::format("{}: header: expected at least 1 sample, got 0", location));
  }
  return header;
}

}  // namespace

BetonMetadata::BetonMetadata(BetonBytes& file, const BetonLimits& limits,
                             const BetonOptions& options) {
  file.load(kHeaderBytes);
  header_ = parse_header(file.available(), limits, file.location());
  begin_ = kHeaderBytes + std::size_t{header_.num_fields} * kFieldBytes;
  if (file.size() < begin_) {
    throw DataError(
        fmt::format("{}: field descriptors: expected a file of at least {} bytes for {} fields, "
                    "got {}. The file is truncated",
                    file.location(), begin_, header_.num_fields, file.size()));
  }
  if (header_.table_offset == 0) {
    throw DataError(
        fmt::format("{}: header: expected the position of the allocation table, got 0. The program "
                    "that wrote the file was stopped before it had finished; write the file again",
                    file.location()));
  }
  file.load(begin_);
  fields_ = parse_fields(file.available().subspan(kHeaderBytes), header_.num_fields,
                         file.location(), options);
  record_bytes_ = record_bytes(fields_);
  check_extents(file);
  file.load(end());
  records_ = file.available().data() + begin_;
}

/// Checks that the allocation table follows the records and that both are inside the file.
void BetonMetadata::check_extents(const BetonBytes& file) const {
  std::uint64_t end = 0;
  if (__builtin_mul_overflow(header_.num_samples, std::uint64_t{record_bytes_}, &end) ||
      __builtin_add_overflow(end, begin_, &end) || end > file.size()) {
    throw DataError(
        fmt::format("{}: metadata: expected {} records of {} bytes from byte {}, got a file of {} "
                    "bytes. The file is truncated, or its header is damaged",
                    file.location(), header_.num_samples, record_bytes_, begin_, file.size()));
  }
  if (header_.table_offset < end || header_.table_offset > file.size()) {
    throw DataError(
        fmt::format("{}: header: expected an allocation table that begins between bytes {} and {}, "
                    "got {}. The file is truncated, or its header is damaged",
                    file.location(), end, file.size(), header_.table_offset));
  }
}

}  // namespace precast::data
