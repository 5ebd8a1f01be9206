#include "framework/engine/train_progress.h"

#include <fmt/core.h>

#include <algorithm>

namespace precast::engine {

TrainProgress::TrainProgress(const TrainPlan& plan, const BatchSource& train_source, bool shown)
    : plan_(plan), train_source_(train_source), shown_(shown) {}

void TrainProgress::begin_epoch(std::int64_t epoch, std::int64_t first_step) {
  epoch_ = epoch;
  first_step_ = first_step;
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
  progress_.show(
      fmt::format("epoch {}/{} step {}/{} | {:.0f} img/s | {} left | loss {:.3f} | lr {:.4f} | "
                  "{:.0f} % waiting for data ({})",
                  epoch_ + 1, plan_.epochs, steps, plan_.steps_per_epoch,
                  static_cast<double>(plan_.global_batch_size) / per_step,
                  format_duration(per_step * static_cast<double>(steps_left)), loss, lr,
                  100 * waited / std::max(seconds, 1e-9), train_source_.times().longest()));
}

void TrainProgress::show_evaluation(std::int64_t samples, std::int64_t all_samples) {
  progress_.show(fmt::format("evaluating {}/{}", std::min(samples, all_samples), all_samples));
}

}  // namespace precast::engine
