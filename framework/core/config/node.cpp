#include "framework/core/config/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/utf8.h"

namespace precast {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::uint64_t kMaxFileBytes = 4U << 20;
constexpr std::size_t kMaxShownBytes = 60;

/// The position of the first byte that is not part of well-formed UTF-8 (Unicode 15, table 3-7), or
/// text.size() if there is none.
std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto byte = [&](std::size_t offset) -> unsigned {
      return at + offset < text.size() ? static_cast<unsigned char>(text[at + offset]) : 0U;
    };
    const unsigned lead = byte(0);
    std::size_t size = 1;
    if (lead >= 0x80) {
      if (lead < 0xC2 || lead > 0xF4) return at;
      size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
      // No overlong forms, no surrogates, nothing above U+10FFFF.
      const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
      const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
      if (byte(1) < low || byte(1) > high) return at;
      for (std::size_t i = 2; i < size; ++i) {
        if (!continues_character(static_cast<char>(byte(i)))) return at;
      }
    }
    at += size;
  }
  return at;
}

/// Used to inspect a source before a tree is built from it (has_second_document()): rejects sources
/// with too many nodes, and stores the start of the last document. YAML::LoadAll is not used,
/// because it never returns for a source that starts with a comma.
class NodeCounter final : public YAML::EventHandler {
 public:
  explicit NodeCounter(std::size_t max_values) : max_values_(max_values) {}

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { count(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { count(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string&) override {
    count(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    count(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    count(mark);
  }
  void OnMapEnd() override {}

  /// The start of the last document that was parsed.
  [[nodiscard]] const YAML::Mark& start() const { return start_; }

 private:
  void count(const YAML::Mark& mark) {
    // The limit is twice the number of values, because keys are counted too.
    if (++nodes_ > 2 * max_values_) {
      throw YAML::ParserException(
          mark, fmt::format("expected at most {} keys and values, got more", 2 * max_values_));
    }
  }

  const std::size_t max_values_;
  YAML::Mark start_;
  std::size_t nodes_ = 0;
};

/// Copies yaml-cpp's tree into ours. yaml-cpp shares aliased nodes, so a small file can describe a
/// huge tree: the walk stops at `max_values`.
class Importer {
 public:
  Importer(std::string source, Diagnostics& diagnostics, std::size_t max_values)
      : source_(std::move(source)), diagnostics_(diagnostics), max_values_(max_values) {}

  /// @param path the keys that lead to this node, such as `data.order`.
  ConfigNode import(const YAML::Node& yaml, const std::string& path = {}, int depth = 0) {
    ConfigNode node;
    node.origin = origin(yaml.Mark());
    if (depth > kMaxDepth || ++count_ > max_values_) {
      if (!too_large_)
        diagnostics_.error(node.origin, "",
                           fmt::format("expected at most {} values, nested at most {} deep (each "
                                       "use of an alias counts), got more",
                                       max_values_, kMaxDepth));
      too_large_ = true;
      return node;
    }
    if (yaml.IsScalar()) {
      node.kind = ConfigNode::Kind::scalar;
      node.scalar = checked(yaml);
    } else if (yaml.IsSequence()) {
      node.kind = ConfigNode::Kind::list;
      for (const YAML::Node& item : yaml) {
        if (too_large_) break;
        node.items.push_back(import(item, path, depth + 1));
      }
    } else if (yaml.IsMap()) {
      import_map(yaml, node, path, depth);
    }
    return node;
  }

  [[nodiscard]] Origin origin(const YAML::Mark& mark) const {
    if (mark.is_null()) return {source_, 0, 0};
    return {source_, mark.line + 1, mark.column + 1};
  }

 private:
  /// Checks a scalar again: the file was UTF-8, but yaml-cpp 0.7 turns the escapes `\N` and `\_`
  /// into one byte each, which is not UTF-8.
  std::string checked(const YAML::Node& scalar) {
    const std::string& text = scalar.Scalar();
    if (first_invalid_utf8(text) == text.size()) return text;
    diagnostics_.error(
        origin(scalar.Mark()), "",
        "the escapes \\N and \\_ are not supported. Write the characters themselves");
    return "";
  }

  void import_map(const YAML::Node& yaml, ConfigNode& node, const std::string& path, int depth) {
    node.kind = ConfigNode::Kind::map;
    std::unordered_map<std::string, int> lines;
    for (const auto& pair : yaml) {
      if (too_large_) break;
      const Origin key_origin = origin(pair.first.Mark());
      if (!pair.first.IsScalar()) {
        diagnostics_.error(key_origin, "", "expected a name as key, got a list or a map");
        continue;
      }
      const std::string key = checked(pair.first);
      const std::string full_key = path.empty() ? key : path + "." + key;
      const auto [first, added] = lines.emplace(key, key_origin.line);
      if (added) {
        node.entries.push_back({key, key_origin, import(pair.second, full_key, depth + 1)});
      } else {
        diagnostics_.error(key_origin, full_key,
                           fmt::format("duplicate key, first given on line {}", first->second));
      }
    }
  }

  std::string source_;
  Diagnostics& diagnostics_;
  const std::size_t max_values_;
  std::size_t count_ = 0;
  bool too_large_ = false;
};

/// Parses the text once without building a tree; this finds most errors. @return whether a second
/// document follows the first; `counter` then has its position. @throws YAML::Exception
bool has_second_document(const std::string& text, NodeCounter& counter) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  return parser.HandleNextDocument(counter) && parser.HandleNextDocument(counter);
}

/// Checks that the text is UTF-8, because its keys and values are later stored as JSON, which must
/// be UTF-8.
/// @return false after reporting an error at the first wrong byte.
bool check_utf8(std::string_view text, Origin origin, Diagnostics& diagnostics) {
  const std::size_t wrong = first_invalid_utf8(text);
  if (wrong == text.size()) return true;
  if (origin.line > 0) {
    const std::string_view before = text.substr(0, wrong);
    const auto lines = std::ranges::count(before, '\n');
    const std::size_t line_start = before.rfind('\n') + 1;
    origin.line += static_cast<int>(lines);
    origin.column = static_cast<int>(wrong - line_start) + 1;
  }
  diagnostics.error(origin, "",
                    fmt::format("expected UTF-8 text, got the byte 0x{:02x}",
                                static_cast<unsigned char>(text[wrong])));
  return false;
}

bool plain(const std::string& scalar) {
  return !scalar.empty() && scalar.find_first_of("\"'\\:{}[],#&*!|>%@` \n\t") == std::string::npos;
}

}  // namespace

std::string Origin::text() const {
  return line == 0 ? source : fmt::format("{}:{}:{}", source, line, column);
}

ConfigNode ConfigNode::from_text(std::string text, Origin origin) {
  return {.kind = Kind::scalar,
          .scalar = std::move(text),
          .items = {},
          .entries = {},
          .origin = std::move(origin)};
}

const ConfigNode* ConfigNode::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string ConfigNode::flow() const {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::scalar:
      return plain(scalar) ? scalar : fmt::format("{:?}", scalar);
    case Kind::list: {
      std::vector<std::string> parts;
      for (const ConfigNode& item : items) parts.push_back(item.flow());
      return fmt::format("[{}]", fmt::join(parts, ", "));
    }
    case Kind::map: {
      std::vector<std::string> parts;
      for (const Entry& entry : entries) parts.push_back(entry.key + ": " + entry.value.flow());
      return fmt::format("{{{}}}", fmt::join(parts, ", "));
    }
  }
  return "";
}

std::string ConfigNode::text() const {
  if (kind == Kind::null) return "nothing";
  std::string result = kind == Kind::scalar ? fmt::format("'{}'", scalar) : flow();
  if (result.size() <= kMaxShownBytes) return result;
  return fmt::format("{}...", utf8_prefix(result, kMaxShownBytes));
}

ConfigErrors::~ConfigErrors() = default;

void Diagnostics::error(const Origin& origin, std::string_view key, std::string_view message) {
  errors_.push_back(
      fmt::format("{}: {}{}{}", origin.text(), key, key.empty() ? "" : ": ", message));
}

void Diagnostics::error(const Origin& origin, std::string_view key, const ConfigError& error) {
  if (dynamic_cast<const ConfigErrors*>(&error) != nullptr) {
    errors_.emplace_back(error.what());
  } else {
    this->error(origin, key, error.what());
  }
}

void Diagnostics::warning(const Origin& origin, std::string_view key, std::string_view message) {
  warnings_.push_back(
      fmt::format("{}: {}{}{}", origin.text(), key, key.empty() ? "" : ": ", message));
}

void Diagnostics::unread(const Origin& origin, std::string_view key, std::string_view reason) {
  warning(origin, key, reason);
  unread_keys_.push_back({std::string(key), origin, std::string(reason)});
}

void Diagnostics::ignored(const Origin& origin, std::string_view key, std::string_view reason) {
  warning(origin, key, reason);
  ignored_keys_.push_back({std::string(key), origin, std::string(reason)});
}

void Diagnostics::throw_if_errors() const {
  if (!errors_.empty()) throw ConfigErrors(fmt::format("{}", fmt::join(errors_, "\n")));
}

ConfigNode parse_yaml(const std::string& text, const std::string& source, Diagnostics& diagnostics,
                      std::size_t max_values) {
  Importer importer(source, diagnostics, max_values);
  ConfigNode top;
  top.kind = ConfigNode::Kind::map;
  top.origin = {source, 1, 1};
  if (!check_utf8(text, top.origin, diagnostics)) return top;
  try {
    NodeCounter counter(max_values);
    if (has_second_document(text, counter)) {
      diagnostics.error(importer.origin(counter.start()), "",
                        "expected one YAML document, got several");
      return top;
    }
    const YAML::Node document = YAML::Load(text);
    if (document.IsNull()) return top;
    if (!document.IsMap()) {
      diagnostics.error(importer.origin(document.Mark()), "",
                        "expected a map of sections (`data:`, `training:` ...), got a list or a "
                        "single value");
      return top;
    }
    return importer.import(document);
  } catch (const YAML::Exception& error) {
    diagnostics.error(importer.origin(error.mark), "", "not valid YAML: " + error.msg);
  }
  return top;
}

ConfigNode parse_yaml_file(const std::filesystem::path& path, Diagnostics& diagnostics) {
  const std::vector<std::byte> bytes = read_file(path, kMaxFileBytes);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return parse_yaml(text, path.string(), diagnostics);
}

ConfigNode parse_override(const std::string& value, const Origin& origin,
                          Diagnostics& diagnostics) {
  ConfigNode node;
  node.origin = origin;
  if (!check_utf8(value, origin, diagnostics)) return node;
  const bool structured = value.starts_with('[') || value.starts_with('{');
  if (!structured) return ConfigNode::from_text(value, origin);
  try {
    NodeCounter counter(kMaxConfigValues);
    if (has_second_document(value, counter)) {
      diagnostics.error(origin, "", fmt::format("expected one list or map, got '{}'", value));
      return node;
    }
    node = Importer(origin.source, diagnostics, kMaxConfigValues).import(YAML::Load(value));
    node.origin = origin;
  } catch (const YAML::Exception& error) {
    diagnostics.error(origin, "", fmt::format("'{}' is not valid YAML: {}", value, error.msg));
  }
  return node;
}

}  // namespace precast
