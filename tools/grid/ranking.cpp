#include "tools/grid/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/trial/interval.h"
#include "tools/trial/run_log.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// The last epoch of a run that has no summary.
ordered_json last_epoch(const Trial& trial) {
  RunLog log(trial.run_folder());
  log.refresh();
  return log.epochs().empty() ? ordered_json() : log.epochs().rbegin()->second;
}

ordered_json describe_trial(const Sweep& sweep, const Trial& trial, const TrialState& state) {
  ordered_json settings = ordered_json::object();
  for (const Setting& setting : trial.settings) settings[setting.key] = setting.value;
  ordered_json entry = {{"trial", trial.id},
                        {"status", name_of(state.status)},
                        {"settings", settings},
                        {"starts", state.starts},
                        {"failures", state.failures},
                        {"seconds", state.seconds},
                        {"cpu_seconds", state.cpu_seconds},
                        {"run_folder", trial.run_folder().string()}};
  if (state.status == TrialStatus::done) {
    entry["value"] = state.figures.value(sweep.metric, ordered_json());
    entry["figures"] = state.figures;
  } else {
    if (state.starts > 0) entry["exit_code"] = state.exit_code;
    if (const ordered_json epoch = last_epoch(trial); !epoch.is_null()) {
      entry["last_epoch"] = epoch.at("epoch");
      if (epoch.contains(sweep.metric)) entry["last_value"] = epoch.at(sweep.metric);
    }
  }
  return entry;
}

/// Trials that differ in nothing but the seed.
struct Group {
  std::vector<std::string> values;
  std::vector<double> results{};
  std::map<std::string, int> counts{};
  std::vector<std::string> trials{};
};

ordered_json describe_group(const Sweep& sweep, const Group& group) {
  ordered_json settings = ordered_json::object();
  for (std::size_t i = 0; i < sweep.varied.size(); ++i) settings[sweep.varied[i]] = group.values[i];
  const MeanInterval interval = mean_interval(group.results);
  ordered_json entry = {{"settings", settings}, {"count", interval.count}};
  if (interval.count > 0) entry["mean"] = interval.mean;
  if (interval.count > 1) entry["half_width_95"] = interval.half_width;
  entry["statuses"] = group.counts;
  entry["trials"] = group.trials;
  return entry;
}

std::vector<Group> gather(const Sweep& sweep, const ordered_json& trials) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < sweep.trials.size(); ++i) {
    const std::vector<std::string> values = group_of(sweep, sweep.trials[i]);
    auto group = std::ranges::find(groups, values, &Group::values);
    if (group == groups.end()) group = groups.insert(group, {.values = values});
    const ordered_json& trial = trials.at(i);
    ++group->counts[trial.at("status")];
    group->trials.push_back(trial.at("trial"));
    if (trial.contains("value") && trial.at("value").is_number())
      group->results.push_back(trial.at("value"));
  }
  // Stable, so that equals keep the sweep's order.
  std::ranges::stable_sort(groups, [&](const Group& a, const Group& b) {
    if (a.results.empty() || b.results.empty()) return !a.results.empty() && b.results.empty();
    const double left = mean_interval(a.results).mean, right = mean_interval(b.results).mean;
    return sweep.maximise ? left > right : left < right;
  });
  return groups;
}

std::string statuses_text(const ordered_json& statuses) {
  std::string text;
  for (const auto& [name, count] : statuses.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count.get<int>(), name);
  return text;
}

/// Columns as wide as their widest cell, numbers and text alike to the left.
std::string lay_out(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.at(0).size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}   ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace

ordered_json describe_grid(const Sweep& sweep, const std::map<std::string, TrialState>& states) {
  auto trials = ordered_json::array();
  std::map<std::string, int> counts;
  double seconds = 0;
  for (const Trial& trial : sweep.trials) {
    const auto state = states.find(trial.id);
    trials.push_back(
        describe_trial(sweep, trial, state == states.end() ? TrialState{} : state->second));
    ++counts[trials.back().at("status")];
    seconds += trials.back().at("seconds").get<double>();
  }
  auto ranking = ordered_json::array();
  for (const Group& group : gather(sweep, trials)) ranking.push_back(describe_group(sweep, group));
  return {{"folder", sweep.folder.string()},
          {"metric", sweep.metric},
          {"counts", counts},
          {"seconds", seconds},
          {"ranking", ranking},
          {"trials", trials}};
}

std::string ranking_table(const ordered_json& grid) {
  std::vector<std::vector<std::string>> rows;
  int rank = 0;
  for (const ordered_json& entry : grid.at("ranking")) {
    if (rows.empty()) {
      rows.push_back({"rank"});
      for (const auto& [key, value] : entry.at("settings").items()) rows[0].push_back(key);
      rows[0].insert(rows[0].end(), {grid.at("metric"), "trials"});
    }
    const bool ranked = entry.contains("mean");
    std::vector<std::string> row = {ranked ? std::to_string(++rank) : "-"};
    for (const auto& [key, value] : entry.at("settings").items())
      row.push_back(value.get<std::string>());
    std::string figure = ranked ? fmt::format("{:.4f}", entry.at("mean").get<double>()) : "-";
    if (entry.contains("half_width_95"))
      figure += fmt::format(" +- {:.4f}", entry.at("half_width_95").get<double>());
    row.insert(row.end(), {figure, statuses_text(entry.at("statuses"))});
    rows.push_back(std::move(row));
  }
  return rows.empty() ? "" : lay_out(rows);
}

}  // namespace precast::tools
