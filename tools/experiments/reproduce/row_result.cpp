#include "tools/experiments/reproduce/row_result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

#include "tools/report/run_record.h"

namespace precast::tools {
namespace {

std::vector<CurvePoint> curve_of(const RunRecord& record) {
  std::vector<CurvePoint> curve;
  double val_seconds = 0;
  for (const RunRow& row : record.epochs) {
    if (std::isfinite(row.val_seconds)) val_seconds += row.val_seconds;
    // Without an evaluation after each epoch, only the last epoch has a top-1 accuracy.
    if (!std::isfinite(row.top_1)) continue;
    curve.push_back({row.epochs_done, (row.train_seconds + val_seconds) / 60, row.top_1});
  }
  return curve;
}

/// Adds a setting, or replaces the setting with the same key.
void set_or_replace(std::vector<Setting>& settings, const Setting& setting) {
  std::erase_if(settings, [&](const Setting& other) { return other.key == setting.key; });
  settings.push_back(setting);
}

template <typename Value>
std::optional<MeanInterval> over_runs(const std::vector<SeedRun>& runs, const Value& value) {
  std::vector<double> values;
  for (const SeedRun& run : runs) {
    if (run.status != TrialStatus::done) continue;
    if (const double figure = value(run.summary); std::isfinite(figure)) values.push_back(figure);
  }
  if (values.empty()) return std::nullopt;
  return mean_interval(values);
}

}  // namespace

std::optional<MeanInterval> RowResult::figure(const char* key) const {
  return over_runs(
      runs, [key](const nlohmann::ordered_json& summary) { return number_of(summary, key); });
}

std::optional<MeanInterval> RowResult::minutes() const {
  return over_runs(runs, [](const nlohmann::ordered_json& summary) {
    return number_of(summary, "train_minutes") + number_of(summary, "eval_minutes");
  });
}

std::string RowResult::progress() const {
  std::map<TrialStatus, std::vector<std::int64_t>> seeds;
  for (const SeedRun& run : runs) seeds[run.status].push_back(run.seed);
  const std::size_t done = seeds[TrialStatus::done].size();
  seeds.erase(TrialStatus::done);
  seeds.erase(TrialStatus::waiting);
  std::vector<std::string> ended;
  for (const auto& [status, those] : seeds) {
    ended.push_back(fmt::format("seed{} {}: {}", those.size() == 1 ? "" : "s",
                                fmt::join(those, ", "), name_of(status)));
  }
  return ended.empty() ? fmt::format("{} of {}", done, runs.size())
                       : fmt::format("{}", fmt::join(ended, "; "));
}

Trial make_row_trial(const TableRow& row, std::int64_t seed, const std::vector<Setting>& settings,
                     const std::filesystem::path& folder) {
  Trial trial{.id = fmt::format("{}-seed{}", row.id, seed),
              .recipe = row.recipe,
              .settings = row.settings,
              .folder = folder};
  for (const Setting& setting : settings) set_or_replace(trial.settings, setting);
  set_or_replace(trial.settings, {"training.seed", fmt::format("{}", seed)});
  return trial;
}

std::vector<RowResult> collect_results(const std::vector<RowTrials>& rows,
                                       const std::map<std::string, TrialState>& states) {
  std::vector<RowResult> results;
  for (const RowTrials& row : rows) {
    results.push_back({row.row, {}});
    for (const Trial& trial : row.trials) {
      SeedRun run;
      run.seed = static_cast<std::int64_t>(results.back().runs.size());
      run.trial = trial;
      if (const auto found = states.find(trial.id); found != states.end()) {
        run.status = found->second.status;
        run.summary = found->second.figures;
      }
      run.has_report = std::filesystem::exists(trial.run_folder() / "report.html");
      if (std::filesystem::exists(trial.run_folder() / "log")) {
        const RunRecord record = load_run(trial.run_folder());
        run.facts = record.facts;
        run.curve = curve_of(record);
      }
      results.back().runs.push_back(std::move(run));
    }
  }
  return results;
}

}  // namespace precast::tools
