#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "data/sources/source.h"
#include "framework/core/export.h"

namespace precast::data {

/// One form of dataset that can be read.
struct SourceKind {
  std::string_view name;
  std::string_view help;
  /// Tells from names and first bytes whether `path` has this form.
  bool (*recognizes)(const std::filesystem::path& path);
  /// @throws ConfigError for options that say nothing to this kind.
  std::unique_ptr<Source> (*open)(const std::filesystem::path& path, const SourceOptions& options);
};

/// All of them, in the order in which they are asked. To add one: a file pair and a line here.
[[nodiscard]] PRECAST_API std::span<const SourceKind> source_kinds();

/// @param path where no file has this name, braces in it stand for a list of WebDataset shards
/// (expand_braces): `shards/{000..127}.tar`.
/// @param kind a name of source_kinds(), or `auto`. @throws ConfigError for an unknown kind;
/// IoError for a missing path; DataError listing the kinds if none fits.
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_source(const std::filesystem::path& path,
                                                              std::string_view kind = "auto",
                                                              const SourceOptions& options = {});

}  // namespace precast::data
