#include "tools/experiments/reproduce/reproduce.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <filesystem>
#include <iterator>
#include <span>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/system.h"
#include "tools/cli/arguments.h"
#include "tools/cli/json_output.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/recipe_file.h"
#include "tools/cli/shared_options.h"
#include "tools/experiments/reproduce/job_file.h"
#include "tools/experiments/reproduce/projection.h"
#include "tools/experiments/reproduce/row_result.h"
#include "tools/experiments/reproduce/table.h"
#include "tools/experiments/reproduce/table_page.h"
#include "tools/experiments/reproduce/table_text.h"
#include "tools/experiments/trial/check.h"
#include "tools/experiments/trial/job_lock.h"
#include "tools/experiments/trial/pool_display.h"
#include "tools/experiments/trial/trial_pool.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using States = std::map<std::string, TrialState>;

constexpr std::int64_t kMaxSeeds = 1000;

Arguments make_arguments() {
  Arguments arguments(
      "reproduce TABLE.yaml [--section.key=value ...] [options]",
      "Trains the rows of a published table of accuracies and times, and writes table.md, "
      "table.json and report.html with both the published and the new figures. To continue a "
      "command that was stopped or killed, run it again. Keys given here are set in all rows.");
  arguments.positional("TABLE.yaml", "the table, such as configs/imagenet/table.yaml");
  arguments.options().add_options()("rows", po::value<std::string>()->value_name("LIST"),
                                    "only these rows; rn18_16,rn18_24; default: all")(
      "seeds", po::value<std::int64_t>()->default_value(1),
      "number of training runs of each row; with training.seed 0, 1 ...")(
      "folder", po::value<std::string>()->value_name("FOLDER"),
      "folder of the runs and the table; default: runs/<name of the table's folder>")(
      "at-once", po::value<std::int64_t>()->default_value(1),
      "number of training runs at the same time; each uses an equal share of the GPUs and cores")(
      "project", po::value<std::string>()->value_name("CARD"),
      "instead of training, estimate with a cost model how long training takes on a GPU; "
      "a100_40gb, a100_80gb, h100, h200 or v100; the estimates are written to projection.md and "
      "projection.json")("dry-run", kDryRunHelp)("status", kStatusHelp)("json", kJsonHelp)(
      "retry-failed", kRetryFailedHelp)("program", po::value<std::string>()->value_name("FILE"),
                                        kProgramHelp);
  arguments.take_keys({});
  arguments.example("precast reproduce configs/imagenet/table.yaml --rows rn18_16 --dry-run");
  arguments.example("precast reproduce configs/imagenet/table.yaml --seeds 3 --at-once 8");
  arguments.example("precast reproduce configs/imagenet/table.yaml --project h200");
  arguments.exit_codes({3, 4, 6, 85});
  return arguments;
}

std::vector<Setting> to_settings(const std::vector<Override>& overrides) {
  std::vector<Setting> settings;
  for (const Override& one : overrides) settings.push_back({one.key, setting_text(one.value)});
  return settings;
}

std::vector<const TableRow*> choose_rows(const ResultTable& table, const Arguments& options) {
  std::vector<const TableRow*> rows;
  if (!options.has("rows")) {
    for (const TableRow& row : table.rows) rows.push_back(&row);
    return rows;
  }
  std::vector<std::string_view> names;
  for (const TableRow& row : table.rows) names.push_back(row.id);
  for (const std::string& name : split_list("rows", options.text("rows"))) {
    rows.push_back(&table.rows[find_name("rows", names, name)]);
    if (std::count(rows.begin(), rows.end(), rows.back()) > 1)
      throw ConfigError(fmt::format("--rows: expected each row once, got '{}' twice", name));
  }
  return rows;
}

/// A table, the rows to train, and the folder of the results.
class Reproduction {
 public:
  Reproduction(const Arguments& options, const std::vector<Override>& overrides)
      : table_(read_table(options.text("TABLE.yaml"))),
        chosen_(choose_rows(table_, options)),
        seeds_(options.get<std::int64_t>("seeds")),
        settings_(to_settings(overrides)),
        folder_(options.has("folder")
                    ? std::filesystem::path(options.text("folder"))
                    : "runs" / std::filesystem::absolute(options.text("TABLE.yaml"))
                                   .parent_path()
                                   .filename()) {
    // The first seed of every row comes first, so that an interrupted table has results for all
    // rows, with fewer seeds.
    for (std::int64_t seed = 0; seed < seeds_; ++seed) {
      for (const TableRow* row : chosen_)
        trials_.push_back(make_row_trial(*row, seed, settings_, folder_));
    }
  }

