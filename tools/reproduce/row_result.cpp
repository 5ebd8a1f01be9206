#include "tools/reproduce/row_result.h"

#include <fmt/format.h>

#include <cmath>

#include "framework/core/error.h"
#include "tools/report/run_record.h"

namespace precast::tools {
namespace {

std::vector<CurvePoint> curve_of(const RunRecord& record) {
  std::vector<CurvePoint> curve;
  double val_seconds = 0;
  for (const RunRow& row : record.epochs) {
    if (std::isfinite(row.val_seconds)) val_seconds += row.val_seconds;
    // Without an evaluation after each epoch the last one alone has a figure.
    if (!std::isfinite(row.top_1)) continue;
    curve.push_back({row.epochs_done, (row.train_seconds + val_seconds) / 60, row.top_1});
  }
  return curve;
}

/// The last one given for a key counts.
void give(std::vector<Setting>& settings, const Setting& setting) {
  std::erase_if(settings, [&](const Setting& other) { return other.key == setting.key; });
  settings.push_back(setting);
}

template <typename Value>
std::optional<MeanInterval> over_runs(const std::vector<SeedRun>& runs, const Value& value) {
  std::vector<double> values;
  for (const SeedRun& run : runs) {
    if (run.status == TrialStatus::done) values.push_back(value(run.summary));
  }
  if (values.empty()) return std::nullopt;
  return mean_interval(values);
}

}  // namespace

std::optional<MeanInterval> RowResult::figure(const char* key) const {
  return over_runs(
      runs, [key](const nlohmann::ordered_json& summary) { return summary.at(key).get<double>(); });
}

std::optional<MeanInterval> RowResult::minutes() const {
  return over_runs(runs, [](const nlohmann::ordered_json& summary) {
    return summary.at("train_minutes").get<double>() + summary.at("eval_minutes").get<double>();
  });
}

std::string RowResult::progress() const {
  std::size_t done = 0;
  for (const SeedRun& run : runs) {
    if (run.status == TrialStatus::done) {
      ++done;
    } else if (run.status != TrialStatus::waiting) {
      return fmt::format("seed {}: {}", run.seed, name_of(run.status));
    }
  }
  return fmt::format("{} of {}", done, runs.size());
}

std::vector<Trial> make_row_trials(const std::vector<const TableRow*>& rows, std::int64_t seeds,
                                   const std::vector<Setting>& settings,
                                   const std::filesystem::path& folder) {
  std::vector<Trial> trials;
  for (std::int64_t seed = 0; seed < seeds; ++seed) {
    for (const TableRow* row : rows) {
      Trial trial{.id = fmt::format("{}-seed{}", row->id, seed),
                  .recipe = row->recipe,
                  .settings = row->settings,
                  .folder = folder};
      for (const Setting& setting : settings) give(trial.settings, setting);
      give(trial.settings, {"training.seed", fmt::format("{}", seed)});
      trials.push_back(std::move(trial));
    }
  }
  return trials;
}

std::vector<RowResult> collect_results(const std::vector<const TableRow*>& rows,
                                       const std::vector<Trial>& trials,
                                       const std::map<std::string, TrialState>& states) {
  require(!rows.empty() && trials.size() % rows.size() == 0, "trials are those of the rows");
  std::vector<RowResult> results(rows.size());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    RowResult& result = results[i % rows.size()];
    result.row = rows[i % rows.size()];
    SeedRun run;
    run.seed = static_cast<std::int64_t>(i / rows.size());
    run.trial = trials[i];
    if (const auto found = states.find(trials[i].id); found != states.end()) {
      run.status = found->second.status;
      run.summary = found->second.figures;
    }
    if (std::filesystem::exists(trials[i].run_folder() / "log")) {
      const RunRecord record = load_run(trials[i].run_folder());
      run.facts = record.facts;
      run.curve = curve_of(record);
    }
    result.runs.push_back(std::move(run));
  }
  return results;
}

}  // namespace precast::tools
