#include "data/sources/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "data/beton/format.h"
#include "data/beton/json_text.h"
#include "data/image/image_file.h"
#include "data/order/class_names.h"
#include "data/sources/class_files.h"
#include "data/sources/delimited.h"
#include "data/sources/label_list.h"
#include "data/sources/number_list.h"
#include "data/sources/table_column.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

namespace fs = std::filesystem;

/// The cells of a row as text. In .jsonl, each cell is a JSON document, except that strings have no
/// quotes.
struct Row {
  std::vector<std::string> cells;
  std::vector<CellType> cell_types;
  /// The cells that are lists of numbers; set only when the file is opened, and empty for delimited
  /// text.
  std::vector<std::optional<NumberList>> lists = {};
};

/// Finds the rows once and reads them again on request.
class TableSource : public Source {
 public:
  [[nodiscard]] std::uint64_t size() const override { return rows_.size(); }

  [[nodiscard]] Sample sample(std::uint64_t i) const override {
    Sample sample{fmt::format("{}: row {}", path_text(), i + 1), {}};
    Row row;
    read_row(rows_[i], row);
    if (row.cells.size() != fields_.size()) throw row_changed_error(sample.name);
    for (std::size_t field = 0; field < fields_.size(); ++field) {
      const std::size_t column = column_of_[field];
      if (column == class_column_) {
        sample.values.emplace_back(label_of(row.cells[column], sample.name));
        continue;
      }
      sample.values.push_back(
          value_of(fields_[field], std::move(row.cells[column]), row.cell_types[column], sample));
    }
    return sample;
  }

 protected:
  explicit TableSource(const fs::path& path) : file_(path) { fields_.clear(); }

  [[nodiscard]] std::string path_text() const { return file_.path().string(); }
  [[nodiscard]] std::string_view text() const {
    std::string_view all(reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size());
    if (all.starts_with("\xEF\xBB\xBF")) all.remove_prefix(3);
    return all;
  }

