#include "tools/grid/watcher.h"

#include <utility>
#include <vector>

#include "framework/core/error.h"

namespace precast::tools {
namespace {

/// Between two pages: trials may end many times a second, and a page of thousands takes long.
constexpr auto kPagePause = std::chrono::seconds(1);
constexpr int kPageShare = 20;

}  // namespace

GridWatcher::GridWatcher(const Sweep& sweep, const std::map<std::string, TrialState>& states,
                         std::size_t slots)
    : PoolDisplay(sweep.trials, states, slots, sweep.metric),
      sweep_(sweep),
      states_(states),
      early_stop_(sweep.early_stop),
      page_(sweep) {
  if (sweep.early_stop.rule == EarlyStopOptions::Rule::none) return;
  // What earlier starts of this grid have reached counts.
  for (const Trial& trial : sweep.trials) report(trial);
}

void GridWatcher::report(const Trial& trial) {
  if (!refresh(trial)) return;
  for (const auto& [epoch, record] : log_of(trial).epochs()) {
    if (const auto value = record.find(sweep_.early_stop.metric);
        value != record.end() && value->is_number()) {
      early_stop_.report(trial.id, epoch, value->get<double>());
    }
  }
}

void GridWatcher::ended(const Trial& trial, const nlohmann::ordered_json& record) {
  report(trial);
  page_is_old_ = true;
  PoolDisplay::ended(trial, record);
}

void GridWatcher::look(const std::list<RunningTrial>& running, std::size_t waiting) {
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
    // Told once; trainings go on.
    if (!std::exchange(page_fails_, true)) say(error.what());
  }
  const auto end = std::chrono::steady_clock::now();
  next_page_ = end + kPagePause + kPageShare * (end - begin);
}

bool GridWatcher::stops(const Trial& trial) {
  return early_stop_.stops(trial.id);
}

std::optional<std::string> GridWatcher::resumes() {
  std::vector<std::string> stopped;
  for (const Trial& trial : sweep_.trials) {
    const auto state = states_.find(trial.id);
    if (state != states_.end() && state->second.status == TrialStatus::stopped)
      stopped.push_back(trial.id);
  }
  return early_stop_.resumes(stopped);
}

}  // namespace precast::tools
