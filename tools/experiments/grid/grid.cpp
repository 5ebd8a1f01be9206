#include "tools/experiments/grid/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/core/parse_number.h"
#include "framework/core/system.h"
#include "framework/core/unix_time.h"
#include "tools/cli/arguments.h"
#include "tools/cli/json_output.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/recipe_file.h"
#include "tools/cli/shared_options.h"
#include "tools/experiments/grid/check.h"
#include "tools/experiments/grid/grid_page.h"
#include "tools/experiments/grid/loss_axes.h"
#include "tools/experiments/grid/occupancy.h"
#include "tools/experiments/grid/ranking.h"
#include "tools/experiments/grid/shared_loaders.h"
#include "tools/experiments/grid/slurm_array.h"
#include "tools/experiments/grid/sweep.h"
#include "tools/experiments/grid/sweep_file.h"
#include "tools/experiments/grid/watcher.h"
#include "tools/experiments/trial/job_lock.h"
#include "tools/experiments/trial/trial_pool.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;
using States = std::map<std::string, TrialState>;

Arguments make_arguments() {
  Arguments arguments(
      "grid SWEEP.yaml [--section.key=value ...] [options]",
      "Trains a recipe with every combination of the values of some keys, several trials at the "
      "same time, and ranks the combinations. To continue a command that was stopped or killed, "
      "run it again. Keys given here are set in all trials, like the keys in `set` of the sweep.");
  arguments.positional("SWEEP.yaml", "the sweep: recipe, axes and slots");
  arguments.options().add_options()("dry-run", kDryRunHelp)("status", kStatusHelp)(
      "json", kJsonHelp)("retry-failed", kRetryFailedHelp)(
      "slurm-script", "print a batch script for sbatch; it has one array task for each trial")(
      "trial", po::value<std::string>()->value_name("NAME"),
      "run only this trial; NAME is its name or index, as --dry-run lists them")(
      "program", po::value<std::string>()->value_name("FILE"), kProgramHelp);
  arguments.take_keys({});
  arguments.example("precast grid sweep.yaml --dry-run");
  arguments.example("precast grid sweep.yaml --training.epochs=2 --data.num_workers=4");
  arguments.exit_codes({3, 4, 6, 85});
  return arguments;
}

/// @throws ConfigError for two options that exclude each other, because one would have no effect.
void check_exclusive_options(const Arguments& options) {
  constexpr std::pair<const char*, const char*> kExclusive[] = {
      {"status", "dry-run"},      {"status", "trial"},
      {"status", "slurm-script"}, {"slurm-script", "dry-run"},
      {"slurm-script", "trial"},  {"slurm-script", "json"},
      {"trial", "json"}};
  for (const auto& [one, other] : kExclusive) {
    if (options.has(one) && options.has(other))
      throw ConfigError(fmt::format("expected --{} or --{}, got both", one, other));
  }
}

/// @return false if a signal stopped the check.
bool check_covering_trials(const Sweep& sweep, SweepFile& file, const DryRunOptions& options) {
  file.discard_stale_checks(options.slots);
  std::vector<const Trial*> trials = covering_trials(sweep);
  const auto is_checked = [&](const Trial* trial) { return file.is_checked(*trial); };
  if (std::ranges::all_of(trials, is_checked)) return true;
  // Trials that were checked before are checked again, because they may be the only ones that read
  // a key.
  if (!check_trials(sweep, trials, options)) return false;
  std::erase_if(trials, is_checked);
  file.add_checked(trials);
  return true;
}

/// Checks trials of a sweep that may be trained on another host. @return false if a signal stopped
/// the check.
bool check_for_dry_run(const Sweep& sweep, const std::vector<const Trial*>& trials,
                       const std::filesystem::path& program, const std::vector<Slot>& slots) {
  static_cast<void>(SweepFile(sweep));
  return check_trials(sweep, trials, {.program = program, .slots = slots, .trains_here = false});
}

void print_trial(const Sweep& sweep, std::size_t index) {
  fmt::print("{:>4}  {}\n", index, sweep.trials[index].id);
}

