#include "tools/report/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/format.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

std::string read_text(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Reads a JSON object from a file; empty if the file is missing or contains no object.
ordered_json read_json_object(const std::filesystem::path& path, std::vector<std::string>& notes) {
  if (!std::filesystem::exists(path)) return ordered_json::object();
  auto parsed = ordered_json::parse(read_text(path), nullptr, /*allow_exceptions=*/false);
  if (parsed.is_object()) return parsed;
  notes.push_back(fmt::format("{} is damaged and was left out", path.filename().string()));
  return ordered_json::object();
}

/// logging.run_id, which may have several components, if the folder still has this name; otherwise
/// the last component of its path.
std::string name_of(const std::filesystem::path& folder, const ordered_json& params) {
  // The path "runs/a/" has no last component.
  const auto whole = std::filesystem::absolute(folder).lexically_normal();
  const std::filesystem::path path = whole.has_filename() ? whole : whole.parent_path();
  const auto id = params.find("logging.run_id");
  if (id != params.end() && id->is_string() && !id->get<std::string>().empty() &&
      path.string().ends_with("/" + id->get<std::string>()))
    return id->get<std::string>();
  return path.filename().string();
}

RunRow row_of(const ordered_json& record, const std::string& metric) {
  RunRow row;
  row.epoch = record.at("epoch").get<std::int64_t>();
  const bool is_step = record.contains("step");
  row.step = number_of(record, is_step ? "step" : "steps");
  row.loss = number_of(record, is_step ? "loss" : "train_loss");
  row.metric = number_of(record, metric);
  row.val_loss = number_of(record, "val_loss");
  row.top_1 = number_of(record, "top_1");
  row.top_5 = number_of(record, "top_5");
  row.lr = number_of(record, "current_lr");
  row.resolution = number_of(record, "resolution");
  row.train_seconds = number_of(record, "train_time");
  row.wait_seconds = number_of(record, "wait_time");
  row.val_seconds = number_of(record, "val_time");
  row.images = number_of(record, "images");
  row.skipped_steps = number_of(record, "skipped_steps");
  if (const auto loader = record.find("loader_time");
      loader != record.end() && loader->is_object()) {
    row.decoding = number_of(*loader, "decoding");
    row.reading = number_of(*loader, "reading");
    row.blocked = number_of(*loader, "blocked");
    row.ahead = number_of(*loader, "ahead");
  }
  // For a step: the number of steps within the epoch. compute_epochs_done() turns it into epochs.
  row.epochs_done = is_step ? number_of(record, "epoch_step") : static_cast<double>(row.epoch + 1);
  return row;
}

/// Adds a row, and drops the rows that it replaces: a run that returned to a checkpoint writes the
/// same epochs and steps again.
void add_row(RunRecord& run, const ordered_json& record) {
  const RunRow row = row_of(record, run.metric);
  while (!run.epochs.empty() && run.epochs.back().epoch >= row.epoch) run.epochs.pop_back();
  if (!record.contains("step")) {
    run.epochs.push_back(row);
    return;
  }
  while (!run.steps.empty() && run.steps.back().step >= row.step) run.steps.pop_back();
  run.steps.push_back(row);
}

/// The number of steps per epoch since the run was last started or resumed, from run.json. If
/// run.json does not contain it, an estimate from the log.
double steps_per_epoch(const RunRecord& run) {
  if (const double recorded = number_of(run.facts, "steps_per_epoch"); recorded > 0)
    return recorded;
  if (!run.epochs.empty() && run.epochs.back().step > 0)
    return run.epochs.back().step / static_cast<double>(run.epochs.back().epoch + 1);
  double max_steps = 0;
  for (const RunRow& row : run.steps) max_steps = std::max(max_steps, row.epochs_done);
  return max_steps + 1;
}

/// Sets RunRow::epochs_done of the steps. If an epoch has a record, its number of steps is computed
/// from the records, because an earlier part of the run may have had another batch size.
void compute_epochs_done(RunRecord& run) {
  const double newest = steps_per_epoch(run);
  std::map<std::int64_t, double> ends = {{-1, 0}};
  for (const RunRow& row : run.epochs) ends[row.epoch] = row.step;
  const auto end_of = [&](std::int64_t epoch) {
    const auto end = ends.find(epoch);
    return end == ends.end() ? NAN : end->second;
  };
  for (RunRow& row : run.steps) {
    const double begin = end_of(row.epoch - 1);
    double share = (row.step - begin) / (end_of(row.epoch) - begin);
    if (std::isnan(share)) share = row.epochs_done / newest;
    row.epochs_done = static_cast<double>(row.epoch) + std::clamp(share, 0.0, 1.0);
  }
}

void read_log(RunRecord& run, std::string_view text) {
  std::int64_t line = 0, damaged = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = text.find('\n');
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto record = ordered_json::parse(content, nullptr, /*allow_exceptions=*/false);
    const bool whole = record.is_object() && record.contains("epoch") &&
                       record.at("epoch").is_number_integer() &&
                       (!record.contains("step") || record.at("step").is_number());
    if (whole) {
      add_row(run, record);
    } else if (end == std::string_view::npos) {
      run.notes.emplace_back("the last line of the log is incomplete and was left out");
    } else {
      ++damaged;
    }
  }
  if (damaged > 0)
    run.notes.push_back(fmt::format(
        "{} of {} of the log could not be read as records of an epoch or a step and were left out",
        damaged, format_count(static_cast<std::uint64_t>(line), "line")));
}

