#include "tools/experiments/grid/watcher.h"

#include <cmath>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/unix_time.h"

namespace precast::tools {
namespace {

/// The pause between two updates of the page is a second plus kPageShare times the duration of the
/// last update, because trials may end many times a second, and a page with thousands of trials
/// takes long to write.
constexpr auto kPagePause = std::chrono::seconds(1);
constexpr int kPageShare = 20;

std::int64_t last_epoch(const RunLog& log) {
  return log.epochs().empty() ? -1 : log.epochs().rbegin()->first;
}

}  // namespace

GridWatcher::GridWatcher(const Sweep& sweep, const SweepFile& file,
                         const std::map<std::string, TrialState>& states, Journal& journal,
                         std::size_t slots, std::unique_ptr<SharedLoaders> loaders)
    : PoolDisplay(sweep.trials, states, slots, sweep.metric),
      sweep_(sweep),
      file_(file),
      states_(states),
      journal_(journal),
      early_stop_(sweep.early_stop),
      loaders_(std::move(loaders)),
      page_(sweep) {
  if (sweep.early_stop.rule == EarlyStopOptions::Rule::none) return;
  // Progress from earlier starts of this grid counts.
  for (const Trial& trial : sweep.trials) {
    report(trial);
    compared_epochs_[trial.id] = last_epoch(log_of(trial));
  }
  for (const auto& record : read_journals(sweep.folder, /*warns=*/false)) {
    if (record.value("event", "") == "rung")
      early_stop_.set_passed(record.value("trial", ""), record.value("rung", -1));
  }
}

void GridWatcher::report(const Trial& trial) {
  refresh(trial);
  // All epochs are reported again, because a resumed run may have repeated some of them.
  for (const auto& [epoch, record] : log_of(trial).epochs()) {
    const auto value = record.find(sweep_.early_stop.metric);
    if (value == record.end()) continue;
    // JSON has no NaN: null stands for a value that was not finite.
    early_stop_.report(trial.id, epoch, value->is_number() ? value->get<double>() : std::nan(""));
  }
}

std::vector<const Trial*> GridWatcher::missed_early_stops() {
  std::vector<const Trial*> missed;
  if (sweep_.early_stop.rule != EarlyStopOptions::Rule::asha) return missed;
  for (const Trial& trial : sweep_.trials) {
    const auto state = states_.find(trial.id);
    if (state == states_.end() || state->second.status != TrialStatus::waiting) continue;
    // A trial that finished while no grid was running has a result and is not stopped.
    if (read_summary(trial.run_folder())) continue;
    const int before = early_stop_.passed(trial.id);
    if (early_stop_.should_stop(trial.id)) missed.push_back(&trial);
    record_passed_rung(trial.id, before);
  }
  return missed;
}

std::optional<std::vector<std::string>> GridWatcher::prepare(const NextStart& next) {
  return loaders_ ? loaders_->prepare(next) : std::vector<std::string>{};
}

void GridWatcher::starting(const Trial& /*trial*/) {
  file_.check();
}

void GridWatcher::ended(const Trial& trial, const nlohmann::ordered_json& record) {
  if (loaders_) loaders_->ended(trial);
  report(trial);
  page_is_old_ = true;
  PoolDisplay::ended(trial, record);
}

void GridWatcher::update(const std::list<RunningTrial>& running, std::size_t waiting) {
  if (loaders_) loaders_->update();
  for (const RunningTrial& one : running) report(*one.trial);
  PoolDisplay::update(running, waiting);
  if (page_is_old_ && std::chrono::steady_clock::now() >= next_page_) write_page();
}

void GridWatcher::write_page() {
  const auto begin = std::chrono::steady_clock::now();
  page_is_old_ = false;
  try {
    page_.write(states_);
  } catch (const IoError& error) {
    // The error is reported only once, and the trials continue.
    if (!std::exchange(page_error_shown_, true)) show_message(error.what());
  }
  const auto end = std::chrono::steady_clock::now();
  next_page_ = end + kPagePause + kPageShare * (end - begin);
}

bool GridWatcher::should_stop(const Trial& trial) {
  report(trial);
  const std::int64_t epoch = last_epoch(log_of(trial));
  std::int64_t& last_compared = compared_epochs_.try_emplace(trial.id, -1).first->second;
  if (epoch <= last_compared) return false;
  last_compared = epoch;
  const int before = early_stop_.passed(trial.id);
  const bool should_stop = early_stop_.should_stop(trial.id);
  record_passed_rung(trial.id, before);
  return should_stop;
}

void GridWatcher::record_passed_rung(const std::string& trial, int before) {
  const int rung = early_stop_.passed(trial);
  if (rung > before)
    journal_.append(
        {{"event", "rung"}, {"trial", trial}, {"rung", rung}, {"time", unix_seconds()}});
}

std::optional<std::string> GridWatcher::trial_to_resume() {
  std::vector<std::string> stopped;
  for (const Trial& trial : sweep_.trials) {
    const auto state = states_.find(trial.id);
    if (state != states_.end() && state->second.status == TrialStatus::stopped)
      stopped.push_back(trial.id);
  }
  std::optional<std::string> resumed = early_stop_.trial_to_resume(stopped);
  // EarlyStop::trial_to_resume() has already marked the rung as passed, so the rung below is
  // assumed to be the last one that was recorded. The new rung is recorded before the trial starts.
  if (resumed) record_passed_rung(*resumed, early_stop_.passed(*resumed) - 1);
  return resumed;
}

}  // namespace precast::tools