void print_trials(const Sweep& sweep, const std::vector<Slot>& slots, bool json) {
  auto trials = ordered_json::array();
  for (const Trial& trial : sweep.trials) {
    trials.push_back({{"trial", trial.id}, {"arguments", trial.train_arguments()}});
  }
  if (json) {
    print_json(trials);
    return;
  }
  for (std::size_t i = 0; i < sweep.trials.size(); ++i) print_trial(sweep, i);
  fmt::print("{} in {}:", format_count(sweep.trials.size(), "trial"),
             format_count(slots.size(), "slot"));
  for (const Slot& slot : slots)
    fmt::print(" {} (cores {})", slot.name, fmt::join(slot.cores, ","));
  fmt::print("\n");
}

/// Writes grid.html. If that fails, only warns.
void write_page(const Sweep& sweep, const States& states) {
  try {
    GridPage(sweep).write(states);
  } catch (const IoError& error) {  // such as no permission or a full disk
    log_warning("{}", error.what());
  }
}

/// Warns if trials are done, but none of them has the figure to rank by.
void warn_if_metric_is_missing(const Sweep& sweep, const ordered_json& grid) {
  std::set<std::string> figures;
  for (const ordered_json& trial : grid.at("trials")) {
    if (!trial.contains("figures")) continue;
    for (const auto& [name, value] : trial.at("figures").items()) {
      // A figure that is not finite is null.
      if (value.is_number() || value.is_null()) figures.insert(name);
    }
  }
  if (figures.empty() || figures.contains(sweep.metric)) return;
  log_warning(
      "{}: metric: expected a figure of the trials' summary.json, got {}, which none of them has. "
      "Set it to one of {}",
      sweep.path.string(), sweep.metric, fmt::join(figures, ", "));
}

void show_results(const Sweep& sweep, const States& states, bool json) {
  const ordered_json grid = describe_grid(sweep, states);
  warn_if_metric_is_missing(sweep, grid);
  if (json) {
    print_json(grid);
  } else {
    fmt::print("{}", ranking_table(grid));
  }
}

PoolOptions pool_options(const Sweep& sweep, const std::filesystem::path& program,
                         std::vector<Slot> slots) {
  return {.program = program,
          .slots = std::move(slots),
          .max_retries = sweep.max_retries,
          .retry_pause = sweep.retry_pause};
}

States read_states(const Sweep& sweep, bool retry_failed) {
  States states = fold_states(read_journals(sweep.folder));
  if (retry_failed) reset_failures(states);
  return states;
}

/// Warns if the recipe, a plug-in or a dataset has changed since the results in the folder were
/// written.
void warn_if_changed(const Sweep& sweep) {
  try {
    static_cast<void>(SweepFile(sweep));
  } catch (const Error& error) {
    log_warning("{}", error.what());
  }
}

/// Records the early stops that a killed grid could not record.
void record_missed_early_stops(GridWatcher& watcher, Journal& journal, States& states) {
  for (const Trial* trial : watcher.missed_early_stops()) {
    TrialState& state = states[trial->id];
    const ordered_json record = {{"event", "end"},
                                 {"trial", trial->id},
                                 {"attempt", state.starts},
                                 {"status", name_of(TrialStatus::stopped)},
                                 {"exit_code", static_cast<int>(ExitCode::preempted)},
                                 {"end_unseen", true},
                                 {"time", unix_seconds()}};
    journal.append(record);
    state.apply(record);
  }
}

ExitCode train_all(const Sweep& sweep, const SweepFile& file, const std::filesystem::path& program,
                   const std::vector<Slot>& slots, Journal& journal, States& states) {
  std::unique_ptr<SharedLoaders> loaders;
  if (sweep.share_loader) loaders = std::make_unique<SharedLoaders>(sweep, program, slots);
  GridWatcher watcher(sweep, file, states, journal, slots.size(), std::move(loaders));
  TrialPool pool(pool_options(sweep, program, slots), journal, states, watcher);
  journal.append({{"event", "begin"}, {"slots", slots.size()}, {"time", unix_seconds()}});
  record_missed_early_stops(watcher, journal, states);
  const std::vector<Trial> trials = sweep.share_loader ? order_by_cohort(sweep) : sweep.trials;
  const ExitCode code = pool.run(trials);
  journal.append({{"event", "finish"}, {"time", unix_seconds()}});
  return code;
}

