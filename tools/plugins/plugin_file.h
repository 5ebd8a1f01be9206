#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "data/plugin.h"

namespace precast::tools {

enum class PluginKind { train, data };

/// A plug-in file: the constructor reads it completely and compares its text
/// (framework/core/plugin.h) with that of this program. No code of it runs before open(), not even
/// its static initialisers.
class PluginFile {
 public:
  /// @throws ConfigError if the file is missing or not a plug-in; DeviceError if it was built for a
  /// different interface, version of precast or compiler.
  explicit PluginFile(std::filesystem::path path);

  [[nodiscard]] PluginKind kind() const { return kind_; }
  /// Absolute.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The XXH3 hash of its bytes, in hexadecimal.
  [[nodiscard]] const std::string& digest() const { return digest_; }
  /// @throws DeviceError if it was built for a libtorch other than this one.
  void expect_torch(std::string_view version) const;

  /// Loads the library, which then stays loaded until the process ends, and lets it fill `parts`: a
  /// TrainParts or a data::DataParts, by its kind.
  /// @throws DeviceError if it cannot be loaded (a missing symbol or library); ConfigError if the
  /// plug-in's function throws
  void add_parts(void* parts) const;

 private:
  [[nodiscard]] std::string value(std::string_view key) const;
  void expect(std::string_view key, std::string_view what, std::string_view here) const;

  std::filesystem::path path_;
  std::string digest_;
  /// The lines of its text after the first one.
  std::string text_;
  PluginKind kind_;
};

}  // namespace precast::tools
