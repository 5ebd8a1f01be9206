#include "tools/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "framework/core/dump_json.h"
#include "framework/core/file.h"
#include "framework/core/format.h"
#include "tools/report/chart/svg.h"
#include "tools/report/class_accuracies.h"
#include "tools/report/event_sink.h"
#include "tools/report/html_page.h"
#include "tools/report/run_charts.h"
#include "tools/report/run_figures.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// The files of a run folder, the most useful first.
constexpr const char* kFiles[] = {"report.html",      "summary.json", "params.json",
                                  "run.json",         "log",          "final_weights.safetensors",
                                  "final_weights.pt", "checkpoints",  kEventFile};

std::string minutes(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, value < 10 ? 2 : 1);
}

/// Whether the key only affects what a run writes, and not what it learns.
bool is_per_run_key(const std::string& key) {
  return key.starts_with("logging.") || key.starts_with("checkpoint.");
}

std::string value_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

std::string fact(const RunRecord& run, const std::string& key) {
  const auto found = run.facts.find(key);
  return found == run.facts.end() ? "" : value_text(*found);
}

std::string param(const RunRecord& run, const std::string& key) {
  const auto found = run.params.find(key);
  return found == run.params.end() ? "" : value_text(*found);
}

/// `3`, or `1 of 3` if not all epochs have been trained.
std::string progress(const RunRecord& run) {
  const std::int64_t done = run.epochs.empty() ? 0 : run.epochs.back().epoch + 1;
  // Methods may change the number of epochs of the recipe.
  const auto planned = run.facts.find("epochs");
  const std::string all =
      planned != run.facts.end() ? planned->dump() : param(run, "training.epochs");
  return all.empty() || all == std::to_string(done) ? std::to_string(done)
                                                    : fmt::format("{} of {}", done, all);
}

/// `1 epoch`, `3 epochs`, `1 of 3 epochs`.
std::string epochs_text(const RunRecord& run) {
  const std::string text = progress(run);
  return text + (text == "1" ? " epoch" : " epochs");
}

/// The names of the files to train on.
std::string dataset_names(const RunRecord& run) {
  const auto found = run.params.find("data.train_dataset");
  if (found == run.params.end()) return {};
  std::string names;
  for (const ordered_json& file : found->is_array() ? *found : ordered_json::array({*found})) {
    const std::filesystem::path path = value_text(file);
    names += (names.empty() ? "" : ", ") + path.filename().string();
  }
  return names;
}

std::string subtitle_of(const RunRecord& run) {
  std::string text = param(run, "model.arch");
  const std::string data = dataset_names(run);
  if (!data.empty()) text += fmt::format("{}{}", text.empty() ? "" : " on ", data);
  text += fmt::format("{}{}", text.empty() ? "" : ", ", epochs_text(run));
  if (const std::string device = fact(run, "device"); !device.empty()) {
    const std::string world = fact(run, "world_size");
    text += fmt::format(", {}{}", world.empty() || world == "1" ? "" : world + " x ", device);
  }
  return text;
}

void add_headline(HtmlPage& page, const RunRecord& run) {
  std::vector<HtmlFigure> figures = quality_figures(run);
  figures.push_back({minutes(run.train_minutes()), "minutes of training", epochs_text(run)});
  figures.push_back(
      {readable(std::round(run.images_per_second())), "images per second", "while training"});
  figures.push_back(
      {percent_text(run.wait_share(), 1), "waiting for data", "of the training time"});
  page.figures(figures);
}

void add_notices(HtmlPage& page, const std::vector<RunRecord>& runs) {
  for (const RunRecord& run : runs) {
    const std::string name = runs.size() > 1 ? run.name + ": " : "";
    if (!run.finished())
      page.notice(
          fmt::format("{}This run has not finished (it is running, was stopped, or was killed): "
                      "{} so far.",
                      name, epochs_text(run)));
    for (const std::string& note : run.notes) page.notice(name + note + ".");
  }
}

void add_comparison(HtmlPage& page, const std::vector<RunRecord>& runs) {
  const std::vector<ComparedFigure> figures = compared_figures(runs);
  HtmlTable table{.columns = {{"run"}, {"model"}, {"epochs", true}}};
  for (const ComparedFigure& figure : figures) table.columns.push_back({figure.label, true});
  for (const char* name : {"minutes", "img/s", "waiting for data"})
    table.columns.push_back({name, true});
  const ComparedFigure& first = figures.front();
  double best = NAN;
  for (const RunRecord& run : runs)
    best = first.higher_is_better ? std::fmax(best, first.value(run))
                                  : std::fmin(best, first.value(run));
  for (const RunRecord& run : runs) {
    const bool is_best = first.value(run) == best;
    std::vector<HtmlCell> row = {
        {run.name, "", is_best}, {param(run, "model.arch")}, {progress(run)}};
    for (const ComparedFigure& figure : figures)
      row.push_back({figure.text(figure.value(run)), "", is_best && &figure == &first});
    for (const std::string& text :
         {minutes(run.train_minutes()), readable(std::round(run.images_per_second())),
          percent_text(run.wait_share(), 1)})
      row.push_back({text});
    table.rows.push_back(std::move(row));
  }
  page.table(table);
}