  /// @param at where in text() the row begins.
  void add_row(std::size_t at, const Row& row) {
    rows_.push_back(at);
    columns_.resize(row.cells.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      columns_[i].add(row.cells[i], row.cell_types[i],
                      row.lists.empty() ? std::nullopt : row.lists[i]);
    }
  }
  /// Call after the last row. @throws DataError if the column names look like a sample.
  void check_names(const std::vector<std::string>& names) const {
    if (const auto value = find_value_in_header(names, columns_))
      throw DataError(
          fmt::format("{}: expected column names in the first line, got '{}', which looks like a "
                      "value of a sample. Insert a line of names, or rename the columns",
                      path_text(), *value));
  }
  /// Call after the last row. @throws ConfigError, DataError
  void name_fields(const std::vector<std::string>& names, const TableOptions& options) {
    if (rows_.empty()) throw DataError(fmt::format("{}: expected samples, got none", path_text()));
    choose_kinds(names, options);
    check_image_columns(names, columns_, options.class_column, path_text());
    for (std::string& name : field_names(names, path_text())) {
      const std::size_t i = fields_.size();
      const bool is_truncated = name.size() < names[i].size();
      column_of_.push_back(i);
      fields_.push_back({std::move(name), columns_[i].kind()});
      if (is_truncated) {
        fields_.back().full_name = names[i];
        ++notes_["cut_column_names"];
      }
      if (fields_.back().type == "ndarray") fields_.back().array = *columns_[i].array();
    }
  }
  /// Call after name_fields(). @throws ConfigError, DataError
  void find_label_column(const std::vector<std::string>& names, const TableOptions& options) {
    class_column_ = class_column(names, options);
    if (class_column_ != kNone) {
      read_class_column(options);
      move_labels_first(class_column_);
    } else if (const auto label = label_column(names, columns_)) {
      move_labels_first(*label);
    }
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  /// Makes the field of column class_column_ an int field, and assigns a label to each of its
  /// strings.
  void read_class_column(const TableOptions& options) {
    class_field_ = fields_[class_column_].name;
    std::vector<std::string> texts = distinct_texts(class_column_);
    class_names_ = read_classes(options.classes, {texts.begin(), texts.end()}).names;
    if (class_names_.empty()) class_names_ = std::move(texts);
    labels_ = labels_by_name(class_names_);
    fields_[class_column_].type = "int";
    // Look up every row now, so that a class missing in the list is reported before anything is
    // written.
    Row row;
    for (std::size_t i = 0; !options.classes.empty() && i < rows_.size(); ++i) {
      read_row(rows_[i], row);
      static_cast<void>(
          label_of(row.cells[class_column_], fmt::format("{}: row {}", path_text(), i + 1)));
    }
  }

  /// Moves the labels' field before all other int fields, because training reads the first one.
  /// @param label the column of this field.
  void move_labels_first(std::size_t label) {
    const auto end = static_cast<std::ptrdiff_t>(label) + 1;
    const auto first = std::ranges::find(fields_, "int", &SourceField::type) - fields_.begin();
    std::rotate(fields_.begin() + first, fields_.begin() + end - 1, fields_.begin() + end);
    std::rotate(column_of_.begin() + first, column_of_.begin() + end - 1, column_of_.begin() + end);
  }

  void choose_kinds(const std::vector<std::string>& names, const TableOptions& options) {
    std::map<std::size_t, std::string> chosen;
    const auto choose = [&](const std::vector<std::string>& columns, const std::string& kind) {
      for (const std::string& name : columns) {
        const std::size_t i = column_called(name, kind, names);
        const std::string& first = chosen.emplace(i, kind).first->second;
        if (first != kind) {
          throw ConfigError(fmt::format("{}: expected one kind for column '{}', got {} and {}",
                                        path_text(), name, first, kind));
        }
        const std::string own = columns_[i].kind();
        if (columns_[i].choose(kind)) continue;
        throw ConfigError(
            fmt::format("{}: expected only numbers that float64 represents exactly, or lists of "
                        "them, in column '{}', to store it as {}, got a column of kind {}",
                        path_text(), name, kind, own));
      }
    };
    choose(options.texts, "bytes");
    choose(options.documents, "json");
    choose(options.floats, "float");
  }

  /// The column with this name, entire or truncated. @param kind the requested kind, for the
  /// message.
  /// @throws ConfigError
  [[nodiscard]] std::size_t column_called(const std::string& name, const std::string& kind,
                                          const std::vector<std::string>& names) const {
    if (const auto column = find_column(name, names)) return *column;
    throw ConfigError(fmt::format("{}: expected the name of a column to store as {}, got '{}'. {}",
                                  path_text(), kind, name, suggest(name, names)));
  }

  /// The column whose strings are class names, or kNone.
  [[nodiscard]] std::size_t class_column(const std::vector<std::string>& names,
                                         const TableOptions& options) const {
    if (!options.class_column.empty()) {
      const auto column = find_column(options.class_column, names);
      if (!column) {
        throw ConfigError(fmt::format("--class-column: expected a column of {}, got '{}'. {}",
                                      path_text(), options.class_column,
                                      suggest(options.class_column, names)));
      }
      if (may_be_classes(*column, options)) return *column;
      throw ConfigError(
          fmt::format("--class-column: expected a text column, or with --class-names one of "
                      "integers, got '{}', a column of kind {}. To train on a column of integers, "
                      "set data.targets in the recipe",
                      options.class_column, fields_[*column].type));
    }
    const auto label = label_column(names, columns_);
    if (label && may_be_classes(*label, options)) return *label;
    if (!options.classes.empty()) {
      throw ConfigError(
          fmt::format("--class-names: expected a column of class names in {}, got none. Name the "
                      "column with --class-column",
                      path_text()));
    }
    return kNone;
  }

  /// Integers are class names only if the list of all classes is given: without it, they are
  /// labels.
  [[nodiscard]] bool may_be_classes(std::size_t column, const TableOptions& options) const {
    const TableColumn& values = columns_[column];
    return values.has_texts() || (!options.classes.empty() && values.kind() == "int");
  }

  /// The sorted strings of a column. @throws DataError for an empty string
  [[nodiscard]] std::vector<std::string> distinct_texts(std::size_t column) const {
    std::set<std::string> texts;
    Row row;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      read_row(rows_[i], row);
      if (row.cells[column].empty())
        throw missing_class_error(fmt::format("{}: row {}", path_text(), i + 1));
      texts.insert(std::move(row.cells[column]));
    }
    return {texts.begin(), texts.end()};
  }
  [[nodiscard]] DataError missing_class_error(const std::string& row) const {
    return DataError(
        fmt::format("{}: expected a class in column '{}', got an empty string. Fill it in, or keep "
                    "the column as text with --field-kind {}=bytes",
                    row, class_field_, class_field_));
  }

