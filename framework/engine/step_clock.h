#pragma once

#include <chrono>
#include <utility>

#include "framework/api/batch_source.h"
#include "framework/engine/train_state.h"

namespace precast::engine {

/// Measures training time: count() adds to a state the time since its last call (or since
/// construction), and the part of that time that was spent waiting for data.
class StepClock {
 public:
  explicit StepClock(const BatchSource& source) : waited_(source.seconds_waited()) {}
  void count(TrainState& state, const BatchSource& source) {
    const auto now = std::chrono::steady_clock::now();
    state.train_seconds += std::chrono::duration<double>(now - std::exchange(last_, now)).count();
    const double waited = source.seconds_waited();
    state.wait_seconds += waited - std::exchange(waited_, waited);
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  double waited_;
};

}  // namespace precast::engine