/// Returns an empty table with a column for names and a column of values for each run.
HtmlTable facts_table(const std::vector<RunRecord>& runs, const std::string& head) {
  HtmlTable table{.columns = {{head}}};
  for (const RunRecord& run : runs) table.columns.push_back({runs.size() > 1 ? run.name : "value"});
  return table;
}

std::string fact_text(const RunRecord& run, const std::string& key) {
  if (key == "best_metric" && !run.metric.empty())
    return fmt::format("{}, {} is better", run.metric, run.higher_is_better ? "higher" : "lower");
  const auto value = run.facts.find(key);
  if (value == run.facts.end() || !value->is_number()) return fact(run, key);
  return key.ends_with("_bytes") ? format_bytes(value->get<double>())
                                 : readable(value->get<double>());
}

/// Adds the facts of run.json, in one column per run, or in a single one if all runs have the same.
void add_system(HtmlPage& page, const std::vector<RunRecord>& runs) {
  std::vector<std::string> keys;
  bool alike = true;
  for (const RunRecord& run : runs) {
    alike = alike && run.facts == runs.front().facts;
    for (const auto& [key, value] : run.facts.items())
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  if (keys.empty()) return;
  const std::vector<RunRecord> shown(runs.begin(), alike ? runs.begin() + 1 : runs.end());
  HtmlTable table = facts_table(shown, "fact");
  for (const std::string& key : keys) {
    std::string name = key.ends_with("_bytes") ? key.substr(0, key.size() - 6) : key;
    std::ranges::replace(name, '_', ' ');
    table.rows.push_back({{name}});
    for (const RunRecord& run : shown) table.rows.back().push_back({fact_text(run, key)});
  }
  page.section("System and data");
  if (alike && runs.size() > 1) page.paragraph("The same for all runs:");
  page.table(table);
}

void add_params(HtmlPage& page, const std::vector<RunRecord>& runs,
                const std::vector<std::string>& keys) {
  HtmlTable table = facts_table(runs, "key");
  for (const std::string& key : keys) {
    table.rows.push_back({{key}});
    for (const RunRecord& run : runs) table.rows.back().push_back({param(run, key)});
  }
  page.table(table);
}

std::vector<std::string> all_keys(const std::vector<RunRecord>& runs) {
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const RunRecord& run : runs) {
    for (const auto& [key, value] : run.params.items())
      if (seen.insert(key).second) keys.push_back(key);
  }
  return keys;
}

void add_classes(HtmlPage& page, const RunRecord& run) {
  constexpr std::size_t kMaxShown = 10;
  std::vector<ClassAccuracy> rows = class_accuracies(run);
  if (rows.empty()) return;
  const std::size_t all = rows.size();
  rows.resize(std::min(all, kMaxShown));
  page.section("Classes");
  page.paragraph(all > kMaxShown ? fmt::format("The {} of {} classes with the lowest top-1. "
                                               "summary.json lists all classes.",
                                               kMaxShown, all)
                                 : "Lowest top-1 first.");
  HtmlTable table{.columns = {{"class"}, {"top-1", true}, {"correct", true}, {"images", true}}};
  for (const ClassAccuracy& row : rows)
    table.rows.push_back({{row.name},
                          {percent_text(row.accuracy())},
                          {std::to_string(row.correct)},
                          {std::to_string(row.images)}});
  page.table(table);
}

void add_configuration(HtmlPage& page, const std::vector<RunRecord>& runs) {
  const auto keys = all_keys(runs);
  if (keys.empty()) return;
  page.section("Configuration");
  if (runs.size() > 1) {
    const auto different = differing_keys(runs);
    if (different.empty()) {
      page.paragraph("All runs have the same configuration.");
    } else {
      page.paragraph("Keys with different values in these runs:");
      add_params(page, runs, different);
    }
  }
  page.begin_details("all " + format_count(keys.size(), "key"));
  add_params(page, runs, keys);
  page.end_details();
}

