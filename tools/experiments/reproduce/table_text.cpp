#include "tools/experiments/reproduce/table_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>

#include "framework/core/format.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr int kShareDigits = 4;

/// The number of decimal places of minutes_text().
int minute_digits(double minutes) {
  constexpr int kMaxDigits = 4;
  if (!(minutes > 0)) return 1;
  return std::clamp(1 - static_cast<int>(std::floor(std::log10(minutes))), 1, kMaxDigits);
}

/// `8 x NVIDIA A100` or, for training on a CPU, `2 cores of <processor>`; empty if unknown.
std::string hardware_of(const ordered_json& facts) {
  const std::string device = facts.value("device", "");
  if (device.empty()) return {};
  if (device == facts.value("processor", ""))
    return fmt::format("{} of {}", format_count(facts.value("cores", std::uint64_t{0}), "core"),
                       device);
  return fmt::format("{} x {}", facts.value("world_size", 1), device);
}

ordered_json to_json(const PublishedFigures& figures) {
  ordered_json json = {{"source", figures.source}};
  if (figures.top_1) json["top_1"] = *figures.top_1;
  if (figures.top_5) json["top_5"] = *figures.top_5;
  if (figures.minutes) json["minutes"] = *figures.minutes;
  if (!figures.hardware.empty()) json["hardware"] = figures.hardware;
  if (!figures.note.empty()) json["note"] = figures.note;
  return json;
}

ordered_json to_json(const std::optional<MeanInterval>& figure) {
  if (!figure) return nullptr;
  ordered_json json = {{"mean", figure->mean}, {"seeds", figure->count}};
  // A single seed gives no confidence interval.
  if (figure->count > 1) json["half_width_95"] = figure->half_width;
  return json;
}

/// Whether a setting, with this value, is one of the row's own.
bool belongs_to(const TableRow& row, const Setting& setting) {
  return std::ranges::any_of(row.settings, [&](const Setting& own) {
    return own.key == setting.key && own.value == setting.value;
  });
}

void append_row(const RowResult& result, std::string& out) {
  const PublishedFigures theirs = result.row->compared_with();
  fmt::format_to(
      std::back_inserter(out), "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", result.row->id,
      markdown_cell(result.row->model), figure_text(result.figure("top_1"), kShareDigits),
      figure_text(theirs.top_1, kShareDigits), figure_text(result.figure("top_5"), kShareDigits),
      figure_text(theirs.top_5, kShareDigits), minutes_text(result.minutes()),
      minutes_text(theirs.minutes), result.progress());
}

void append_sources(const ResultTable& table, std::string& out) {
  if (!table.sources.empty()) out += "\n## Sources\n\n";
  for (const FigureSource& source : table.sources) {
    fmt::format_to(std::back_inserter(out), "- {}: {}, {} <{}>\n", markdown_cell(source.id),
                   markdown_cell(source.title), markdown_cell(source.date), source.url);
  }
}

void append_others(const ResultTable& table, std::string& out) {
  if (table.others.empty()) return;
  out += "\n## Other systems\n\n| system | model | top-1 | minutes | hardware | note |\n";
  out += "| --- | --- | --- | --- | --- | --- |\n";
  for (const OtherSystem& other : table.others) {
    fmt::format_to(std::back_inserter(out), "| {} | {} | {} | {} | {} | {} |\n",
                   markdown_cell(other.system), markdown_cell(other.model),
                   figure_text(other.figures.top_1, kShareDigits),
                   minutes_text(other.figures.minutes), markdown_cell(other.figures.hardware),
                   markdown_cell(other.figures.note));
  }
}

/// The keys of a run that change results and are not the row's own settings.
std::string keys_set(const TableRow& row, const std::vector<Setting>& settings) {
  std::string keys;
  for (const Setting& setting : settings) {
    if (!changes_results(setting) || setting.key == "training.seed") continue;
    if (belongs_to(row, setting)) continue;
    fmt::format_to(std::back_inserter(keys), "{}{}={}", keys.empty() ? "" : ", ", setting.key,
                   setting.value);
  }
  return keys;
}

ordered_json row_json(const ResultTable& table, const RowResult& result) {
  ordered_json row = {{"id", result.row->id},
                      {"model", result.row->model},
                      {"recipe", result.row->recipe.string()},
                      {"top_1", to_json(result.figure("top_1"))},
                      {"top_5", to_json(result.figure("top_5"))},
                      {"minutes", to_json(result.minutes())},
                      {"published", ordered_json::array()},
                      {"differences", differences(table, result)},
                      {"runs", ordered_json::array()}};
  for (const PublishedFigures& figures : result.row->published)
    row["published"].push_back(to_json(figures));
  for (const SeedRun& run : result.runs) {
    row["runs"].push_back({{"seed", run.seed},
                           {"status", name_of(run.status)},
                           {"folder", run.trial.run_folder().string()},
                           {"summary", run.summary}});
  }
  return row;
}

