#include "data/beton/blob_index.h"

#include <fmt/core.h>

#include <algorithm>

#include "data/beton/layout.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Stands for the size of a JPEG: only the allocation table contains it, not the metadata.
constexpr std::uint64_t kAnySize = UINT64_MAX;

/// Finds the table entries to which the metadata points, and records which entries have been found.
class Resolver {
 public:
  Resolver(const BetonMetadata& metadata, const AllocationTable& table, const std::string& location)
      : metadata_(metadata), table_(table), location_(location), claimed_(table.entries().size()) {}

  /// Checks the pointers of one field's values, except empty ones, against the table. @return the
  /// size of each sample's blob; 0 if it is empty.
  std::vector<std::uint32_t> checked_sizes(std::size_t field) {
    std::vector<std::uint32_t> sizes(metadata_.size());
    std::size_t hint = 0;
    for (std::uint64_t sample = 0; sample < metadata_.size(); ++sample) {
      const std::uint64_t expected = expected_size(sample, field);
      if (expected == 0) continue;
      const std::uint64_t pointer = metadata_.pointer(sample, field);
      const Allocation* found = table_.find(pointer, hint);
      check(sample, field, expected, pointer, found);
      sizes[sample] = claim(*found);
    }
    return sizes;
  }

  /// For a custom field, whose pointer is undefined if the value is empty: follows only pointers
  /// that the allocation table lists as the start of a value of the same sample. @return the same
  /// sizes as checked_sizes()
  std::vector<std::uint32_t> found_sizes(std::size_t field) {
    std::vector<std::uint32_t> sizes(metadata_.size());
    std::size_t hint = 0;
    for (std::uint64_t sample = 0; sample < metadata_.size(); ++sample) {
      const Allocation* found = table_.find(metadata_.pointer(sample, field), hint);
      if (found != nullptr && found->sample == sample) sizes[sample] = claim(*found);
    }
    return sizes;
  }

  /// Table entries that no known pointer refers to.
  [[nodiscard]] std::vector<Allocation> unclaimed() const {
    std::vector<Allocation> rest;
    for (std::size_t i = 0; i < claimed_.size(); ++i)
      if (!claimed_[i]) rest.push_back(table_.entries()[i]);
    std::ranges::stable_sort(rest, {}, &Allocation::sample);
    return rest;
  }

 private:
  std::uint32_t claim(const Allocation& entry) {
    claimed_[static_cast<std::size_t>(&entry - table_.entries().data())] = true;
    return static_cast<std::uint32_t>(entry.size);
  }

  /// The size that a blob must have according to the metadata. @throws DataError for an image of
  /// unknown mode or without pixels.
  [[nodiscard]] std::uint64_t expected_size(std::uint64_t sample, std::size_t field) const {
    const FieldInfo& info = metadata_.fields()[field];
    const std::byte* at = metadata_.record(sample, field);
    if (info.type == FieldType::ndarray || info.type == FieldType::tensor) return info.value_bytes;
    if (info.type != FieldType::image) return load<std::uint64_t>(at + 8);
    const auto mode = std::to_integer<int>(*at);
    const auto width = load<std::uint16_t>(at + kImageWidthAt);
    const auto height = load<std::uint16_t>(at + kImageHeightAt);
    if (mode > 1 || width == 0 || height == 0) {
      throw DataError(fmt::format(
          "{}: sample {} field '{}': expected mode 0 (jpg) or 1 (raw) and at least 1 x 1 pixel, "
          "got mode {} and {} x {}",
          location_, sample, info.name, mode, width, height));
    }
    return mode == 1 ? std::uint64_t{width} * height * 3 : kAnySize;
  }

  void check(std::uint64_t sample, std::size_t field, std::uint64_t expected, std::uint64_t pointer,
             const Allocation* found) const {
    const std::string& name = metadata_.fields()[field].name;
    if (found == nullptr || found->sample != sample) {
      throw DataError(
          fmt::format("{}: sample {} field '{}': expected a pointer to bytes that belong to this "
                      "sample in the allocation table, got {}, where {}",
                      location_, sample, name, pointer,
                      found == nullptr ? std::string("no bytes begin")
                                       : fmt::format("bytes of sample {} begin", found->sample)));
    }
    if (expected != kAnySize && found->size != expected) {
      throw DataError(
          fmt::format("{}: sample {} field '{}': expected {} bytes, got {} in the "
                      "allocation table",
                      location_, sample, name, expected, found->size));
    }
  }

  const BetonMetadata& metadata_;
  const AllocationTable& table_;
  const std::string& location_;
  /// For each entry of the table: whether a known pointer refers to it.
  std::vector<bool> claimed_;
};

}  // namespace

BlobIndex::BlobIndex(const BetonMetadata& metadata, const AllocationTable& table,
                     const std::string& location)
    : sizes_(metadata.fields().size()) {
  Resolver resolver(metadata, table, location);
  bool custom = false;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const FieldInfo& field = metadata.fields()[i];
    if (has_blob(field.type)) sizes_[i] = resolver.checked_sizes(i);
    if (field.type != FieldType::custom) continue;
    custom = true;
    if (field.has_pointer()) sizes_[i] = resolver.found_sizes(i);
  }
  if (custom) unclaimed_ = resolver.unclaimed();
}

std::span<const Allocation> BlobIndex::unclaimed(std::uint64_t sample) const {
  const auto [begin, end] = std::ranges::equal_range(unclaimed_, sample, {}, &Allocation::sample);
  return {begin, end};
}

std::uint64_t BlobIndex::memory_bytes() const {
  std::uint64_t bytes = unclaimed_.size() * sizeof(Allocation);
  for (const auto& sizes : sizes_) bytes += sizes.size() * sizeof(sizes[0]);
  return bytes;
}

}  // namespace precast::data
