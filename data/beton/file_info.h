#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// The facts that a file stores about itself in addition to its samples, as JSON next to the
/// checksums (sums.h).
struct FileInfo {
  /// For each int field: the name of each value, counted from 0.
  std::map<std::string, std::vector<std::string>> classes;
  /// How the file was written: the program's version and the options of its command, by name.
  std::map<std::string, std::string> written;
};

/// `{"classes": {"label": [...]}, "written": {...}}`; bytes that are not UTF-8 are replaced.
[[nodiscard]] PRECAST_API std::string file_info_text(const FileInfo& info);
/// Reads what file_info_text() writes and ignores everything else. Never throws; returns nothing
/// for a text of more than 4 MiB.
[[nodiscard]] PRECAST_API FileInfo parse_file_info(std::string_view text);

/// The names of classes that several files have in common.
struct CommonNames {
  /// The names of the file with the most names, if all files have names and these begin with the
  /// same ones; else empty.
  std::vector<std::string> names;
  /// A file without names, if another one has names.
  std::optional<std::size_t> nameless;
  /// Two files that name a label differently.
  struct Conflict {
    std::size_t file = 0;
    std::size_t other = 0;
    std::size_t label = 0;
  };
  std::optional<Conflict> conflict;
};

/// @param files the names in each, by label; at least one file.
[[nodiscard]] PRECAST_API CommonNames common_names(std::span<const std::vector<std::string>> files);

/// The FileInfo stored in a file; empty if the file has no checksums. For several files: the class
/// names that they have in common. Parses the text on every call.
[[nodiscard]] PRECAST_API FileInfo file_info_of(const BetonReader& reader);
/// The name of each value of an int field; empty if none are stored.
[[nodiscard]] PRECAST_API std::vector<std::string> class_names_of(const BetonReader& reader,
                                                                  std::size_t field);

}  // namespace precast::data
