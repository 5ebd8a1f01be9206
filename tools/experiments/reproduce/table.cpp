#include "tools/experiments/reproduce/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "framework/core/config/schema.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::tools {
namespace {

constexpr std::uint64_t kMaxCurveBytes = 16U << 20;

bool names_a_folder(const std::string& id) {
  return !id.empty() && id[0] != '.' && std::all_of(id.begin(), id.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  });
}

/// Reads the lists of a table. Errors are added to the diagnostics, and reading continues.
class TableReader {
 public:
  explicit TableReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  FigureSource source(const ConfigNode& node, const std::string& where) {
    FigureSource source;
    Schema schema;
    schema.add("id", &source.id, "the id by which figures refer to this source").required();
    schema.add("title", &source.title, "").required();
    schema.add("date", &source.date, "");
    schema.add("url", &source.url, "");
    read(schema, node, where);
    if (!sources_.insert(source.id).second) {
      diagnostics_.error(node.origin, where, fmt::format("source '{}' is given twice", source.id));
    }
    return source;
  }

  TableRow row(const ConfigNode& node, const std::string& where,
               const std::filesystem::path& folder) {
    TableRow row;
    std::string recipe;
    ConfigNode settings;
    ConfigNode published;
    Schema schema;
    schema.add("id", &row.id, "the row's name").required();
    schema.add("model", &row.model, "the model's name, as shown in tables").required();
    schema.add("recipe", &recipe, "a recipe; its path is relative to the table's folder")
        .required();
    schema.add("settings", &settings, "keys to set in the recipe: {training.epochs: 3}");
    schema.add("published", &published,
               "published figures, one entry for each source; the first entry is compared with the "
               "new figures");
    read(schema, node, where);
    check_row_id(schema, row.id, node, where);
    row.recipe = folder / recipe;
    if (schema.given("recipe") && !std::filesystem::is_regular_file(row.recipe)) {
      diagnostics_.error(
          schema.origin("recipe"), where + ".recipe",
          fmt::format("expected an existing recipe file, got '{}'", row.recipe.string()));
      ++missing_recipes_;
    }
    row.settings = read_settings(settings, where + ".settings");
    each(published, where + ".published", [&](const ConfigNode& item, const std::string& at) {
      Schema figures;
      row.published.emplace_back();
      add_figures(figures, row.published.back());
      read_figures(figures, item, at, row.published.back());
    });
    return row;
  }

  OtherSystem other(const ConfigNode& node, const std::string& where) {
    OtherSystem other;
    Schema schema;
    schema.add("system", &other.system, "").required();
    schema.add("model", &other.model, "").required();
    add_figures(schema, other.figures);
    read_figures(schema, node, where, other.figures);
    return other;
  }

  /// The number of errors that say that the recipe of a row is missing.
  [[nodiscard]] std::size_t missing_recipes() const { return missing_recipes_; }

  /// Calls `take(item, where)` for each item of a list. A missing list counts as empty.
  template <typename Take>
  void each(const ConfigNode& list, const std::string& where, const Take& take) {
    if (list.kind != ConfigNode::Kind::list) {
      expect(list, ConfigNode::Kind::null, "a list", where);
      return;
    }
    for (std::size_t i = 0; i < list.items.size(); ++i)
      take(list.items[i], fmt::format("{}[{}]", where, i));
  }

 private:
  void expect(const ConfigNode& node, ConfigNode::Kind kind, std::string_view what,
              const std::string& where) {
    if (node.kind != kind) {
      diagnostics_.error(node.origin, where, fmt::format("expected {}, got {}", what, node.text()));
    }
  }

  void check_row_id(const Schema& schema, const std::string& id, const ConfigNode& node,
                    const std::string& where) {
    if (schema.given("id") && !names_a_folder(id)) {
      diagnostics_.error(
          schema.origin("id"), where + ".id",
          fmt::format("expected letters, digits, '_', '-' and '.', not beginning with "
                      "'.', got '{}'",
                      id));
    } else if (!rows_.insert(id).second) {
      diagnostics_.error(node.origin, where, fmt::format("row '{}' is given twice", id));
    }
  }

  std::vector<Setting> read_settings(const ConfigNode& node, const std::string& where) {
    std::vector<Setting> settings;
    if (node.kind != ConfigNode::Kind::map) {
      expect(node, ConfigNode::Kind::null, "a map of keys", where);
      return settings;
    }
    for (const auto& [key, origin, value] : node.entries) {
      if (key == kEvalOnlyKey) reject_eval_only(value, diagnostics_);
      settings.push_back({key, setting_text(value)});
    }
    return settings;
  }

  void read(Schema& schema, const ConfigNode& node, const std::string& where) {
    if (node.kind != ConfigNode::Kind::map) {
      expect(node, ConfigNode::Kind::map, "a map", where);
      return;
    }
    schema.apply(node, diagnostics_, where);
    schema.check_required(node.origin, diagnostics_, where);
  }

  static constexpr std::string_view kOptional[] = {"top_1", "top_5", "minutes"};

