#include "data/loader/sample_bytes.h"

#include <algorithm>
#include <memory>
#include <set>
#include <variant>

#include "data/beton/reader.h"

namespace precast::data {

std::vector<std::size_t> blob_fields_of(const std::vector<Output>& outputs) {
  std::set<std::size_t> fields;
  for (const Output& output : outputs) {
    const auto* const image = std::get_if<ImageOutput>(&output.kind);
    const bool in_record = is<IntegerOutput>(output) || is<FloatingOutput>(output) ||
                           is<SampleIdOutput>(output) ||
                           (image != nullptr && image->max_stored_side_px);
    if (!in_record) fields.insert(output.field);
    if (const auto* const mask = std::get_if<MaskOutput>(&output.kind))
      fields.insert(mask->image_field);
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

FileWindow DirectWindow::read(const BetonReader& reader, const FileRange& range) {
  const DiskFiles* disk = reader.disk();
  if (disk == nullptr || range.begin == range.end) return {};
  // Reads that bypass the page cache need an offset, a length and an address that are multiples of
  // the alignment.
  const std::uint64_t alignment = disk->alignment();
  const std::uint64_t begin = range.begin / alignment * alignment;
  const std::uint64_t bytes = round_up(range.end - begin, alignment);
  memory_.resize(bytes + alignment);
  void* start = memory_.data();
  std::size_t space = memory_.size();
  std::align(alignment, bytes, start, space);
  const std::span window(static_cast<std::byte*>(start), bytes);
  disk->read(begin, window);
  return {begin, window};
}

}  // namespace precast::data
