#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "data/order/subset.h"
#include "framework/core/export.h"

namespace precast::data {

/// Parses a list of samples of a dataset with `size` samples. Each line is a sample id, or a range
/// A:B, which excludes B. Lines may be in any order. Empty lines and comments after a # are
/// skipped.
/// @param file the name of the list, for messages. @param dataset_name the dataset, for messages.
/// @throws ConfigError naming file and line for any other text, an id that is not below `size`, and
/// a sample that is listed twice; ConfigError naming the file if it lists no sample.
[[nodiscard]] PRECAST_API SampleSet parse_sample_list(std::string_view text,
                                                      const std::string& file, std::uint64_t size,
                                                      std::string_view dataset_name);
/// Reads a file and parses it with parse_sample_list(). @throws ConfigError also if the file cannot
/// be read.
[[nodiscard]] PRECAST_API SampleSet read_sample_list(const std::filesystem::path& file,
                                                     std::uint64_t size,
                                                     std::string_view dataset_name);

}  // namespace precast::data
