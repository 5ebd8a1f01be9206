#include "framework/engine/train_progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/core/format.h"

namespace precast::engine {
namespace {

/// If a smaller share of the time is spent waiting for data, the progress line does not show what
/// slows the loader down.
constexpr double kNoticedShare = 0.02;

/// On a narrow terminal, parts of the progress line are dropped in this order.
enum Importance : int { kCause, kRate, kWaiting, kSpeed, kLossAndTime, kPosition };

}  // namespace

TrainProgress::TrainProgress(const TrainPlan& plan, const BatchSource& train_source, bool shown,
                             BestMetric best)
    : plan_(plan), train_source_(train_source), best_(std::move(best)), shown_(shown) {}

void TrainProgress::begin_epoch(const TrainState& state) {
  epoch_ = state.epoch;
  first_step_ = state.step;
  first_images_ = state.images_trained;
  first_seconds_ = state.train_seconds;
  epoch_start_ = std::chrono::steady_clock::now();
  waited_before_epoch_ = train_source_.seconds_waited();
}

void TrainProgress::show_step(std::int64_t steps, double lr, double loss) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - epoch_start_).count();
  const double per_step =
      seconds / static_cast<double>(std::max<std::int64_t>(steps - first_step_, 1));
  const std::int64_t steps_left = (plan_.epochs - epoch_) * plan_.steps_per_epoch - steps;
  const double waited = train_source_.seconds_waited() - waited_before_epoch_;
  const double share = waited / std::max(seconds, 1e-9);
  const std::string_view cause = train_source_.times().bottleneck();
  std::vector<LinePart> parts = {
      {fmt::format("epoch {}/{} step {}/{}", epoch_ + 1, plan_.epochs, steps,
                   plan_.steps_per_epoch),
       kPosition},
      {fmt::format("{:.0f} img/s", static_cast<double>(plan_.global_batch_size) / per_step),
       kSpeed},
      {format_duration(per_step * static_cast<double>(steps_left)) + " left", kLossAndTime},
      {fmt::format("loss {:.3f}", loss), kLossAndTime},
      {fmt::format("lr {:.4g}", lr), kRate},
      {fmt::format("data wait {:.0f} %", 100 * share), kWaiting}};
  if (share >= kNoticedShare && !cause.empty())
    parts.push_back({fmt::format("loader: {}", cause), kCause});
  progress_.show(std::move(parts));
}

void TrainProgress::show_evaluation(std::int64_t samples, std::int64_t all_samples) {
  progress_.show(fmt::format("evaluating {}/{}", std::min(samples, all_samples), all_samples));
}

std::string TrainProgress::epoch_line(const TrainState& state,
                                      const std::optional<EvalResult>& eval) const {
  std::string line = fmt::format("epoch {}/{} | train loss {:.4f}", state.epoch + 1, plan_.epochs,
                                 state.train_loss);
  if (eval) {
    line += fmt::format(" | val loss {:.4f}", eval->loss);
    std::string best;
    if (state.best_epoch == state.epoch) {
      best = " (best)";
    } else if (state.best_epoch >= 0) {
      best = fmt::format(" (best {:.4f} in epoch {})", state.best_value, state.best_epoch + 1);
    }
    if (best_.name == "val_loss") line += best;
    for (const auto& [name, value] : eval->figures()) {
      // Of top-1 and top-5, the line shows only top-1, unless top-5 determines the best epoch.
      if (name == "top_5" && eval->is_classification && best_.name != "top_5") continue;
      line += fmt::format(" | {} {:.4f}", name == "top_1" ? "top-1" : name, value);
      if (name == best_.name) line += best;
    }
  }
  if (state.epoch_skipped_steps > 0) {
    const auto skipped = static_cast<std::uint64_t>(state.epoch_skipped_steps);
    line += fmt::format(" | {} skipped", format_count(skipped, "step"));
  }
  const double seconds = state.train_seconds - first_seconds_;
  const auto images = static_cast<double>(state.images_trained - first_images_);
  if (images > 0 && seconds > 0) line += fmt::format(" | {:.0f} img/s", images / seconds);
  return line + " | " + format_duration(seconds + (eval ? eval->seconds : 0));
}

}  // namespace precast::engine