/// Whether any trial may train on a GPU.
bool may_use_gpu(const Sweep& sweep) {
  Diagnostics ignored;  // the trials report mistakes in the recipe
  const ConfigNode recipe = read_recipe_file(sweep.recipe, ignored).sections;
  return std::ranges::any_of(sweep.trials, [&](const Trial& trial) {
    return value_of("training.device", recipe, trial.settings).scalar != "cpu";
  });
}

/// The slots for all trials. @throws DeviceError if a trial may train on a GPU, but `grid.devices`
/// names GPUs that this process cannot use: the trial would train on the CPU. For a dry run, this
/// is only a warning, because the trials may run on another host.
std::vector<Slot> slots_of(const Sweep& sweep, bool is_dry_run) {
  const std::vector<std::string> gpus = visible_gpus();
  const std::vector<std::string> missing = missing_gpus(sweep.slots, gpus);
  if (!missing.empty() && may_use_gpu(sweep)) {
    const std::string text = fmt::format(
        "{}: grid.devices: expected indices, from 0, of the {} that this process can use, got {}. "
        "Set it to auto or cpu, or set CUDA_VISIBLE_DEVICES if this host has other GPUs",
        sweep.devices_origin.text(), format_count(gpus.size(), "GPU"), fmt::join(missing, ", "));
    if (!is_dry_run) throw DeviceError(text);
    log_warning("{}", text);
  }
  return make_slots(sweep.slots, allowed_cores(), gpus, usable_cores());
}

/// Runs all trials of the sweep or, with --dry-run, checks and lists them.
int run_all(const Sweep& sweep, const std::filesystem::path& program, const Arguments& options) {
  const std::vector<Slot> slots = slots_of(sweep, options.has("dry-run"));
  if (options.has("dry-run")) {
    if (!check_for_dry_run(sweep, covering_trials(sweep), program, slots)) return report_stopped();
    print_trials(sweep, slots, options.has("json"));
    return 0;
  }
  create_folders(sweep.folder);
  const FileLock lock = lock_job_folder(sweep.folder, FileLock::Kind::exclusive);
  SweepFile file(sweep);
  // A key that an older version accepted must not make the results of a grid unusable.
  const bool is_new = read_journals(sweep.folder, /*warns=*/false).empty();
  if (!check_covering_trials(sweep, file,
                             {.program = program,
                              .slots = slots,
                              .unread = is_new ? UnreadSettings::reject : UnreadSettings::warn}))
    return report_stopped();
  file.ensure_written();
  Journal journal(sweep.folder / "results.jsonl");
  States states = read_states(sweep, options.has("retry-failed"));
  const ExitCode code = train_all(sweep, file, program, slots, journal, states);
  write_page(sweep, states);
  if (code == ExitCode::usage)
    throw ConfigError(
        "a trial's recipe, keys or program is invalid; see above. The grid has stopped, because "
        "its other trials would probably fail in the same way");
  if (code == ExitCode::preempted) return report_stopped();
  show_results(sweep, states, options.has("json"));
  log_info("=> grid.html and the runs are in {}", sweep.folder.string());
  return static_cast<int>(code);
}

/// Shows the progress of one trial, and checks its recipe whenever it starts.
class TaskDisplay final : public PoolDisplay {
 public:
  TaskDisplay(const std::vector<Trial>& trials, const SweepFile& file, const States& states,
              const std::string& metric)
      : PoolDisplay(trials, states, 1, metric), file_(file) {}
  void starting(const Trial& /*trial*/) override { file_.check(); }

 private:
  const SweepFile& file_;
};

