#include "recipes/schedules/cyclic.h"

namespace precast::recipes {
namespace {

constexpr double kStartRatio = 1e-4;

class Cyclic final : public Schedule {
 public:
  Cyclic(const ScheduleInputs& inputs, const CyclicOptions& options)
      : lr_(inputs.lr), peak_epoch_(options.lr_peak_epoch), epochs_(inputs.epochs) {}

  [[nodiscard]] double lr(std::int64_t epoch) const override {
    if (epoch < peak_epoch_ && epoch <= epochs_)
      return on_line(epoch, 0, kStartRatio * lr_, peak_epoch_, lr_);
    if (epoch < epochs_) return on_line(epoch, peak_epoch_, lr_, epochs_, 0);
    return 0;
  }

  [[nodiscard]] std::unique_ptr<Schedule> with_epochs(std::int64_t epochs) const override {
    auto other = std::make_unique<Cyclic>(*this);
    other->epochs_ = epochs;
    return other;
  }

 private:
  /// Computes in numpy's order of operations, so that results are bitwise identical.
  static double on_line(std::int64_t x, std::int64_t x0, double y0, std::int64_t x1, double y1) {
    return (y1 - y0) / static_cast<double>(x1 - x0) * static_cast<double>(x - x0) + y0;
  }

  double lr_;
  std::int64_t peak_epoch_;
  std::int64_t epochs_;
};

}  // namespace

void CyclicOptions::options(Schema& schema) {
  schema.add("lr_peak_epoch", &lr_peak_epoch, "number of epochs until the highest rate").min(0);
}

std::unique_ptr<Schedule> make_cyclic(const ScheduleInputs& inputs, const CyclicOptions& options) {
  return std::make_unique<Cyclic>(inputs, options);
}

}  // namespace precast::recipes
