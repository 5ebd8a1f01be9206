#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// What a file tells of itself beside its samples; stands as JSON beside the checksums (sums.h).
struct FileInfo {
  /// Of an int field: the name of each value, counted from 0.
  std::map<std::string, std::vector<std::string>> classes;
  /// How it was written: the program's version, its command's options by name.
  std::map<std::string, std::string> written;
};

/// `{"classes": {"label": [...]}, "written": {...}}`; bytes that are not UTF-8 are replaced.
[[nodiscard]] PRECAST_API std::string file_info_text(const FileInfo& info);
/// What of `text` is as file_info_text() gives it; never throws for what is not, nor for
/// a text above 4 MiB, of which it takes nothing.
[[nodiscard]] PRECAST_API FileInfo parse_file_info(std::string_view text);

/// What the writer of a file noted; empty where the file has no checksums. Parses it at each call.
[[nodiscard]] PRECAST_API FileInfo file_info_of(const BetonReader& reader);
/// The name of each value of an int field; empty if nobody noted them.
[[nodiscard]] PRECAST_API std::vector<std::string> class_names_of(const BetonReader& reader,
                                                                  std::size_t field);

}  // namespace precast::data
