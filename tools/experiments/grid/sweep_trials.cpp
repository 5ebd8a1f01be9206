#include "tools/experiments/grid/sweep_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "framework/core/log.h"

namespace precast::tools {
namespace {

constexpr std::size_t kMaxTrials = 100'000;

/// Returns a trial's id. Its readable part shows the settings that vary; its hash also covers the
/// `fixed` settings.
std::string id_of(const std::vector<Setting>& varied, const std::vector<Setting>& fixed) {
  std::vector<Setting> all = varied;
  all.insert(all.end(), fixed.begin(), fixed.end());
  const std::string prefix = trial_id(varied);
  const std::string full_id = trial_id(all);
  return prefix.substr(0, prefix.rfind('-')) + full_id.substr(full_id.rfind('-'));
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code none;
  return std::filesystem::is_directory(path, none);
}

}  // namespace

void add_trials(Sweep& sweep, const std::vector<SweepAxis>& fixed, const AxisProduct& product,
                Diagnostics& diagnostics) {
  const std::optional<std::size_t> count = product.size(kMaxTrials);
  if (!count) {
    diagnostics.error({sweep.path.string(), 0, 0}, "axes",
                      fmt::format("expected at most {} trials, got more", kMaxTrials));
  }
  std::vector<Setting> fixed_settings, id_settings;
  for (const SweepAxis& axis : fixed) fixed_settings.push_back({axis.key, axis.values[0].text});
  std::ranges::copy_if(fixed_settings, std::back_inserter(id_settings), changes_results);
  const std::filesystem::path runs = sweep.folder / "runs";
  std::set<std::string> ids;
  for (std::size_t number = 0; number < count.value_or(0); ++number) {
    std::vector<Setting> settings = product.settings(number);
    std::string id = id_of(settings, id_settings);
    if (id_settings.size() < fixed_settings.size()) {  // earlier versions hashed all settings
      std::string old_id = id_of(settings, fixed_settings);
      if (is_folder(runs / old_id)) id = std::move(old_id);
    }
    // With drawn values, the same combination may occur twice.
    if (!ids.insert(id).second) continue;
    settings.insert(settings.end(), fixed_settings.begin(), fixed_settings.end());
    sweep.trials.push_back({.id = std::move(id),
                            .recipe = sweep.recipe,
                            .settings = std::move(settings),
                            .folder = runs});
  }
  if (sweep.trials.size() < count.value_or(0)) {
    log_warning(
        "{}: axes: expected {} different combinations of values, got {}, because some drawn values "
        "are equal. Each combination is trained once",
        sweep.path.string(), *count, sweep.trials.size());
  }
}

}  // namespace precast::tools