void read_metric(RunRecord& run) {
  const auto best = run.facts.find("best_metric");
  if (best == run.facts.end() || !best->is_object()) return;
  const auto name = best->find("name");
  const auto higher = best->find("higher_is_better");
  if (name != best->end() && name->is_string()) run.metric = name->get<std::string>();
  if (higher != best->end() && higher->is_boolean()) run.higher_is_better = higher->get<bool>();
}

double summary_or(const RunRecord& run, std::string_view key, double otherwise) {
  const double recorded = number_of(run.summary, key);
  return std::isnan(recorded) ? otherwise : recorded;
}

/// Adds a note if steps were skipped (training.on_nonfinite: skip).
void note_skipped_steps(RunRecord& run) {
  double logged = 0;
  for (const RunRow& row : run.epochs)
    if (!std::isnan(row.skipped_steps)) logged += row.skipped_steps;
  const double skipped = summary_or(run, "skipped_steps", logged);
  if (skipped > 0) run.notes.push_back(skipped_steps_text(static_cast<std::int64_t>(skipped)));
}

/// Returns the newest value of a total: the larger of the last values of epochs and of steps.
double newest_total(const RunRecord& run, double RunRow::*total) {
  return std::fmax(last_of(run.epochs, total), last_of(run.steps, total));
}

/// Images per second according to the log. In the line of a step, the total of the images includes
/// the step, but the total of the time does not, so these totals cannot be divided.
double logged_rate(const RunRecord& run) {
  const double rate =
      last_of(run.epochs, &RunRow::images) / last_of(run.epochs, &RunRow::train_seconds);
  if (!std::isnan(rate) || run.steps.empty()) return rate;
  const RunRow &first = run.steps.front(), &last = run.steps.back();
  const double seconds = last.train_seconds - first.train_seconds;
  return seconds > 0 ? (last.images - first.images) / seconds : NAN;
}

/// Whether the run has trained more than `finished` steps according to its log, or will train more
/// according to run.json. False if `finished` is NaN.
bool was_continued_after(const RunRecord& run, double finished) {
  // The line of a step contains the number of the steps before it.
  const double logged =
      std::fmax(last_of(run.epochs, &RunRow::step), last_of(run.steps, &RunRow::step) + 1);
  if (logged > finished) return true;
  const double epochs = number_of(run.facts, "epochs");
  if (const double before = number_of(run.summary, "epochs"); !std::isnan(before))
    return epochs > before;
  // Summaries of earlier versions lack `epochs`. The product below is not the number of steps of
  // the run if an earlier part had other steps per epoch. It is not used if the log has the last
  // epoch.
  const double logged_epochs =
      run.epochs.empty() ? 0 : static_cast<double>(run.epochs.back().epoch + 1);
  return epochs > logged_epochs && epochs * number_of(run.facts, "steps_per_epoch") > finished;
}

/// Removes the summary of a run that was continued after it had finished and has not finished
/// again, because the summary does not describe the newest steps.
void drop_earlier_summary(RunRecord& run) {
  // NaN in summaries of earlier versions, which are kept.
  const double finished = number_of(run.summary, "steps");
  if (!was_continued_after(run, finished)) return;
  run.notes.push_back(fmt::format(
      "summary.json is from step {:.0f}, before the run was continued, and was left out",
      finished));
  run.summary = ordered_json::object();
}

/// The number of epochs that the run has finished, from its log and, if there is a summary, from
/// run.json.
std::int64_t finished_epochs(const RunRecord& run) {
  std::int64_t epochs = run.epochs.empty() ? 0 : run.epochs.back().epoch + 1;
  if (!run.steps.empty()) epochs = std::max(epochs, run.steps.back().epoch);
  const auto planned = run.facts.find("epochs");
  if (run.finished() && planned != run.facts.end() && planned->is_number_integer())
    epochs = std::max(epochs, planned->get<std::int64_t>());
  return epochs;
}

bool has_log(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::is_regular_file(folder / "log", error);
}

