#include "framework/core/archive/manifest.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/utf8.h"

namespace precast {
namespace {

using nlohmann::json;

constexpr std::uint64_t kFormatVersion = 1;
constexpr std::size_t kMaxNameBytes = 200;
constexpr std::size_t kMaxKeyBytes = 32;
constexpr std::size_t kMaxShownBytes = 100;
/// The levels are the document, its list, and an entry of the list.
constexpr std::size_t kMaxDepth = 3;
/// Each entry counts as four values, a map and its three members; the document has a few more.
constexpr std::size_t kMaxValues = 4 * kMaxManifestFiles + 16;
constexpr std::size_t kReadBytes = 1U << 20U;

/// One value of the document. Messages show it as `text`.
struct Value {
  enum class Kind { integer, real, text, list, map, other };
  Kind kind;
  std::string text;
  std::uint64_t integer = 0;
  double real = 0;
};

/// Receives JSON as a stream of events and keeps each value under its path, such as
/// `files[2].size`. Parsing stops if the JSON is nested more deeply or has more values than any
/// valid manifest, so that a malicious file needs no more memory than a valid one. A repeated key
/// is rejected, because its path already has a value.
class FlatJson {
 public:
  std::map<std::string, Value> values;
  std::string problem;

  bool null() { return add({Value::Kind::other, "null"}); }
  bool boolean(bool value) { return add({Value::Kind::other, value ? "true" : "false"}); }
  bool binary(json::binary_t& /*value*/) { return add({Value::Kind::other, "binary data"}); }
  bool string(std::string& value) { return add({Value::Kind::text, value}); }
  bool number_integer(std::int64_t value) {
    return add({Value::Kind::other, fmt::format("{}", value)});
  }
  bool number_unsigned(std::uint64_t value) {
    return add({Value::Kind::integer, fmt::format("{}", value), value});
  }
  bool number_float(double value, const std::string& text) {
    return add({Value::Kind::real, text, 0, value});
  }
  bool start_object(std::size_t /*size*/) { return open(Value::Kind::map); }
  bool start_array(std::size_t /*size*/) { return open(Value::Kind::list); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    const bool plain = name.size() <= kMaxKeyBytes && std::ranges::all_of(name, [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
                       });
    if (!plain || name.empty()) {
      return fail(fmt::format("unexpected key '{}'", utf8_prefix(name, kMaxShownBytes)));
    }
    levels_.back().key = name;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception&) {
    problem = fmt::format("expected JSON, got a syntax error at byte {}", position);
    return false;
  }

 private:
  struct Level {
    std::string key_path;
    bool list;
    std::size_t items = 0;
    std::string key{};
  };

  bool fail(std::string what) {
    problem = std::move(what);
    return false;
  }

  std::string next_key_path() {
    if (levels_.empty()) return "";
    Level& level = levels_.back();
    if (level.list) return fmt::format("{}[{}]", level.key_path, level.items++);
    return level.key_path.empty() ? level.key : level.key_path + "." + level.key;
  }

  bool add(Value value) { return add_at(next_key_path(), std::move(value)); }

  bool add_at(const std::string& key_path, Value value) {
    if (values.size() == kMaxValues) {
      return fail(fmt::format("expected at most {} files, got more", kMaxManifestFiles));
    }
    const bool fresh = values.emplace(key_path, std::move(value)).second;
    return fresh || fail(fmt::format("{}: expected this key once, got it twice", key_path));
  }

  bool open(Value::Kind kind) {
    const char* what = kind == Value::Kind::list ? "a list" : "a map";
    std::string key_path = next_key_path();
    if (levels_.size() == kMaxDepth) {
      return fail(fmt::format("{}: expected a number or a string, got {}", key_path, what));
    }
    if (!add_at(key_path, {kind, what})) return false;
    levels_.push_back({std::move(key_path), kind == Value::Kind::list});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::vector<Level> levels_;
};

/// Removes values from the document and checks them. Values that remain at the end belong to
/// unknown keys.
class Fields {
 public:
  Fields(std::map<std::string, Value> values, const std::string& source)
      : values_(std::move(values)), source_(source) {}

  [[nodiscard]] bool has(const std::string& key_path) const { return values_.contains(key_path); }

  Value take(const std::string& key_path, Value::Kind kind, std::string_view expected) {
    const auto found = values_.find(key_path);
    if (found == values_.end()) fail(key_path, expected, "no value");
    if (found->second.kind != kind) fail(key_path, expected, found->second.text);
    return std::move(values_.extract(found).mapped());
  }

  std::uint64_t number(const std::string& key_path, std::uint64_t max) {
    const std::string expected = fmt::format("a whole number from 0 to {}", max);
    const Value value = take(key_path, Value::Kind::integer, expected);
    if (value.integer > max) fail(key_path, expected, value.text);
    return value.integer;
  }

  std::uint64_t digest(const std::string& key_path) {
    constexpr std::string_view kExpected = "16 hexadecimal digits (0-9, a-f)";
    const std::string text = take(key_path, Value::Kind::text, kExpected).text;
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (text != fmt::format("{:016x}", value)) fail(key_path, kExpected, text);
    return value;
  }

  void check_empty() const {
    if (!values_.empty()) fail(values_.begin()->first, "a known key", "an unknown key");
  }

  [[noreturn]] void fail(std::string_view key_path, std::string_view expected,
                         std::string_view found) const {
    throw CheckpointError(fmt::format("{}: {}{}expected {}, got {}", source_, key_path,
                                      key_path.empty() ? "" : ": ", expected,
                                      utf8_prefix(found, kMaxShownBytes)));
  }