bool has_started(const SeedRun& run) {
  return !run.facts.empty();
}

}  // namespace

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '\\') out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string figure_text(const std::optional<MeanInterval>& figure, int digits) {
  if (!figure) return kNoFigure;
  if (figure->count < 2) return fmt::format("{:.{}f}", figure->mean, digits);
  return fmt::format("{:.{}f} ± {:.{}f}", figure->mean, digits, figure->half_width, digits);
}

std::string figure_text(const std::optional<double>& figure, int digits) {
  return figure ? fmt::format("{:.{}f}", *figure, digits) : kNoFigure;
}

std::string minutes_text(const std::optional<MeanInterval>& minutes) {
  return figure_text(minutes, minutes ? minute_digits(minutes->mean) : 1);
}

std::string minutes_text(const std::optional<double>& minutes) {
  return figure_text(minutes, minutes ? minute_digits(*minutes) : 1);
}

std::vector<std::string> differences(const ResultTable& table, const RowResult& result) {
  std::vector<std::string> lines;
  const auto begun = std::ranges::find_if(result.runs, has_started);
  if (begun == result.runs.end()) return lines;
  const std::string ours = hardware_of(begun->facts);
  const std::string theirs = result.row->compared_with().hardware;
  if (ours != theirs && !ours.empty()) {
    lines.push_back(fmt::format("hardware: {}{}", ours,
                                theirs.empty() ? "" : fmt::format(", published on {}", theirs)));
  }
  const auto images = begun->facts.value("train_images", std::int64_t{0});
  if (table.train_images != 0 && images != table.train_images) {
    lines.push_back(
        fmt::format("training images: {}, published with {}", images, table.train_images));
  }
  const std::string keys = keys_set(*result.row, begun->trial.settings);
  if (!keys.empty()) lines.push_back("keys set: " + keys);
  return lines;
}

std::vector<Difference> joined_differences(const ResultTable& table,
                                           const std::vector<RowResult>& results) {
  std::vector<std::string> lines;
  std::map<std::string, std::vector<std::string>> rows_of;
  std::size_t rows = 0;
  for (const RowResult& result : results) {
    if (std::ranges::any_of(result.runs, has_started)) ++rows;
    for (const std::string& line : differences(table, result)) {
      if (!rows_of.contains(line)) lines.push_back(line);
      rows_of[line].push_back(result.row->id);
    }
  }
  std::vector<Difference> joined;
  for (const std::string& line : lines) {
    const auto& names = rows_of.at(line);
    joined.push_back(
        {names.size() == rows && rows > 1 ? "all rows" : fmt::format("{}", fmt::join(names, ", ")),
         line});
  }
  return joined;
}

std::string table_markdown(const ResultTable& table, const std::vector<RowResult>& results) {
  std::string out = "# " + markdown_cell(table.title) + "\n\n";
  out +=
      "| row | model | top-1 | published | top-5 | published | minutes | published | seeds |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const RowResult& result : results) append_row(result, out);
  out +=
      "\nMinutes include training and evaluation. `±` is the half-width of the 95 % confidence "
      "interval over seeds (Student's t).\n";
  std::string differing;
  for (const auto& [rows, line] : joined_differences(table, results))
    fmt::format_to(std::back_inserter(differing), "- {}: {}\n", rows, markdown_cell(line));
  if (!differing.empty()) out += "\n## What differs from the published runs\n\n" + differing;
  append_others(table, out);
  append_sources(table, out);
  return out;
}

ordered_json table_json(const ResultTable& table, const std::vector<RowResult>& results) {
  ordered_json json = {{"title", table.title}, {"rows", ordered_json::array()}};
  for (const RowResult& result : results) json["rows"].push_back(row_json(table, result));
  json["others"] = ordered_json::array();
  for (const OtherSystem& other : table.others) {
    ordered_json figures = to_json(other.figures);
    figures["system"] = other.system;
    figures["model"] = other.model;
    json["others"].push_back(std::move(figures));
  }
  json["sources"] = ordered_json::array();
  for (const FigureSource& source : table.sources) {
    json["sources"].push_back(
        {{"id", source.id}, {"title", source.title}, {"date", source.date}, {"url", source.url}});
  }
  return json;
}

}  // namespace precast::tools
