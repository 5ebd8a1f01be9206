#include "tools/experiments/grid/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "framework/core/file_lock.h"
#include "tools/experiments/grid/occupancy.h"
#include "tools/experiments/grid/reason.h"
#include "tools/experiments/grid/shared_loaders.h"
#include "tools/experiments/trial/interval.h"
#include "tools/experiments/trial/run_log.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// Whether the trial was started, its end is not recorded, and a process holds its lock. The check
/// itself holds the lock for a moment; a process that tries to train the trial at that moment
/// retries.
bool is_running(const Trial& trial, const TrialState& state) {
  const std::filesystem::path lock = trial.run_folder() / "lock";
  if (state.open_since == 0 || !std::filesystem::exists(lock)) return false;
  try {
    return !FileLock::try_lock(lock, FileLock::Kind::shared);
  } catch (const IoError&) {  // no permission
    return true;
  }
}

/// Returns the last epoch in the log of a run without a summary; null if there is none.
ordered_json last_epoch(const Trial& trial) {
  RunLog log(trial.run_folder());
  log.refresh();
  return log.epochs().empty() ? ordered_json() : log.epochs().rbegin()->second;
}

ordered_json describe_trial(const Sweep& sweep, const Trial& trial, const TrialState& state) {
  ordered_json settings = ordered_json::object();
  for (const Setting& setting : trial.settings) settings[setting.key] = setting.value;
  ordered_json entry = {{"trial", trial.id},
                        {"status", is_running(trial, state) ? "running" : name_of(state.status)},
                        {"settings", settings},
                        {"starts", state.starts},
                        {"failures", state.failures},
                        {"seconds", state.seconds},
                        {"cpu_seconds", state.cpu_seconds},
                        {"run_folder", trial.run_folder().string()}};
  if (state.status == TrialStatus::done) {
    entry["value"] = state.figures.value(sweep.metric, ordered_json());
    entry["figures"] = state.figures;
  } else if (state.starts > 0) {
    entry["exit_code"] = state.exit_code;
    if (const std::string reason = reason_of(trial, state); !reason.empty())
      entry["reason"] = reason;
    if (const ordered_json epoch = last_epoch(trial); !epoch.is_null()) {
      entry["last_epoch"] = epoch.at("epoch");
      if (epoch.contains(sweep.metric)) entry["last_value"] = epoch.at(sweep.metric);
    }
  }
  return entry;
}

ordered_json describe_trials(const Sweep& sweep, const std::map<std::string, TrialState>& states) {
  auto trials = ordered_json::array();
  for (const Trial& trial : sweep.trials) {
    const auto state = states.find(trial.id);
    trials.push_back(
        describe_trial(sweep, trial, state == states.end() ? TrialState{} : state->second));
  }
  return trials;
}

/// Trials that differ only in the seed.
struct Group {
  std::vector<std::string> values;
  std::vector<double> results{};
  std::map<std::string, int> counts{};
  std::vector<std::string> trials{};

  /// Whether every trial has a result. A mean over only some of the seeds would not be comparable.
  [[nodiscard]] bool is_complete() const { return results.size() == trials.size(); }
};

ordered_json describe_group(const Sweep& sweep, const Group& group) {
  ordered_json settings = ordered_json::object();
  for (std::size_t i = 0; i < sweep.varied.size(); ++i) settings[sweep.varied[i]] = group.values[i];
  const MeanInterval interval = mean_interval(group.results);
  ordered_json entry = {{"settings", settings}, {"count", interval.count}};
  if (interval.count > 0) entry["mean"] = interval.mean;
  entry["half_width_95"] = interval.count > 1 ? ordered_json(interval.half_width) : ordered_json();
  entry["complete"] = group.is_complete();
  entry["statuses"] = group.counts;
  entry["trials"] = group.trials;
  return entry;
}

std::vector<Group> gather(const Sweep& sweep, const ordered_json& trials) {
  std::vector<Group> groups;
  std::map<std::vector<std::string>, std::size_t> group_index;
  for (std::size_t i = 0; i < sweep.trials.size(); ++i) {
    const std::vector<std::string> values = group_of(sweep, sweep.trials[i]);
    const auto [it, added] = group_index.emplace(values, groups.size());
    if (added) groups.push_back({.values = values});
    Group& group = groups[it->second];
    const ordered_json& trial = trials.at(i);
    ++group.counts[trial.at("status")];
    group.trials.push_back(trial.at("trial"));
    if (trial.contains("value") && trial.at("value").is_number())
      group.results.push_back(trial.at("value"));
  }
  return groups;
}

