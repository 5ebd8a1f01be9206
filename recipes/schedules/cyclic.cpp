#include "recipes/schedules/cyclic.h"

#include <fmt/format.h>

#include "framework/core/error.h"

namespace precast::recipes {
namespace {

constexpr double kStartRatio = 1e-4;

class Cyclic final : public Schedule {
 public:
  explicit Cyclic(const ScheduleOptions& options)
      : lr_(options.lr), peak_(options.lr_peak_epoch), epochs_(options.epochs) {}

  [[nodiscard]] double lr(std::int64_t epoch) const override {
    if (epoch < peak_ && epoch <= epochs_) return on_line(epoch, 0, kStartRatio * lr_, peak_, lr_);
    if (epoch < epochs_) return on_line(epoch, peak_, lr_, epochs_, 0);
    return 0;
  }

  [[nodiscard]] std::unique_ptr<Schedule> with_epochs(std::int64_t epochs) const override {
    auto other = std::make_unique<Cyclic>(*this);
    other->epochs_ = epochs;
    return other;
  }

 private:
  /// The operations in numpy's order, so that results are equal to the last bit.
  static double on_line(std::int64_t x, std::int64_t x0, double y0, std::int64_t x1, double y1) {
    return (y1 - y0) / static_cast<double>(x1 - x0) * static_cast<double>(x - x0) + y0;
  }

  double lr_;
  std::int64_t peak_;
  std::int64_t epochs_;
};

}  // namespace

std::unique_ptr<Schedule> make_cyclic(const ScheduleOptions& options) {
  if (options.lr < 0 || options.epochs < 1 || options.lr_peak_epoch < 0) {
    throw ConfigError(
        fmt::format("schedule cyclic: expected lr >= 0, epochs >= 1 and lr_peak_epoch >= 0, got "
                    "lr {}, epochs {}, lr_peak_epoch {}",
                    options.lr, options.epochs, options.lr_peak_epoch));
  }
  return std::make_unique<Cyclic>(options);
}

}  // namespace precast::recipes
