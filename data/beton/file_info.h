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

/// Information about a .beton file, stored in it as JSON next to the checksums (sums.h).
struct FileInfo {
  /// The names of the values 0, 1, 2 ... of int fields, by field name.
  std::map<std::string, std::vector<std::string>> classes;
  /// How the file was written: the program's version and the options of its command, by name.
  std::map<std::string, std::string> written;
};

/// The maximum size of the text in bytes, far more than the class names of any dataset need. It
/// limits the memory that a damaged file can occupy.
inline constexpr std::size_t kMaxInfoBytes = std::size_t{64} << 20;

/// Returns `{"classes": {"label": [...]}, "written": {...}}`; bytes of `written` that are not UTF-8
/// are replaced. @throws DataError for a class name that is not UTF-8; ConfigError for a text of
/// more than `max_bytes`.
[[nodiscard]] PRECAST_API std::string file_info_text(const FileInfo& info,
                                                     std::size_t max_bytes = kMaxInfoBytes);
/// Reads what file_info_text() writes and ignores everything else. Never throws; returns an empty
/// FileInfo for a text of more than kMaxInfoBytes.
[[nodiscard]] PRECAST_API FileInfo parse_file_info(std::string_view text);

/// The result of comparing the class names of several files.
struct CommonNames {
  /// The longest of the files' lists of names, if every file has names and each list is a prefix of
  /// the longest; otherwise empty.
  std::vector<std::string> names;
  /// Index of a file without names, if another file has names.
  std::optional<std::size_t> nameless;
  /// The indices of two files, and a label that has different names in them.
  struct Conflict {
    std::size_t file = 0;
    std::size_t other = 0;
    std::size_t label = 0;
  };
  std::optional<Conflict> conflict;
};

/// Compares the class names of one int field in several files. @param files the class names of each
/// file, indexed by label; at least one file.
[[nodiscard]] PRECAST_API CommonNames common_names(std::span<const std::vector<std::string>> files);

/// The FileInfo stored in a file; empty if the file has no checksums. For several files: only class
/// names, for each field those that common_names() returns. Parses the text on every call.
[[nodiscard]] PRECAST_API FileInfo file_info_of(const BetonReader& reader);
/// The name of each value of an int field; empty if none are stored.
[[nodiscard]] PRECAST_API std::vector<std::string> class_names_of(const BetonReader& reader,
                                                                  std::size_t field);

}  // namespace precast::data