/// Adds the folders below `path` that have a log, except those inside such a folder. @throws
/// IoError if a folder cannot be listed
void add_runs(const std::filesystem::path& path, std::vector<std::filesystem::path>& found) {
  std::error_code error, unknown;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (has_log(entry->path())) {
      found.push_back(entry->path());
    } else if (entry->is_directory(unknown) && !entry->is_symlink(unknown)) {
      add_runs(entry->path(), found);
    }
  }
  if (error) throw IoError("cannot list", path.string(), error.value());
}

}  // namespace

double number_of(const ordered_json& record, std::string_view key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? found->get<double>() : NAN;
}

double RunRecord::top_1() const {
  return summary_or(*this, "top_1", last_of(epochs, &RunRow::top_1));
}

double RunRecord::top_5() const {
  return summary_or(*this, "top_5", last_of(epochs, &RunRow::top_5));
}

double RunRecord::metric_value() const {
  return summary_or(*this, metric, last_of(epochs, &RunRow::metric));
}

double RunRecord::val_loss() const {
  return summary_or(*this, "val_loss", last_of(epochs, &RunRow::val_loss));
}

double RunRecord::train_minutes() const {
  return summary_or(*this, "train_minutes", newest_total(*this, &RunRow::train_seconds) / 60);
}

double RunRecord::images_per_second() const {
  return summary_or(*this, "images_per_second", logged_rate(*this));
}

double RunRecord::wait_share() const {
  const double seconds = newest_total(*this, &RunRow::wait_seconds);
  return summary_or(*this, "wait_minutes", seconds / 60) / train_minutes();
}

std::string skipped_steps_text(std::int64_t steps) {
  return fmt::format("{} {} skipped, because a loss or a gradient was not finite",
                     format_count(static_cast<std::uint64_t>(steps), "step"),
                     steps == 1 ? "was" : "were");
}

RunRecord load_run(const std::filesystem::path& folder) {
  RunRecord run;
  run.folder = folder;
  if (!has_log(folder))
    throw IoError(
        fmt::format("report: expected a run folder with a file named log, got {} without one",
                    folder.string()));
  run.params = read_json_object(folder / "params.json", run.notes);
  run.name = name_of(folder, run.params);
  run.summary = read_json_object(folder / "summary.json", run.notes);
  run.facts = read_json_object(folder / "run.json", run.notes);
  read_metric(run);
  read_log(run, read_text(folder / "log"));
  drop_earlier_summary(run);
  if (const std::string missing = missing_epochs(run, finished_epochs(run)); !missing.empty())
    run.notes.push_back("log: " + missing);
  note_skipped_steps(run);
  compute_epochs_done(run);
  return run;
}

std::string missing_epochs(const RunRecord& run, std::int64_t epochs_done) {
  std::int64_t found = 0, last = 0;
  for (const RunRow& row : run.epochs) {
    if (row.epoch < 0 || row.epoch >= epochs_done) continue;
    ++found;
    last = row.epoch + 1;
  }
  if (found >= epochs_done) return "";
  return fmt::format("expected the records of epochs 1 to {}, got {} of them{}", epochs_done, found,
                     found > 0 ? fmt::format(" (the last is of epoch {})", last) : "");
}

std::vector<std::filesystem::path> find_runs(const std::filesystem::path& path) {
  if (has_log(path)) return {path};
  std::vector<std::filesystem::path> found;
  // Only a grid's folder has sweep.json.
  std::error_code unknown;
  const auto top = std::filesystem::exists(path / "sweep.json", unknown) ? path / "runs" : path;
  if (std::filesystem::is_directory(top, unknown)) add_runs(top, found);
  if (found.empty())
    throw IoError(
        fmt::format("report: expected a run folder (with a file named log) or a folder that "
                    "contains run folders, got {}, which is neither",
                    path.string()));
  std::ranges::sort(found);
  return found;
}

std::vector<double> rates(const std::vector<RunRow>& rows, double RunRow::*total) {
  std::vector<double> all;
  const RunRow start{.train_seconds = 0, .wait_seconds = 0, .images = 0};
  const RunRow* last = rows.empty() || rows.front().epoch > 0 ? nullptr : &start;
  for (const RunRow& row : rows) {
    const double seconds = last == nullptr ? NAN : row.train_seconds - last->train_seconds;
    all.push_back(seconds > 0 ? (row.*total - last->*total) / seconds : NAN);
    last = &row;
  }
  return all;
}

double last_of(const std::vector<RunRow>& rows, double RunRow::*value) {
  for (auto row = rows.rbegin(); row != rows.rend(); ++row)
    if (!std::isnan((*row).*value)) return (*row).*value;
  return NAN;
}

}  // namespace precast::tools
