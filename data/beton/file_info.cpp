#include "data/beton/file_info.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/beton/json_text.h"
#include "data/beton/reader.h"
#include "framework/core/dump_json.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

using Json = nlohmann::ordered_json;

/// The member of that name if it is an object, otherwise an empty object.
const Json& child_object(const Json& parent, const char* name) {
  static const Json kNone = Json::object();
  const bool there = parent.is_object() && parent.contains(name) && parent[name].is_object();
  return there ? parent[name] : kNone;
}

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& text : list) {
    if (!text.is_string()) return {};
    texts.push_back(text);
  }
  return texts;
}

/// Quotes `text` for bash and zsh: `$'caf\xe9'`.
std::string escaped(std::string_view text) {
  std::string quoted = "$'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    if (c >= ' ' && c <= '~')
      quoted += c;
    else
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return quoted + "'";
}

/// @throws DataError for a name that is not UTF-8. If invalid bytes were replaced, different names
/// could become equal.
void check_utf8(const std::string& field, const std::vector<std::string>& names) {
  for (std::size_t label = 0; label < names.size(); ++label) {
    try {
      (void)Json(names[label]).dump();
    } catch (const Json::type_error&) {
      const std::string name = escaped(names[label]);
      throw DataError(fmt::format(
          "class names: expected UTF-8, got {} (label {} of '{}'). Rename the folder (mv {} NAME), "
          "or convert the file that contains the name (such as iconv -f GBK -t UTF-8)",
          name, label, field, name));
    }
  }
}

}  // namespace

std::string file_info_text(const FileInfo& info, std::size_t max_bytes) {
  for (const auto& [field, names] : info.classes) check_utf8(field, names);
  const Json json = {{"classes", info.classes}, {"written", info.written}};
  std::string text = dump_json(json);
  if (text.size() > max_bytes) {
    throw ConfigError(
        fmt::format("class names: expected at most {} bytes, including the options of the command "
                    "that are stored with them, got {}. Shorten the names or leave them out",
                    max_bytes, text.size()));
  }
  return text;
}

FileInfo parse_file_info(std::string_view text) {
  FileInfo info;
  if (text.size() > kMaxInfoBytes) return info;
  const Json json = parse_json_within_limits(text);
  const Json& classes = child_object(json, "classes");
  for (const auto& [field, names] : classes.items()) {
    if (names.is_array()) info.classes[field] = texts_of(names);
  }
  const Json& written = child_object(json, "written");
  for (const auto& [option, value] : written.items()) {
    if (value.is_string()) info.written[option] = value;
  }
  return info;
}

CommonNames common_names(std::span<const std::vector<std::string>> files) {
  using Names = std::vector<std::string>;
  const auto longest = std::ranges::max_element(files, {}, &Names::size);
  const auto nameless = std::ranges::find_if(files, &Names::empty);
  CommonNames common;
  if (nameless != files.end()) {
    if (!longest->empty()) common.nameless = nameless - files.begin();
    return common;
  }
  for (std::size_t file = 0; file < files.size(); ++file) {
    const auto [own, theirs] = std::ranges::mismatch(files[file], *longest);
    if (own == files[file].end()) continue;
    common.conflict = {static_cast<std::size_t>(longest - files.begin()), file,
                       static_cast<std::size_t>(own - files[file].begin())};
    return common;
  }
  common.names = *longest;
  return common;
}

FileInfo file_info_of(const BetonReader& reader) {
  if (reader.num_files() == 1) return parse_file_info(reader.sums().info());
  std::vector<FileInfo> infos;
  for (const BetonReader& file : reader.files()) infos.push_back(file_info_of(file));
  FileInfo common;
  for (const auto& [field, first] : infos.front().classes) {
    std::vector<std::vector<std::string>> names;
    for (FileInfo& info : infos) names.push_back(info.classes[field]);
    if (auto same = common_names(names).names; !same.empty())
      common.classes[field] = std::move(same);
  }
  return common;
}

std::vector<std::string> class_names_of(const BetonReader& reader, std::size_t field) {
  require(field < reader.fields().size(), "the field exists");
  return file_info_of(reader).classes[reader.fields()[field].name];
}

}  // namespace precast::data