  [[nodiscard]] const std::vector<Trial>& trials() const { return trials_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// The number of rows to train. The first rows() trials are the first seeds of these rows.
  [[nodiscard]] std::size_t rows() const { return chosen_.size(); }

  /// Checks the runs that the table would show. @throws ConfigError if one of them was started with
  /// another recipe, or with other plug-ins, datasets or keys. In rows that this command does not
  /// train, other keys of the command line are accepted, because the table lists them.
  void check(const JobFile& job_file) const {
    for (const Trial& trial : trials_) job_file.check(trial);
    for (const RowTrials& row : shown(job_file)) {
      for (std::size_t seed = 0; seed < row.trials.size(); ++seed) {
        std::vector<Setting> settings;  // neutral keys of the command line, then those of the run
        std::ranges::copy_if(settings_, std::back_inserter(settings),
                             [](const Setting& one) { return !changes_results(one); });
        std::ranges::copy(row.trials[seed].settings, std::back_inserter(settings));
        job_file.check(
            make_row_trial(*row.row, static_cast<std::int64_t>(seed), settings, folder_));
      }
    }
  }

  /// @throws ConfigError if a row would only evaluate because of its recipe or of the command line.
  /// read_table() has already checked the settings of rows.
  void check_not_eval_only(const std::vector<Override>& overrides) const {
    Diagnostics diagnostics;
    const auto given = std::find_if(overrides.rbegin(), overrides.rend(),
                                    [](const Override& one) { return one.key == kEvalOnlyKey; });
    if (given != overrides.rend()) {  // in all rows
      reject_eval_only(given->value, diagnostics);
    } else {
      for (const TableRow* row : chosen_) {
        Diagnostics ignored;  // the runs report mistakes in the recipe
        const ConfigNode recipe = read_recipe_file(row->recipe, ignored).sections;
        reject_eval_only(value_of(kEvalOnlyKey, recipe, row->settings), diagnostics);
      }
    }
    diagnostics.throw_if_errors();
  }

  /// Warns if any run that the table shows was started with another recipe.
  void warn_if_changed(const JobFile& job_file) const {
    std::vector<std::string> changed;
    for (const RowTrials& row : shown(job_file)) {
      for (const Trial& trial : row.trials)
        if (job_file.has_other_recipe(trial)) changed.push_back(trial.id);
    }
    if (changed.empty()) return;
    log_warning(
        "{}: expected results of the recipes as they are now, got results of other recipes, or of "
        "earlier versions, for {}. Give another --folder to train with the new recipes",
        folder_.string(), fmt::join(changed, ", "));
  }

  /// Writes table.md, table.json and report.html.
  void write_results(const JobFile& job_file, const States& states) const {
    const std::vector<RowResult> results = collect_results(shown(job_file), states);
    write_file(folder_ / "table.md", table_markdown(table_, results));
    write_file(folder_ / "table.json", json_text(table_json(table_, results)));
    write_file(folder_ / "report.html", table_page(table_, results));
  }

  /// Writes projection.md and projection.json, and prints one of them.
  void project(const std::string& card, const std::filesystem::path& program, bool json) const {
    const auto rows = project_rows(table_, chosen_, settings_, card, program, folder_);
    const std::string markdown = projection_markdown(table_, card, rows);
    const std::string figures = json_text(projection_json(table_, card, rows));
    write_file(folder_ / "projection.md", markdown);
    write_file(folder_ / "projection.json", figures);
    fmt::print("{}", json ? figures : markdown);
  }

  void print_results(const JobFile& job_file, const States& states, bool json) const {
    const std::vector<RowResult> results = collect_results(shown(job_file), states);
    fmt::print("{}",
               json ? json_text(table_json(table_, results)) : table_markdown(table_, results));
  }

 private:
  /// Returns the chosen rows, and the rows that earlier commands started in this folder.
  [[nodiscard]] std::vector<RowTrials> shown(const JobFile& job_file) const {
    std::vector<RowTrials> rows;
    for (const TableRow& row : table_.rows) {
      const bool chosen = std::find(chosen_.begin(), chosen_.end(), &row) != chosen_.end();
      RowTrials shown{&row, {}};
      for (std::int64_t seed = 0; seed < kMaxSeeds; ++seed) {
        Trial trial = make_row_trial(row, seed, settings_, folder_);
        if (auto settings = job_file.settings_of(trial.id)) {
          trial.settings = std::move(*settings);
        } else if (!chosen || seed >= seeds_) {
          break;
        }
        shown.trials.push_back(std::move(trial));
      }
      if (!shown.trials.empty()) rows.push_back(std::move(shown));
    }
    return rows;
  }

  ResultTable table_;
  std::vector<const TableRow*> chosen_;
  std::int64_t seeds_;
  std::vector<Setting> settings_;
  std::filesystem::path folder_;
  std::vector<Trial> trials_;
};

/// Checks each row with one seed, because errors do not depend on the seed.
/// @param trains_here false for a dry run.
/// @return false if a signal stopped the check.
bool check_rows(const Reproduction& job, const std::filesystem::path& program,
                const std::vector<Slot>& slots, bool trains_here) {
  const JobFile job_file(job.folder());
  std::vector<const Trial*> first;
  for (const Trial& trial : std::span(job.trials()).first(job.rows())) first.push_back(&trial);
  // A row that has begun must be continued with the same keys, even if only rows of an earlier
  // command read some of them. Unread keys are then only a warning.
  const bool is_new = std::ranges::none_of(
      first, [&](const Trial* trial) { return job_file.settings_of(trial->id).has_value(); });
  // An error in a key of the command line is the same in all rows; it is reported once.
  return check_by_dry_run(first, {.program = program,
                                  .slots = slots,
                                  .unread = is_new ? UnreadSettings::reject : UnreadSettings::warn,
                                  .trains_here = trains_here});
}

/// A display that also checks and records each run in the job file before it begins, and writes the
/// results again when a run ends.
class TableDisplay final : public PoolDisplay {
 public:
  TableDisplay(const Reproduction& job, JobFile& job_file, const States& states, std::size_t slots)
      : PoolDisplay(job.trials(), states, slots, "top_1"),
        job_(job),
        job_file_(job_file),
        states_(states) {}
  void starting(const Trial& trial) override { job_file_.record_start(trial); }
  void ended(const Trial& trial, const nlohmann::ordered_json& record) override {
    PoolDisplay::ended(trial, record);
    job_.write_results(job_file_, states_);
  }

