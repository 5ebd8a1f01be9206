#include "data/loader/sample_bytes.h"

#include <algorithm>
#include <set>

#include "data/beton/reader.h"

namespace precast::data {

std::vector<std::size_t> blob_fields_of(const std::vector<Output>& outputs) {
  std::set<std::size_t> fields;
  for (const Output& output : outputs) {
    const bool image = output.kind == OutputKind::image;
    if (image || output.kind == OutputKind::mask || output.kind == OutputKind::array)
      fields.insert(output.field);
    if (output.kind == OutputKind::mask) fields.insert(output.image_field);
  }
  return {fields.begin(), fields.end()};
}

std::vector<FileRange> ranges_of(const BetonReader& reader, const std::vector<std::size_t>& fields,
                                 std::uint64_t sample) {
  std::vector<FileRange> ranges;
  for (const std::size_t field : fields) {
    const std::uint64_t bytes = reader.blob_bytes(sample, field);
    if (bytes == 0) continue;
    const std::uint64_t begin = reader.blob_offset(sample, field);
    ranges.push_back({begin, begin + bytes});
  }
  return ranges;
}

FileRange range_of(const BetonReader& reader, const std::vector<std::size_t>& fields,
                   std::uint64_t sample) {
  FileRange hull{UINT64_MAX, 0};
  for (const FileRange& range : ranges_of(reader, fields, sample))
    hull = {std::min(hull.begin, range.begin), std::max(hull.end, range.end)};
  return hull.end == 0 ? FileRange{} : hull;
}

std::uint64_t stored_bytes(const BetonReader& reader, const std::vector<std::size_t>& fields,
                           std::uint64_t sample) {
  std::uint64_t bytes = 0;
  for (const std::size_t field : fields) bytes += reader.blob_bytes(sample, field);
  return bytes;
}

}  // namespace precast::data
