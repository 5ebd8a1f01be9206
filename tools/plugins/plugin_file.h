#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "data/plugin.h"

namespace precast::tools {

/// Computes PluginFile::digest() of any file. @throws IoError
[[nodiscard]] std::string plugin_digest(const std::filesystem::path& path);

enum class PluginKind { train, data };

/// A plug-in file. The constructor reads the file and compares the string that describes how it was
/// compiled (framework/core/plugin.h) with the string of this program. No code of the plug-in runs
/// before add_parts(), not even its static initialisers.
class PluginFile {
 public:
  /// @throws ConfigError if the file is missing or not a plug-in; DeviceError if it was built for a
  /// different interface, version of precast or compiler.
  explicit PluginFile(std::filesystem::path path);

  [[nodiscard]] PluginKind kind() const { return kind_; }
  /// The absolute path.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The XXH3 hash of the file's bytes, in hexadecimal.
  [[nodiscard]] const std::string& digest() const { return digest_; }
  /// @throws DeviceError if the plug-in was built for another version of libtorch.
  void expect_torch(std::string_view version) const;

  /// Loads the library, which then stays loaded until the process ends, and lets it fill `parts`: a
  /// TrainParts or a data::DataParts, depending on kind().
  /// @throws DeviceError if it cannot be loaded (a missing symbol or library); ConfigError if the
  /// plug-in's registration function throws
  void add_parts(void* parts) const;

 private:
  [[nodiscard]] std::string value(std::string_view key) const;
  void expect(std::string_view key, std::string_view what, std::string_view here) const;

  std::filesystem::path path_;
  std::string digest_;
  /// The description of how the plug-in was compiled: lines of the form `key value`.
  std::string text_;
  PluginKind kind_;
};

}  // namespace precast::tools
