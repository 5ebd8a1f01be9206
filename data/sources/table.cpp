#include "data/sources/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "data/beton/format.h"
#include "data/beton/json_text.h"
#include "data/sources/class_files.h"
#include "data/sources/delimited.h"
#include "data/sources/image_file.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::data {
namespace {

namespace fs = std::filesystem;

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [stopped, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failed != std::errc() || stopped != text.data() + text.size())
    return std::nullopt;
  return number;
}

/// Whether a cell is a whole number that a float has no place for. A column of these is kept as
/// texts.
bool would_round(const std::string& cell) {
  if (cell.find_first_not_of("0123456789", cell.starts_with('-') ? 1 : 0) != std::string::npos)
    return false;
  constexpr std::int64_t kLargestExact = std::int64_t{1} << 53;
  const auto number = parse_number<std::int64_t>(cell);
  return !number || *number > kLargestExact || *number < -kLargestExact;
}

/// A list as columns of texts.
struct Table {
  std::vector<std::string> names;
  /// [row][column]
  std::vector<std::vector<std::string>> rows;
  /// Columns whose texts are JSON documents.
  std::vector<bool> json;
};

std::string_view text_of(const MappedFile& file) {
  std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

Table read_delimited(const fs::path& path, char delimiter) {
  const MappedFile file(path);
  Table table{{}, parse_delimited(text_of(file), delimiter, path.string()), {}};
  if (table.rows.empty())
    throw DataError(fmt::format("{}: expected a line of column names, got nothing", path.string()));
  table.names = std::move(table.rows.front());
  table.rows.erase(table.rows.begin());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (table.rows[row].size() == table.names.size()) continue;
    throw DataError(fmt::format("{}: row {}: expected {} cells, got {}", path.string(), row + 1,
                                table.names.size(), table.rows[row].size()));
  }
  table.json.assign(table.names.size(), false);
  return table;
}

/// @throws DataError unless the object has these keys and no others.
void check_keys(const nlohmann::json& object, const std::vector<std::string>& names,
                const std::string& place) {
  const auto refuse = [&](std::string_view got, const std::string& name) {
    throw DataError(fmt::format("{}: expected the {} keys of the first line, got {} '{}'", place,
                                names.size(), got, name));
  };
  for (const std::string& name : names)
    if (!object.contains(name)) refuse("none called", name);
  for (const auto& [name, value] : object.items())
    if (std::ranges::find(names, name) == names.end()) refuse("another one,", name);
}

Table read_json_lines(const fs::path& path) {
  const MappedFile file(path);
  std::string_view text = text_of(file);
  Table table;
  /// [row][column]: cells that are strings, which in a column of documents are documents, too.
  std::vector<std::vector<bool>> texts;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view one = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto parsed = parse_json_within_limits(one);
    if (!parsed.is_object()) {
      throw DataError(
          fmt::format("{}: line {}: expected a JSON object, nested at most {} deep, with whole "
                      "numbers of at most 64 bits",
                      path.string(), line, kMaxJsonDepth));
    }
    if (table.rows.empty()) {
      for (const auto& [name, value] : parsed.items()) table.names.push_back(name);
      table.json.assign(table.names.size(), false);
    }
    std::vector<std::string>& row = table.rows.emplace_back();
    std::vector<bool>& quoted = texts.emplace_back();
    check_keys(parsed, table.names, fmt::format("{}: line {}", path.string(), line));
    for (std::size_t i = 0; i < table.names.size(); ++i) {
      const auto& value = parsed[table.names[i]];
      if (value.is_structured() || value.is_null()) table.json[i] = true;
      row.push_back(value.is_string() ? value.get<std::string>() : value.dump());
      quoted.push_back(value.is_string());
    }
  }
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    for (std::size_t column = 0; column < table.names.size(); ++column)
      if (table.json[column] && texts[i][column])
        table.rows[i][column] = nlohmann::json(table.rows[i][column]).dump();
  return table;
}

class TableSource final : public Source {
 public:
  TableSource(const fs::path& path, Table table) : path_(path), table_(std::move(table)) {
    if (table_.rows.empty())
      throw DataError(fmt::format("{}: expected samples, got none", path.string()));
    fields_.clear();
    for (std::size_t i = 0; i < table_.names.size(); ++i)
      fields_.push_back({name_of(i), kind_of(i)});
  }

  [[nodiscard]] std::uint64_t size() const override { return table_.rows.size(); }

  [[nodiscard]] Sample sample(std::uint64_t i) const override {
    Sample sample{fmt::format("{}: row {}", path_.string(), i + 1), {}};
    for (std::size_t field = 0; field < fields_.size(); ++field)
      sample.values.push_back(value_of(fields_[field].type, table_.rows[i][field]));
    return sample;
  }

 private:
  /// What a field is called after a column. @throws DataError if another is called so.
  [[nodiscard]] std::string name_of(std::size_t column) {
    const std::string& name = table_.names[column];
    const std::string cut = name.substr(0, kFieldNameBytes);
    if (cut.size() < name.size()) ++notes_["cut_column_names"];
    const auto same = std::ranges::find(fields_, cut, &SourceField::name);
    if (same == fields_.end()) return cut;
    throw DataError(
        fmt::format("{}: expected column names whose first {} bytes differ, got '{}' and '{}'. "
                    "Rename one of them",
                    path_.string(), kFieldNameBytes,
                    table_.names[static_cast<std::size_t>(same - fields_.begin())], name));
  }
  [[nodiscard]] std::string kind_of(std::size_t column) const {
    if (table_.json[column]) return "json";
    const auto all = [&](auto holds) {
      return std::ranges::all_of(table_.rows, [&](const auto& row) { return holds(row[column]); });
    };
    if (all([](const std::string& cell) { return parse_number<std::int64_t>(cell).has_value(); }))
      return "int";
    if (all([](const std::string& cell) {
          return parse_number<double>(cell).has_value() && !would_round(cell);
        }))
      return "float";
    return all([](const std::string& cell) { return is_image_name(cell); }) ? "image" : "bytes";
  }

  [[nodiscard]] Value value_of(const std::string& kind, const std::string& cell) const {
    if (kind == "int") return *parse_number<std::int64_t>(cell);
    if (kind == "float") return *parse_number<double>(cell);
    if (kind == "image")
      return ImageInput{read_file(path_.parent_path() / cell), {}, promised_format(cell)};
    return cell;
  }

  fs::path path_;
  Table table_;
};

}  // namespace

std::unique_ptr<Source> open_table(const fs::path& path) {
  if (path.extension() == ".jsonl")
    return std::make_unique<TableSource>(path, read_json_lines(path));
  return std::make_unique<TableSource>(
      path, read_delimited(path, path.extension() == ".tsv" ? '\t' : ','));
}

bool is_table(const fs::path& path) {
  const fs::path ending = path.extension();
  return fs::is_regular_file(path) && (ending == ".csv" || ending == ".tsv" || ending == ".jsonl");
}

}  // namespace precast::data