/// Sorts the combinations: first those with results for all trials, then those with some results,
/// then those without any.
void rank(std::vector<Group>& groups, bool maximise) {
  const auto kind = [](const Group& group) {
    return group.is_complete() ? 0 : group.results.empty() ? 2 : 1;
  };
  // The sort is stable, so that equal combinations keep the sweep's order.
  std::ranges::stable_sort(groups, [&](const Group& a, const Group& b) {
    if (kind(a) != kind(b)) return kind(a) < kind(b);
    if (kind(a) == 2) return false;
    const double left = mean_interval(a.results).mean, right = mean_interval(b.results).mean;
    return maximise ? left > right : left < right;
  });
}

/// Lays out a table. Each column is as wide as its widest cell, and all cells are left-aligned.
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
  const ordered_json trials = describe_trials(sweep, states);
  std::map<std::string, int> counts;
  double seconds = 0;
  for (const ordered_json& trial : trials) {
    ++counts[trial.at("status")];
    seconds += trial.at("seconds").get<double>();
  }
  auto ranking = ordered_json::array();
  std::vector<Group> groups = gather(sweep, trials);
  rank(groups, sweep.maximise);
  for (const Group& group : groups) {
    ordered_json entry = describe_group(sweep, group);
    entry["rank"] = nullptr;
    if (group.is_complete()) {
      const bool same = !ranking.empty() && ranking.back().at("mean") == entry.at("mean");
      entry["rank"] = same ? ranking.back().at("rank") : ordered_json(ranking.size() + 1);
    }
    ranking.push_back(std::move(entry));
  }
  const Occupancy slots = occupancy(read_journals(sweep.folder, /*warns=*/false));
  ordered_json grid = {{"folder", sweep.folder.string()},
                       {"metric", sweep.metric},
                       {"maximise", sweep.maximise},
                       {"counts", counts},
                       {"seconds", seconds},
                       {"wall_seconds", slots.wall_seconds},
                       {"slot_seconds", slots.slot_seconds},
                       {"busy_seconds", slots.busy_seconds}};
  if (const auto shared = count_shared_decodes(sweep.folder))
    grid["shared_loaders"] = {{"samples_decoded", shared->decoded},
                              {"samples_delivered", shared->delivered},
                              {"decodes_saved", shared->saved()}};
  grid["ranking"] = ranking;
  grid["trials"] = trials;
  return grid;
}

std::string statuses_text(const ordered_json& statuses) {
  std::string text;
  for (const auto& [name, count] : statuses.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count.get<int>(), name);
  return text;
}

std::string rank_text(const ordered_json& entry) {
  return entry.at("rank").is_number() ? entry.at("rank").dump() : "-";
}

std::string mean_text(const ordered_json& entry, std::string_view metric,
                      std::string_view plus_minus) {
  if (!entry.contains("mean")) return "-";
  std::string text = figure_text(entry.at("mean"), metric);
  if (const ordered_json& half = entry.at("half_width_95"); half.is_number())
    text += fmt::format(" {} {}", plus_minus, figure_text(half, metric));
  return text;
}

std::string ranking_table(const ordered_json& grid) {
  std::vector<std::vector<std::string>> rows;
  const std::string metric = grid.at("metric");
  for (const ordered_json& entry : grid.at("ranking")) {
    if (rows.empty()) {
      rows.push_back({"rank"});
      for (const auto& [key, value] : entry.at("settings").items()) rows[0].push_back(key);
      rows[0].insert(rows[0].end(), {metric, "trials"});
    }
    std::vector<std::string> row = {rank_text(entry)};
    for (const auto& [key, value] : entry.at("settings").items())
      row.push_back(value.get<std::string>());
    row.insert(row.end(), {mean_text(entry, metric, "+-"), statuses_text(entry.at("statuses"))});
    rows.push_back(std::move(row));
  }
  return (rows.empty() ? "" : lay_out(rows)) + shared_loaders_text(grid);
}

std::string shared_loaders_text(const ordered_json& grid) {
  const auto loaders = grid.find("shared_loaders");
  if (loaders == grid.end()) return {};
  return fmt::format(
      "shared loaders: {} samples decoded, {} delivered to trials, {} decodes saved\n",
      loaders->at("samples_decoded").get<std::uint64_t>(),
      loaders->at("samples_delivered").get<std::uint64_t>(),
      loaders->at("decodes_saved").get<std::uint64_t>());
}

}  // namespace precast::tools