 private:
  std::map<std::string, Value> values_;
  const std::string& source_;
};

ManifestFile take_file(Fields& fields, const std::string& key_path) {
  fields.take(key_path, Value::Kind::map, "a map");
  ManifestFile file;
  constexpr std::string_view kExpected = "the name of a file in this folder";
  file.name = fields.take(key_path + ".name", Value::Kind::text, kExpected).text;
  if (!is_manifest_file_name(file.name)) fields.fail(key_path + ".name", kExpected, file.name);
  file.size_bytes = fields.number(key_path + ".size", INT64_MAX);
  file.xxh3_64 = fields.digest(key_path + ".xxh3_64");
  return file;
}

/// All of the manifest except the digest.
nlohmann::ordered_json body(const Manifest& manifest) {
  nlohmann::ordered_json document;
  document["version"] = kFormatVersion;
  document["step"] = manifest.step;
  if (manifest.metric) document["metric"] = *manifest.metric;
  document["files"] = json::array();
  for (const ManifestFile& file : manifest.files) {
    document["files"].push_back({{"name", file.name},
                                 {"size", file.size_bytes},
                                 {"xxh3_64", fmt::format("{:016x}", file.xxh3_64)}});
  }
  return document;
}

/// The digest of the values, not of the bytes of the file, so that spaces do not matter.
std::uint64_t digest(const nlohmann::ordered_json& body) {
  const std::string text = body.dump();
  return XXH3_64bits(text.data(), text.size());
}

std::vector<ManifestFile> take_files(Fields& fields) {
  fields.take("files", Value::Kind::list, "a list");
  std::vector<ManifestFile> files;
  std::set<std::string> names;
  for (std::string key_path = "files[0]"; fields.has(key_path);
       key_path = fmt::format("files[{}]", files.size())) {
    files.push_back(take_file(fields, key_path));
    const std::string& name = files.back().name;
    if (!names.insert(name).second)
      fields.fail(key_path + ".name", "each name once", name + " again");
  }
  if (files.size() > kMaxManifestFiles) {
    fields.fail("files", fmt::format("at most {}", kMaxManifestFiles),
                fmt::format("{}", files.size()));
  }
  return files;
}

}  // namespace

bool is_manifest_file_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name.front() != '.' &&
         name != kManifestName && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

std::string manifest_text(const Manifest& manifest) {
  require(manifest.step >= 0, "a step is not negative");
  require(!manifest.metric || std::isfinite(*manifest.metric), "a metric is finite");
  require(manifest.files.size() <= kMaxManifestFiles,
          "a checkpoint has at most kMaxManifestFiles files");
  std::set<std::string_view> names;
  for (const ManifestFile& file : manifest.files) {
    require(is_manifest_file_name(file.name), "a checkpoint's files have plain names");
    require(names.insert(file.name).second, "a checkpoint's files have different names");
  }
  nlohmann::ordered_json document = body(manifest);
  document["xxh3_64"] = fmt::format("{:016x}", digest(document));
  std::string text = document.dump(1);
  require(text.size() <= kMaxManifestBytes, "a manifest has at most kMaxManifestBytes bytes");
  return text + '\n';
}

Manifest parse_manifest(std::span<const std::byte> text, const std::string& source) {
  if (text.size() > kMaxManifestBytes) {
    throw CheckpointError(fmt::format("{}: expected at most {} bytes, got {}", source,
                                      kMaxManifestBytes, text.size()));
  }
  FlatJson document;
  const auto* begin = reinterpret_cast<const char*>(text.data());
  if (!json::sax_parse(begin, begin + text.size(), &document)) {
    throw CheckpointError(fmt::format("{}: {}", source, document.problem));
  }
  Fields fields(std::move(document.values), source);
  fields.take("", Value::Kind::map, "a map");
  const std::string version = fmt::format("format version {}", kFormatVersion);
  const Value found = fields.take("version", Value::Kind::integer, version);
  if (found.integer != kFormatVersion) fields.fail("version", version, found.text);

  Manifest manifest;
  manifest.step = static_cast<std::int64_t>(fields.number("step", INT64_MAX));
  if (fields.has("metric")) {
    manifest.metric =
        fields.take("metric", Value::Kind::real, "a number with a decimal point").real;
  }
  manifest.files = take_files(fields);
  const std::uint64_t stored = fields.digest("xxh3_64");
  fields.check_empty();
  const std::uint64_t computed = digest(body(manifest));
  if (stored != computed) {
    fields.fail("xxh3_64", fmt::format("{:016x}", computed),
                fmt::format("{:016x}. The manifest is damaged", stored));
  }
  return manifest;
}

ManifestFile describe_file(const std::string& name, std::span<const std::byte> bytes) {
  return {name, bytes.size(), XXH3_64bits(bytes.data(), bytes.size())};
}

ManifestFile describe_file(const std::filesystem::path& folder, const std::string& name) {
  const std::string path = (folder / name).string();
  // Reads the file instead of mapping it, so that a disk error is an IoError and not a signal.
  struct stat status {};
  const int fd = open_regular(path, status);
  const std::unique_ptr<const int, void (*)(const int*)> closer(
      &fd, [](const int* opened) { ::close(*opened); });
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  ManifestFile file{name, 0, 0};
  std::vector<std::byte> piece(kReadBytes);
  for (;;) {
    const ssize_t size = ::read(fd, piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw IoError("cannot read", path, errno);
    if (size == 0) break;
    XXH3_64bits_update(state.get(), piece.data(), static_cast<std::size_t>(size));
    file.size_bytes += static_cast<std::uint64_t>(size);
  }
  file.xxh3_64 = XXH3_64bits_digest(state.get());
  return file;
}

}  // namespace precast