  void add_figures(Schema& schema, PublishedFigures& figures) {
    values_ = {};
    schema.add("source", &figures.source, "id of a source").required();
    schema.add("top_1", &values_[0], "fraction of images").min(0).max(1);
    schema.add("top_5", &values_[1], "fraction of images").min(0).max(1);
    schema.add("minutes", &values_[2], "wall clock").above(0);
    schema.add("hardware", &figures.hardware, "");
    schema.add("note", &figures.note, "");
  }

  void read_figures(Schema& schema, const ConfigNode& node, const std::string& where,
                    PublishedFigures& figures) {
    read(schema, node, where);
    std::optional<double>* const into[] = {&figures.top_1, &figures.top_5, &figures.minutes};
    for (std::size_t i = 0; i < std::size(kOptional); ++i) {
      if (schema.given(kOptional[i])) *into[i] = values_[i];
    }
    if (schema.given("source") && sources_.count(figures.source) == 0) {
      diagnostics_.error(
          schema.origin("source"), where + ".source",
          fmt::format("expected the id of one of `sources`, got '{}'", figures.source));
    }
  }

  Diagnostics& diagnostics_;
  std::set<std::string> sources_;
  std::set<std::string> rows_;
  std::size_t missing_recipes_ = 0;
  /// A schema writes the figures kOptional here; read_figures() copies those that were given.
  std::array<double, std::size(kOptional)> values_{};
};

/// Removes the number at the beginning of `line`, and a comma after it. @return false if there is
/// no number.
template <typename T>
bool take_number(std::string_view& line, T& value) {
  const auto read = std::from_chars(line.data(), line.data() + line.size(), value);
  if (read.ec != std::errc()) return false;
  line.remove_prefix(static_cast<std::size_t>(read.ptr - line.data()));
  if (!line.empty() && line.front() == ',') line.remove_prefix(1);
  return true;
}

/// Parses a line `row,epoch,minutes,top_1,...`. @return the id of the row; nothing if the line has
/// another form.
std::optional<std::string> read_point(std::string_view line, CurvePoint& point) {
  std::string row(line.substr(0, line.find(',')));
  line.remove_prefix(std::min(line.size(), row.size() + 1));
  double epoch = 0;
  if (!take_number(line, epoch) || !take_number(line, point.minutes) ||
      !take_number(line, point.top_1))
    return std::nullopt;
  point.epochs = epoch + 1;
  return row;
}

std::map<std::string, std::vector<CurvePoint>> read_curves(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path, kMaxCurveBytes);
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::map<std::string, std::vector<CurvePoint>> curves;
  std::string line;
  bool head = true;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    // The first line has the names of the columns.
    if (std::exchange(head, false)) continue;
    CurvePoint point;
    const std::optional<std::string> row = read_point(line, point);
    if (!row) {
      throw ConfigError(fmt::format("{}:{}: expected row,epoch,minutes,top_1, got '{}'",
                                    path.string(), number, line));
    }
    curves[*row].push_back(point);
  }
  return curves;
}

/// The lists at the top level of a table, not yet read, and the path of its curves.
struct TableLists {
  ConfigNode sources;
  ConfigNode rows;
  ConfigNode others;
  /// The path of the CSV file, relative to the table's folder; empty if there is none.
  std::string curves;
};

TableLists read_top(const ConfigNode& top, ResultTable& table, Diagnostics& diagnostics) {
  TableLists lists;
  Schema schema;
  schema.add("title", &table.title, "what the table is about").required();
  schema.add("sources", &lists.sources, "where the published figures come from");
  schema.add("train_images", &table.train_images, "number of training images in the published runs")
      .min(0);
  schema.add("rows", &lists.rows, "training runs of the table").required();
  schema.add("others", &lists.others, "figures of other systems");
  schema.add("curves", &lists.curves,
             "CSV file of published accuracies; its path is relative to the table's folder");
  schema.apply(top, diagnostics);
  schema.check_required(top.origin, diagnostics);
  return lists;
}

}  // namespace

ResultTable read_table(const std::filesystem::path& path) {
  Diagnostics diagnostics;
  const ConfigNode top = parse_yaml_file(path, diagnostics);
  diagnostics.throw_if_errors();
  ResultTable table;
  const TableLists lists = read_top(top, table, diagnostics);
  TableReader reader(diagnostics);
  reader.each(lists.sources, "sources", [&](const ConfigNode& node, const std::string& where) {
    table.sources.push_back(reader.source(node, where));
  });
  reader.each(lists.rows, "rows", [&](const ConfigNode& node, const std::string& where) {
    table.rows.push_back(reader.row(node, where, path.parent_path()));
  });
  reader.each(lists.others, "others", [&](const ConfigNode& node, const std::string& where) {
    table.others.push_back(reader.other(node, where));
  });
  if (lists.rows.kind == ConfigNode::Kind::list && lists.rows.items.empty())
    diagnostics.error(lists.rows.origin, "rows", "expected at least one row, got none");
  const std::vector<std::string>& errors = diagnostics.errors();
  if (!errors.empty() && errors.size() == reader.missing_recipes())
    throw IoError(fmt::format("{}", fmt::join(errors, "\n")));
  diagnostics.throw_if_errors();
  if (!lists.curves.empty()) table.curves = read_curves(path.parent_path() / lists.curves);
  return table;
}

}  // namespace precast::tools