  [[nodiscard]] std::int64_t label_of(const std::string& text, const std::string& row) const {
    const auto label = labels_.find(text);
    if (label != labels_.end()) return label->second;
    if (text.empty()) throw missing_class_error(row);
    throw DataError(fmt::format("{}: expected one of the {} classes in column '{}', got '{}'{}",
                                row, class_names_.size(), class_field_, text,
                                columns_[class_column_].has_texts()
                                    ? ""
                                    : ". If another column contains the class names, name it with "
                                      "--class-column"));
  }

  virtual void read_row(std::size_t at, Row& row) const = 0;

  [[nodiscard]] Value value_of(const SourceField& field, std::string cell, CellType cell_type,
                               const Sample& sample) const {
    const std::string& kind = field.type;
    if (kind == "int") return number_of(parse_integer(cell), sample);
    if (kind == "float") return number_of(parse_float(cell), sample);
    if (kind == "image")
      return ImageInput{
          read_file(file_.path().parent_path() / cell), {}, format_from_extension(cell)};
    if (kind == "ndarray") {
      ArrayInput array{field.array, number_bytes(cell, field.array.dtype)};
      if (array.elements.size() != array_bytes(field.array, sample.name))
        throw row_changed_error(sample.name);
      return array;
    }
    if (kind == "json" && cell_type == CellType::text) return nlohmann::json(cell).dump();
    return cell;
  }
  template <typename Number>
  static Value number_of(const std::optional<Number>& number, const Sample& sample) {
    if (!number) throw row_changed_error(sample.name);
    return *number;
  }
  static DataError row_changed_error(const std::string& row) {
    return DataError(
        fmt::format("{}: expected the row that was read before, got a different one. The list was "
                    "changed while it was read",
                    row));
  }

  const MappedFile file_;
  /// The offset at which each row begins. A deque, so that growing does not need twice the memory.
  std::deque<std::uint64_t> rows_;
  std::vector<TableColumn> columns_;
  /// The column of each field.
  std::vector<std::size_t> column_of_;
  /// The column whose strings are class names, and the label of each name in class_names_.
  std::size_t class_column_ = kNone;
  std::unordered_map<std::string_view, std::int64_t> labels_;
};

class DelimitedTable final : public TableSource {
 public:
  DelimitedTable(const fs::path& path, char delimiter, const TableOptions& options)
      : TableSource(path), delimiter_(delimiter) {
    DelimitedReader reader(text(), delimiter, path_text());
    std::vector<std::string> names;
    if (!reader.next(names))
      throw DataError(
          fmt::format("{}: expected a line of column names, got an empty file", path_text()));
    Row row{{}, std::vector<CellType>(names.size(), CellType::cell)};
    while (reader.next(row.cells)) {
      if (row.cells.size() != names.size()) {
        throw DataError(fmt::format("{}: row {}: expected {} cells, got {}", path_text(),
                                    size() + 1, names.size(), row.cells.size()));
      }
      add_row(reader.offset(), row);
    }
    check_names(names);
    name_fields(names, options);
    find_label_column(names, options);
  }

 private:
  void read_row(std::size_t at, Row& row) const override {
    (void)DelimitedReader(text().substr(at), delimiter_, path_text()).next(row.cells);
    row.cell_types.assign(row.cells.size(), CellType::cell);
  }

