#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/export.h"

namespace precast {

/// The position at which a configuration value was written, for messages.
struct PRECAST_API Origin {
  /// A file, or "command line".
  std::string source;
  /// Counted from 1; 0 if there is no line or column.
  int line = 0;
  int column = 0;

  /// `recipe.yaml:14:9`, `command line`.
  [[nodiscard]] std::string text() const;
};

/// One value of a recipe: a scalar as it was written, a list, or a map. Only node.cpp uses the YAML
/// library.
struct PRECAST_API ConfigNode {
  enum class Kind { null, scalar, list, map };
  struct Entry;

  Kind kind = Kind::null;
  std::string scalar;
  std::vector<ConfigNode> items;
  std::vector<Entry> entries;
  Origin origin;

  /// A scalar with this text.
  [[nodiscard]] static ConfigNode from_text(std::string text, Origin origin = {});
  /// The value of the entry with this key, or null.
  [[nodiscard]] const ConfigNode* find(std::string_view key) const;
  /// The value on one line, for messages: a scalar in quotes, a list or a map in YAML's flow style,
  /// or `nothing`; truncated to 60 bytes.
  [[nodiscard]] std::string text() const;
  /// The value in YAML's flow style, not truncated.
  [[nodiscard]] std::string flow() const;
};

struct ConfigNode::Entry {
  std::string key;
  Origin key_origin;
  ConfigNode value;
};

/// A key that was given but has no effect.
struct UnreadKey {
  std::string key;
  Origin origin;
  /// `it has no effect with ...`
  std::string reason;
};

/// The errors that Diagnostics collected: one per line, each with its position.
class PRECAST_API ConfigErrors : public ConfigError {
 public:
  using ConfigError::ConfigError;
  ~ConfigErrors() override;
};

/// Collects the errors and warnings about a configuration, so that a user sees all of them
/// together. Not thread-safe.
class PRECAST_API Diagnostics {
 public:
  /// `file:line:col: key: message`.
  void error(const Origin& origin, std::string_view key, std::string_view message);
  /// Adds `error`, which was thrown while something that `origin` and `key` name was checked. They
  /// are left out if `error` already names positions (ConfigErrors).
  void error(const Origin& origin, std::string_view key, const ConfigError& error);
  void warning(const Origin& origin, std::string_view key, std::string_view message);
  /// Warns about a key that has no effect and should be removed; see unread_keys().
  void unread(const Origin& origin, std::string_view key, std::string_view reason);
  /// Warns about a key that has no effect in this run but is not a mistake, such as a key of old
  /// files; see ignored_keys().
  void ignored(const Origin& origin, std::string_view key, std::string_view reason);

  [[nodiscard]] const std::vector<std::string>& errors() const { return errors_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  [[nodiscard]] const std::vector<UnreadKey>& unread_keys() const { return unread_keys_; }
  [[nodiscard]] const std::vector<UnreadKey>& ignored_keys() const { return ignored_keys_; }
  /// @throws ConfigErrors with one line per error, in the order they were found.
  void throw_if_errors() const;

 private:
  std::vector<std::string> errors_;
  std::vector<std::string> warnings_;
  std::vector<UnreadKey> unread_keys_;
  std::vector<UnreadKey> ignored_keys_;
};

/// The default limit of parse_yaml(): far more values than any recipe has.
inline constexpr std::size_t kMaxConfigValues = 100'000;

/// Parses one YAML document whose top level is a map (an empty document is an empty map). Duplicate
/// keys, several documents, keys that are lists or maps, excessive nesting or aliasing, and bytes
/// that are not UTF-8 are errors.
/// @param source the name shown in messages. @param max_values the largest number of values; each
/// use of an alias counts.
[[nodiscard]] PRECAST_API ConfigNode parse_yaml(const std::string& text, const std::string& source,
                                                Diagnostics& diagnostics,
                                                std::size_t max_values = kMaxConfigValues);
/// Like parse_yaml(), for a file. @throws IoError if it cannot be read or is larger than 4 MiB.
[[nodiscard]] PRECAST_API ConfigNode parse_yaml_file(const std::filesystem::path& path,
                                                     Diagnostics& diagnostics);
/// Parses the value of a command-line override: `0.5`, `sgd`, `[1, 2]`, `{a: 1}`. It must also be
/// UTF-8.
[[nodiscard]] PRECAST_API ConfigNode parse_override(const std::string& value, const Origin& origin,
                                                    Diagnostics& diagnostics);

}  // namespace precast
