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
    judged_[trial.id] = last_epoch(log_of(trial));
  }
  for (const auto& record : read_journals(sweep.folder, /*warns=*/false)) {
    if (record.value("event", "") == "rung")
      early_stop_.set_passed(record.value("trial", ""), record.value("rung", -1));
  }
}

void GridWatcher::report(const Trial& trial) {
  refresh(trial);
  // Epochs that were reported before are reported again, because a resumed run may repeat them.
  for (const auto& [epoch, record] : log_of(trial).epochs()) {
    const auto value = record.find(sweep_.early_stop.metric);
    if (value == record.end()) continue;
    // JSON has no NaN: null stands for a value that was not finite.
    early_stop_.report(trial.id, epoch, value->is_number() ? value->get<double>() : std::nan(""));
  }
}

std::vector<const Trial*> GridWatcher::at_closed_rungs() {
  std::vector<const Trial*> closed;
  if (sweep_.early_stop.rule != EarlyStopOptions::Rule::asha) return closed;
  for (const Trial& trial : sweep_.trials) {
    const auto state = states_.find(trial.id);
    if (state == states_.end() || state->second.status != TrialStatus::waiting) continue;
    // A trial that finished while no grid was running has a result and is not stopped.
    if (read_summary(trial.run_folder())) continue;
    const int before = early_stop_.passed(trial.id);
    if (early_stop_.stops(trial.id)) closed.push_back(&trial);
    note_passed(trial.id, before);
  }
  return closed;
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

void GridWatcher::look(const std::list<RunningTrial>& running, std::size_t waiting) {
  if (loaders_) loaders_->look();
  for (const RunningTrial& one : running) report(*one.trial);
  PoolDisplay::look(running, waiting);
  if (page_is_old_ && std::chrono::steady_clock::now() >= next_page_) write_page();
}

void GridWatcher::write_page() {
  const auto begin = std::chrono::steady_clock::now();
  page_is_old_ = false;
  try {
    page_.write(states_);
  } catch (const IoError& error) {
    // The error is reported only once, and the trials continue.
    if (!std::exchange(page_fails_, true)) say(error.what());
  }
  const auto end = std::chrono::steady_clock::now();
  next_page_ = end + kPagePause + kPageShare * (end - begin);
}

bool GridWatcher::stops(const Trial& trial) {
  report(trial);
  const std::int64_t epoch = last_epoch(log_of(trial));
  std::int64_t& judged = judged_.try_emplace(trial.id, -1).first->second;
  if (epoch <= judged) return false;
  judged = epoch;
  const int before = early_stop_.passed(trial.id);
  const bool stops = early_stop_.stops(trial.id);
  note_passed(trial.id, before);
  return stops;
}

void GridWatcher::note_passed(const std::string& trial, int before) {
  const int rung = early_stop_.passed(trial);
  if (rung > before)
    journal_.append(
        {{"event", "rung"}, {"trial", trial}, {"rung", rung}, {"time", unix_seconds()}});
}

std::optional<std::string> GridWatcher::resumes() {
  std::vector<std::string> stopped;
  for (const Trial& trial : sweep_.trials) {
    const auto state = states_.find(trial.id);
    if (state != states_.end() && state->second.status == TrialStatus::stopped)
      stopped.push_back(trial.id);
  }
  std::optional<std::string> resumed = early_stop_.resumes(stopped);
  // Recorded before the trial starts. EarlyStop::resumes() has already marked the rung as passed,
  // so the rung below it is given as the one passed before.
  if (resumed) note_passed(*resumed, early_stop_.passed(*resumed) - 1);
  return resumed;
}

}  // namespace precast::tools