/// Returns a link from the page to a file of the run; empty if the file does not exist.
HtmlCell file_link(const RunRecord& run, const std::string& name,
                   const std::filesystem::path& page_folder) {
  std::error_code error;
  const auto path = std::filesystem::absolute(run.folder / name);
  if (!std::filesystem::exists(path, error)) return {};
  const auto base = std::filesystem::absolute(page_folder.empty() ? "." : page_folder);
  return {name, std::filesystem::relative(path, base, error).generic_string()};
}

void add_files(HtmlPage& page, const RunRecord& run, const std::filesystem::path& page_folder) {
  HtmlTable table{.columns = {{"file"}, {"size", true}}};
  for (const char* name : kFiles) {
    const HtmlCell link = file_link(run, name, page_folder);
    if (link.text.empty()) continue;
    std::error_code error;
    const auto bytes = std::filesystem::file_size(run.folder / name, error);
    table.rows.push_back({link, {error ? "" : format_bytes(static_cast<double>(bytes))}});
  }
  page.section("Files");
  page.table(table);
}

/// Adds one row per run, with links to its most important files.
void add_files(HtmlPage& page, const std::vector<RunRecord>& runs,
               const std::filesystem::path& page_folder) {
  HtmlTable table{.columns = {{"run"}, {"files"}, {}, {}, {}}};
  for (const RunRecord& run : runs) {
    table.rows.push_back({{run.name}});
    for (const char* name : {"report.html", "summary.json", "params.json", "log"})
      table.rows.back().push_back(file_link(run, name, page_folder));
  }
  page.section("Files");
  page.table(table);
}

ordered_json epochs_json(const RunRecord& run) {
  auto epochs = ordered_json::array();
  const auto speed = rates(run.epochs, &RunRow::images);
  const auto waits = rates(run.epochs, &RunRow::wait_seconds);
  for (std::size_t i = 0; i < run.epochs.size(); ++i) {
    const RunRow& row = run.epochs[i];
    epochs.push_back({{"epoch", row.epoch},
                      {"top_1", row.top_1},
                      {"top_5", row.top_5},
                      {"metric", row.metric},
                      {"train_loss", row.loss},
                      {"val_loss", row.val_loss},
                      {"lr", row.lr},
                      {"resolution", row.resolution},
                      {"train_seconds", row.train_seconds},
                      {"images_per_second", speed[i]},
                      {"wait_share", waits[i]}});
  }
  return epochs;
}

}  // namespace

std::vector<std::string> differing_keys(const std::vector<RunRecord>& runs) {
  std::vector<std::string> keys = all_keys(runs);
  std::erase_if(keys, [&](const std::string& key) {
    return is_per_run_key(key) || std::ranges::all_of(runs, [&](const RunRecord& run) {
             return param(run, key) == param(runs.front(), key);
           });
  });
  return keys;
}

std::string report_page(const std::vector<RunRecord>& runs,
                        const std::filesystem::path& page_folder) {
  const bool one = runs.size() == 1;
  HtmlPage page(one ? runs[0].name : fmt::format("{} runs", runs.size()),
                one ? subtitle_of(runs[0]) : "compared by their logs");
  one ? add_headline(page, runs[0]) : add_comparison(page, runs);
  add_notices(page, runs);
  const auto learning = learning_charts(runs);
  page.section("Learning");
  learning.empty() ? page.paragraph("Nothing has been logged yet.") : page.charts(learning);
  if (one) add_classes(page, runs[0]);
  page.section("Speed");
  page.charts(speed_charts(runs));
  add_system(page, runs);
  add_configuration(page, runs);
  one ? add_files(page, runs[0], page_folder) : add_files(page, runs, page_folder);
  return page.text();
}

ordered_json report_json(const std::vector<RunRecord>& runs) {
  ordered_json all = {{"runs", ordered_json::array()}, {"differences", ordered_json::object()}};
  for (const RunRecord& run : runs) {
    all["runs"].push_back({{"name", run.name},
                           {"folder", run.folder.string()},
                           {"finished", run.finished()},
                           {"top_1", run.top_1()},
                           {"top_5", run.top_5()},
                           {"best_metric", run.metric},
                           {"metric", run.metric_value()},
                           {"train_minutes", run.train_minutes()},
                           {"images_per_second", run.images_per_second()},
                           {"wait_share", run.wait_share()},
                           {"epochs", epochs_json(run)},
                           {"notes", run.notes}});
  }
  for (const std::string& key : differing_keys(runs))
    for (const RunRecord& run : runs)
      all["differences"][key].push_back(run.params.value(key, ordered_json()));
  return all;
}

void write_run_report(const std::filesystem::path& run_folder) {
  write_file(run_folder / "report.html", report_page({load_run(run_folder)}, run_folder));
}

}  // namespace precast::tools