 private:
  const Reproduction& job_;
  JobFile& job_file_;
  const States& states_;
};

int train_rows(const Reproduction& job, const std::filesystem::path& program,
               const std::vector<Slot>& slots, const Arguments& options) {
  create_folders(job.folder());
  const FileLock lock = lock_job_folder(job.folder(), FileLock::Kind::exclusive);
  JobFile job_file(job.folder());
  job.check(job_file);
  job_file.snapshot(job.trials());
  Journal journal(job.folder() / "results.jsonl");
  States states = fold_states(read_journals(job.folder()));
  if (options.has("retry-failed")) reset_failures(states);
  const ExitCode code = [&] {
    TableDisplay display(job, job_file, states, slots.size());
    return TrialPool({.program = program, .slots = slots}, journal, states, display)
        .run(job.trials());
  }();
  job.write_results(job_file, states);
  if (code == ExitCode::preempted) return report_stopped();
  job.print_results(job_file, states, options.has("json"));
  log_info("=> table.md, table.json and report.html are in {}", job.folder().string());
  if (code == ExitCode::usage)
    throw ConfigError(
        "a row's recipe, keys or program is invalid, so the rows cannot be trained. See `output` "
        "in the row's run folder");
  return static_cast<int>(code);
}

}  // namespace

int run_reproduce(const std::vector<std::string>& args) {
  std::vector<std::string> own = args;
  const std::vector<Override> overrides = take_overrides(own);
  Arguments options = make_arguments();
  if (!options.parse(own)) return 0;
  check_range("seeds", options.get<std::int64_t>("seeds"), 1, kMaxSeeds);
  check_range("at-once", options.get<std::int64_t>("at-once"), 1, kMaxSeeds);
  const Reproduction job(options, overrides);
  if (options.has("status")) {
    const JobFile job_file(job.folder());
    job.warn_if_changed(job_file);
    job.print_results(job_file, fold_states(read_journals(job.folder())), options.has("json"));
    return 0;
  }
  job.check_not_eval_only(overrides);
  const std::filesystem::path program = options.has("program")
                                            ? std::filesystem::absolute(options.text("program"))
                                            : executable_path();
  if (options.has("project")) {
    job.project(options.text("project"), program, options.has("json"));
    return 0;
  }
  const std::vector<Slot> slots =
      partition_into_slots(static_cast<int>(options.get<std::int64_t>("at-once")), allowed_cores(),
                           visible_gpus(), usable_cores());
  // Checked before anything is trained, so that an error in the last row is not found days later.
  if (!check_rows(job, program, slots, /*trains_here=*/!options.has("dry-run")))
    return report_stopped();
  if (options.has("dry-run")) {
    job.check(JobFile(job.folder()));
    for (const Trial& trial : job.trials())
      fmt::print("{}\n", fmt::join(trial.train_arguments(), " "));
    return 0;
  }
  return train_rows(job, program, slots, options);
}

}  // namespace precast::tools
