#include "data/beton/several_files.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <string>

#include "data/beton/field_tag.h"
#include "data/beton/layout.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// The arguments to compare. The layout of a custom field is added, because one of the two files
/// may not contain it.
std::vector<std::byte> compared_arguments(const BetonReader& file, std::size_t field) {
  std::vector<std::byte> arguments = arguments_without_sums(file, field);
  const FieldInfo& info = file.fields()[field];
  if (info.type == FieldType::custom)
    put_tag({.kind = FieldTag::Kind::custom, .layout = info.layout}, arguments);
  return arguments;
}

std::string describe(const FieldInfo& field) {
  const std::string array =
      field.dtype.empty() ? "" : fmt::format(" {} ({})", field.dtype, fmt::join(field.shape, ", "));
  return fmt::format("'{}' {}{}", field.name, field_type_name(field.type), array);
}

/// Bytes that a sample needs in a page, as in BetonWriter::add(). An empty value takes one byte, or
/// none in a custom field whose pointer is 0; numbers take none.
std::uint64_t occupied_bytes(const BetonReader& reader, std::uint64_t sample) {
  std::uint64_t bytes = 0;
  for (std::size_t field = 0; field < reader.fields().size(); ++field) {
    const FieldInfo& info = reader.fields()[field];
    if (!info.has_pointer()) continue;
    const std::uint64_t blob = reader.blob_bytes(sample, field);
    const std::byte* const pointer =
        reader.metadata(sample, field).data() + *info.layout.pointer_at;
    const bool points =
        info.type != FieldType::custom || blob > 0 || load<std::uint64_t>(pointer) != 0;
    if (points) bytes += std::max<std::uint64_t>(1, blob);
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> arguments_without_sums(const BetonReader& file, std::size_t field) {
  const auto stored = file.arguments(field);
  std::vector<std::byte> arguments(stored.begin(), stored.end());
  std::byte* const flag = arguments.data() + kSumsFlagAt;
  if (field == 0 && load<std::uint64_t>(flag) == kSumsFlag) store(flag, std::uint64_t{0});
  return arguments;
}

void check_same_fields(const BetonReader& first, const BetonReader& other) {
  const auto fail = [&](const std::string& expected, const std::string& got) {
    throw DataError(fmt::format("{}: expected {} as in {}, got {}", other.path().string(), expected,
                                first.path().string(), got));
  };
  const auto& fields = first.fields();
  for (std::size_t i = 0; i < std::min(fields.size(), other.fields().size()); ++i) {
    const FieldInfo& a = fields[i];
    const FieldInfo& b = other.fields()[i];
    const auto same = [](const FieldInfo& l, const FieldInfo& r) {
      return l.name == r.name && l.type == r.type && l.dtype == r.dtype && l.shape == r.shape;
    };
    if (!same(a, b)) fail("field " + describe(a), describe(b));
    if (compared_arguments(first, i) != compared_arguments(other, i))
      fail("the arguments of field " + describe(a), "different arguments");
  }
  const std::size_t count = other.fields().size();
  if (fields.size() > count)
    fail(fmt::format("{} fields including {}", fields.size(), describe(fields[count])),
         fmt::format("{}", count));
  if (fields.size() < count)
    fail(fmt::format("{} fields", fields.size()),
         fmt::format("{} including {}", count, describe(other.fields()[fields.size()])));
}

std::uint64_t copy_page_bytes(const std::vector<const BetonReader*>& files) {
  std::uint64_t page = kMinPageBytes;
  for (const BetonReader* file : files) {
    page = std::max<std::uint64_t>(page, file->header().page_bytes);
    for (std::uint64_t sample = 0; sample < file->size(); ++sample)
      page = std::max(page, std::bit_ceil(occupied_bytes(*file, sample)));
  }
  return std::min(page, kMaxPageBytes);
}

std::vector<std::uint64_t> merged_pages(const BetonReader& reader) {
  const std::uint64_t page_bytes = reader.header().page_bytes;
  const std::uint64_t values_begin = kHeaderBytes + reader.fields().size() * kFieldBytes +
                                     reader.size() * record_bytes(reader.fields());
  // A merged file has checksums; its first values may therefore be in the page in which the records
  // end.
  std::uint64_t page = values_begin / page_bytes;
  std::uint64_t used = values_begin % page_bytes;
  std::vector<std::uint64_t> pages(reader.size());
  for (std::uint64_t sample = 0; sample < pages.size(); ++sample) {
    const std::uint64_t bytes = occupied_bytes(reader, sample);
    if (bytes > page_bytes - used) {
      ++page;
      used = 0;
    }
    used += bytes;
    pages[sample] = page;
  }
  return pages;
}

}  // namespace precast::data
