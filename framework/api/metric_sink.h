#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace precast {

/// A destination for the losses, metrics and times of a run: the JSON-lines log, TensorBoard files.
/// Not thread-safe.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  /// Writes one record, with ffcv-imagenet's keys where they exist: epoch, current_lr, top_1,
  /// top_5, val_time, train_loss. A sink that cannot write warns once and continues: a lost log
  /// line is no reason to stop training.
  virtual void write(const nlohmann::ordered_json& record) = 0;
  /// Called after a record that may be the last one: tries again to write records that could not be
  /// written, and warns if that fails.
  virtual void flush() {}
  /// position() returns the number of bytes written so far, and rewind() discards everything after
  /// a position. A resumed run thus discards the records that the interrupted run wrote after its
  /// last checkpoint.
  [[nodiscard]] virtual std::int64_t position() const { return 0; }
  virtual void rewind(std::int64_t /*position*/) {}
  /// For sinks that write times relative to the start of the run. seconds() is the time since that
  /// start. A resumed run calls advance(), after rewind(), with the value that was saved with the
  /// position; from then on, seconds() is at least that value.
  [[nodiscard]] virtual double seconds() const { return 0; }
  virtual void advance(double /*seconds*/) {}
};

}  // namespace precast
