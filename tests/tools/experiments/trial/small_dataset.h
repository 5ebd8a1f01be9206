#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "data/beton/bytes.h"
#include "data/write/writer.h"

namespace precast::test {

/// Writes a dataset of two samples with the fields label (int) and value (bytes). The size of the
/// file depends only on the size of the values and on `checksums`. @param value of both samples.
inline std::filesystem::path write_small_dataset(const std::filesystem::path& path,
                                                 std::int64_t label, std::string_view value = "x",
                                                 bool checksums = true) {
  using data::FieldType;
  constexpr std::size_t kIntBytes = 8, kBytesBytes = 16, kSizeAt = 8;
  data::BetonWriter writer(path, {{"label", FieldType::integer}, {"value", FieldType::bytes}}, 2,
                           {.page_bytes = data::kMinPageBytes, .checksums = checksums});
  for (int sample = 0; sample < 2; ++sample) {
    std::vector<data::EncodedValue> values(2);
    values[0].metadata.resize(kIntBytes);
    data::store(values[0].metadata.data(), label);
    values[1].metadata.resize(kBytesBytes);
    data::store(values[1].metadata.data() + kSizeAt, std::uint64_t{value.size()});
    for (const char c : value) values[1].blob.push_back(static_cast<std::byte>(c));
    writer.add(values);
  }
  writer.finish();
  return path;
}

}  // namespace precast::test
