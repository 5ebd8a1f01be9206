#include "tools/experiments/trial/pool_display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/core/progress.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr auto kRedrawEvery = std::chrono::milliseconds(500);

/// Whether the trial failed because of its recipe or program, so that every trial would fail.
bool is_fatal(const ordered_json& record) {
  return classify_exit(record.value("exit_code", 0), record.value("signal", 0)) ==
         TrialOutcome::fatal;
}

}  // namespace

std::vector<std::string> fit_terminal(std::vector<std::string> lines, std::size_t rows,
                                      std::size_t columns) {
  const std::size_t max_lines = std::max<std::size_t>(rows, 3) - 1;
  if (lines.size() > max_lines) {
    const std::size_t left_out = lines.size() - (max_lines - 1);
    lines.resize(max_lines - 1);
    lines.push_back(fmt::format("  and {} more", left_out));
  }
  for (std::string& line : lines) line.resize(fit_text(line, columns - 1).size());
  return lines;
}

std::string pool_headline(std::span<const Trial> trials,
                          const std::map<std::string, TrialState>& states, const PoolLoad& load) {
  double seconds = 0;
  int finished = 0;
  for (const Trial& trial : trials) {
    const auto state = states.find(trial.id);
    if (state == states.end() || state->second.status != TrialStatus::done) continue;
    seconds += state->second.seconds;
    ++finished;
  }
  std::string text =
      fmt::format("{}: {} done, {} running, {} waiting", format_count(trials.size(), "trial"),
                  finished, load.running, load.waiting);
  if (finished > 0) {
    // Running trials are half finished on average.
    const double left = static_cast<double>(load.waiting) + static_cast<double>(load.running) / 2;
    text += ", about " +
            format_duration(left * seconds / finished / static_cast<double>(load.slots)) + " left";
  }
  return text;
}

PoolDisplay::PoolDisplay(std::span<const Trial> trials,
                         const std::map<std::string, TrialState>& states, std::size_t slots,
                         std::string metric)
    : trials_(trials),
      states_(states),
      slots_(slots),
      metric_(std::move(metric)),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

PoolDisplay::~PoolDisplay() {
  clear();
}

const RunLog& PoolDisplay::log_of(const Trial& trial) {
  return logs_.try_emplace(trial.id, trial.run_folder()).first->second;
}

void PoolDisplay::refresh(const Trial& trial) {
  logs_.try_emplace(trial.id, trial.run_folder()).first->second.refresh();
}

void PoolDisplay::started(const RunningTrial& running) {
  if (!terminal_) {
    show_message(fmt::format("{}: {} on {}", running.trial->id,
                             running.attempt > 1 ? "continues" : "started", running.slot->name));
  }
}

void PoolDisplay::ended(const Trial& trial, const ordered_json& record) {
  refresh(trial);
  const auto results = std::ranges::count_if(trials_, [&](const Trial& other) {
    const auto state = states_.find(other.id);
    return state != states_.end() && state->second.status != TrialStatus::waiting;
  });
  const std::string status = record.at("status");
  std::string text = fmt::format("[{}/{}] {}: ", results, trials_.size(), trial.id);
  if (status == "done") {
    text += fmt::format("done, {} {}", metric_,
                        figure_text(record.at("figures").value(metric_, ordered_json()), metric_));
  } else if (status == "waiting" && !record.value("failure", false) && !is_fatal(record)) {
    text += "interrupted";
  } else {
    text += status != "waiting" ? status
            : is_fatal(record)  ? "invalid recipe or program"
                                : "failed, will be tried again";
    if (status == "waiting" || status == "failed")
      text += fmt::format(", {}; see {}", exit_text(record.value("exit_code", 0)),
                          (trial.run_folder() / "output").string());
  }
  show_message(text + fmt::format(" ({})", format_duration(record.value("seconds", 0.0))));
}

void PoolDisplay::show_message(const std::string& text) {
  clear();
  write_stderr(text + "\n");
}

void PoolDisplay::update(const std::list<RunningTrial>& running, std::size_t waiting) {
  for (const RunningTrial& one : running) refresh(*one.trial);
  if (!terminal_ || std::chrono::steady_clock::now() < next_draw_) return;
  next_draw_ = std::chrono::steady_clock::now() + kRedrawEvery;
  std::vector<std::string> lines = {pool_headline(
      trials_, states_, {.slots = slots_, .running = running.size(), .waiting = waiting})};
  for (const RunningTrial& one : running) lines.push_back(slot_line(one));
  draw(lines);
}

std::string PoolDisplay::slot_line(const RunningTrial& running) {
  const RunLog& log = log_of(*running.trial);
  std::string figures;
  if (!log.epochs().empty()) {
    const auto& [epoch, record] = *log.epochs().rbegin();
    figures = fmt::format("epoch {}", epoch + 1);
    const std::string shown = record.contains(metric_) ? metric_ : "top_1";
    for (const std::string& key : {std::string("train_loss"), shown}) {
      if (record.contains(key) && record.at(key).is_number())
        figures += fmt::format("  {} {}", key, format_figure(record.at(key).get<double>(), key));
    }
  }
  // The name comes last, because it may be long, and lines are truncated.
  return fmt::format("  {:<8} {:>8}  {:<40} {}", running.slot->name,
                     format_duration(running.process->seconds()), figures, running.trial->id);
}

void PoolDisplay::draw(const std::vector<std::string>& lines) {
  clear();
  const TerminalSize size = terminal_size();
  const auto shown = fit_terminal(lines, size.rows, size.columns);
  std::string text;
  for (const std::string& line : shown) text += line + "\n";
  write_stderr(text);
  drawn_ = shown.size();
}

void PoolDisplay::clear() {
  if (drawn_ == 0) return;
  write_stderr(fmt::format("\033[{}A\r\033[J", drawn_));
  drawn_ = 0;
}

}  // namespace precast::tools