  const char delimiter_;
};

class JsonTable final : public TableSource {
 public:
  JsonTable(const fs::path& path, const TableOptions& options) : TableSource(path) {
    Row row;
    std::size_t at = 0;
    for (std::size_t line = 1; at < text().size(); ++line) {
      const std::string_view one = line_at(at);
      if (one.find_first_not_of(" \t\r") != std::string_view::npos) {
        const auto parsed = parse_json_within_limits(one);
        if (size() == 0 && parsed.is_object())
          for (const auto& [name, value] : parsed.items()) names_.push_back(name);
        take_values(parsed, fmt::format("{}: line {}", path_text(), line), row);
        for (const std::string& name : names_)
          row.lists.push_back(read_number_list(parsed.at(name)));
        add_row(at, row);
      }
      at += one.size() + 1;
    }
    name_fields(names_, options);
    find_label_column(names_, options);
  }

 private:
  [[nodiscard]] std::string_view line_at(std::size_t at) const {
    const std::string_view rest = text().substr(at);
    return rest.substr(0, rest.find('\n'));
  }

  void read_row(std::size_t at, Row& row) const override {
    // The limits were checked when the file was opened.
    take_values(nlohmann::ordered_json::parse(line_at(at), nullptr, /*allow_exceptions=*/false),
                path_text(), row);
  }

  /// @param where file and line.
  void take_values(const nlohmann::ordered_json& parsed, const std::string& where, Row& row) const {
    if (!parsed.is_object()) {
      throw DataError(fmt::format(
          "{}: expected a JSON object, nested at most {} deep, with integers of at most "
          "64 bits, got text that is not such an object",
          where, kMaxJsonDepth));
    }
    row = {};
    check_keys(parsed, where);
    for (const std::string& name : names_) {
      const auto value = parsed.find(name);
      row.cells.push_back(value->is_string() ? value->get<std::string>() : value->dump());
      row.cell_types.push_back(value->is_number()   ? CellType::number
                               : value->is_string() ? CellType::text
                                                    : CellType::other);
    }
  }

  /// @throws DataError unless the object has the keys of the first line and no others.
  void check_keys(const nlohmann::ordered_json& object, const std::string& where) const {
    const auto refuse = [&](std::string_view got, const std::string& name) {
      throw DataError(fmt::format("{}: expected the {} keys of the first line, got {} '{}'", where,
                                  names_.size(), got, name));
    };
    for (const std::string& name : names_)
      if (!object.contains(name)) refuse("no key", name);
    for (const auto& [name, value] : object.items())
      if (std::ranges::find(names_, name) == names_.end()) refuse("an additional key", name);
  }

  std::vector<std::string> names_;
};

}  // namespace

void TableOptions::options(Schema& schema) {
  schema.add("texts", &texts, "columns to store as unchanged text: NAME or [NAME, ...]");
  schema.add("documents", &documents, "columns to store as JSON documents: NAME or [NAME, ...]");
  schema.add("floats", &floats,
             "columns of numbers, or of lists of numbers, to store as float64 even if all are "
             "integers: NAME or [NAME, ...]");
  schema.add(
      "class_column", &class_column,
      "the column whose strings are class names; default: the first text column called "
      "label, labels, class, target or category, else classes, class_id or targets, unless an "
      "integer column has one of these names. With --class-names, integers are class names too");
  schema.add("classes", &classes, kClassesHelp);
}

std::unique_ptr<Source> open_table(const fs::path& path, const TableOptions& options) {
  if (path.extension() == ".jsonl") return std::make_unique<JsonTable>(path, options);
  return std::make_unique<DelimitedTable>(path, path.extension() == ".tsv" ? '\t' : ',', options);
}

bool is_table(const fs::path& path) {
  const fs::path extension = path.extension();
  return fs::is_regular_file(path) &&
         (extension == ".csv" || extension == ".tsv" || extension == ".jsonl");
}

}  // namespace precast::data
