#pragma once

#include <filesystem>
#include <optional>

#include "framework/api/metric_sink.h"
#include "framework/core/appended_file.h"

namespace precast::tools {

/// The name of a run's event file in its folder; TensorBoard finds it by `tfevents`.
inline constexpr const char* kEventFile = "events.out.tfevents.precast";

/// Writes a run's figures to a TensorBoard event file, next to the log and from the same records. A
/// step record becomes train/{loss, lr, resolution, images_per_second, wait_share}, stored at that
/// step. An epoch record becomes epoch/{train_loss, lr, resolution, images_per_second, wait_share},
/// val/{loss, top_1, top_5} and val/NAME for each other metric, stored at the number of steps
/// taken. Rates and shares cover the time since the previous record of the same kind. Values that
/// are not finite are left out.
class EventSink final : public MetricSink {
 public:
  /// Creates the file, or appends to an existing one. @throws IoError if that fails.
  explicit EventSink(std::filesystem::path path, FileOps& ops = posix_file_ops());
  void write(const nlohmann::ordered_json& record) override;
  void flush() override { file_.flush(); }
  /// The length of the file in bytes.
  [[nodiscard]] std::int64_t position() const override { return file_.position(); }
  /// Truncates the file, and removes a last record that a crash left incomplete.
  void rewind(std::int64_t position) override;

 private:
  /// The totals from which rates are computed.
  struct Totals {
    double images = 0;
    double train_seconds = 0;
    double wait_seconds = 0;
  };

  void reset_totals();

  AppendedFile file_;
  /// The totals at the last step record and at the last epoch record. Not set before the first
  /// record of a resumed run.
  std::optional<Totals> last_step_;
  std::optional<Totals> last_epoch_;
};

}  // namespace precast::tools