/// @param text the name or the index of a trial. @return its index
std::size_t find_trial(const Sweep& sweep, const std::string& text) {
  const auto named = std::ranges::find(sweep.trials, text, &Trial::id);
  if (named != sweep.trials.end()) return static_cast<std::size_t>(named - sweep.trials.begin());
  const auto index = parse_number<std::size_t>(text);
  if (!index || *index >= sweep.trials.size()) {
    throw ConfigError(fmt::format(
        "--trial: expected the name of a trial of {}, or its index, 0 to {}, got '{}'. If the "
        "sweep has changed since `--slurm-script`, print a new script",
        sweep.path.string(), sweep.trials.size() - 1, text));
  }
  return *index;
}

/// Says why a trial that has ended before does not run again; nothing if it will run.
void report_ended(const Trial& trial, const TrialState& state, const std::string& metric) {
  switch (state.status) {
    case TrialStatus::waiting:
      return;
    case TrialStatus::done:
      return log_info("{}: is already done, {} {}", trial.id, metric,
                      figure_text(state.figures.value(metric, ordered_json()), metric));
    case TrialStatus::diverged:
      return log_info("{}: has diverged and is not run again", trial.id);
    case TrialStatus::failed:
      return log_info(
          "{}: has failed, {}, and is not run again. To run it again, add --retry-failed", trial.id,
          exit_text(state.exit_code));
    case TrialStatus::stopped:
      return log_info("{}: was stopped early and is not run again", trial.id);
  }
}

/// Trains one trial with all GPUs and cores of this process, as a task of a Slurm array.
int run_one(const Sweep& sweep, const std::filesystem::path& program, const Arguments& options) {
  const std::size_t index = find_trial(sweep, options.text("trial"));
  const Trial& trial = sweep.trials[index];
  const Slot slot{.name = kTaskSlot,
                  .gpu = fmt::format("{}", fmt::join(visible_gpus(), ",")),
                  .cores = allowed_cores()};
  if (options.has("dry-run")) {
    if (!check_for_dry_run(sweep, {&trial}, program, {slot})) return report_stopped();
    print_trial(sweep, index);
    return 0;
  }
  create_folders(sweep.folder);
  const FileLock lock = lock_job_folder(sweep.folder, FileLock::Kind::shared);
  SweepFile file(sweep);
  file.ensure_written();
  // Not named after the index, because a trial's index changes if the sweep is extended.
  Journal journal(sweep.folder / fmt::format("results-{}.jsonl", trial.id));
  States states = read_states(sweep, options.has("retry-failed"));
  report_ended(trial, states[trial.id], sweep.metric);
  // A task does not see the whole grid: it neither writes the page nor stops trials early.
  const std::vector<Trial> trials = {trial};
  TaskDisplay display(trials, file, states, sweep.metric);
  TrialPool pool(pool_options(sweep, program, {slot}), journal, states, display);
  return static_cast<int>(pool.run(trials));
}

}  // namespace

int run_grid(const std::vector<std::string>& args) {
  std::vector<std::string> own = args;
  const std::vector<Override> overrides = take_overrides(own);
  Arguments options = make_arguments();
  if (!options.parse(own)) return 0;
  check_exclusive_options(options);
  const Sweep sweep = read_sweep(options.text("SWEEP.yaml"), overrides);
  const std::filesystem::path program = options.has("program")
                                            ? std::filesystem::absolute(options.text("program"))
                                            : executable_path();
  // A task of a Slurm array runs one trial, and compares none.
  if (!options.has("trial")) {
    for (const std::string& text : incomparable_losses(sweep)) log_warning("{}", text);
  }
  if (options.has("slurm-script")) {
    create_folders(sweep.folder);
    fmt::print("{}", slurm_script(sweep, program));
    return 0;
  }
  if (options.has("status")) {
    warn_if_changed(sweep);
    const States states = read_states(sweep, false);
    write_page(sweep, states);
    show_results(sweep, states, options.has("json"));
    return 0;
  }
  if (options.has("trial")) return run_one(sweep, program, options);
  return run_all(sweep, program, options);
}

}  // namespace precast::tools
