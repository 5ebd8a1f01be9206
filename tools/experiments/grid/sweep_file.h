#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/experiments/grid/sweep.h"
#include "tools/experiments/trial/slot.h"

namespace precast::tools {

/// The file sweep.json. It identifies the recipe, its plug-ins and the datasets that the results in
/// a sweep's folder belong to, and lists the trials that have passed their dry run
/// (check_trials()). Not thread-safe.
class SweepFile {
 public:
  /// Reads the file if it exists, and keeps a reference to `sweep`. @throws the errors of check().
  explicit SweepFile(const Sweep& sweep);

  /// Checks that the recipe, the plug-ins and the datasets have not changed since the file was
  /// written or, if it did not exist, since the constructor read them. Each trial reads the
  /// recipe's file when it starts, so call this before every start.
  /// @throws ConfigError if the recipe or a plug-in has changed, or a dataset has another name,
  /// size or content (dataset_content()); IoError if the recipe cannot be read.
  void check() const;

  /// Writes the file if it does not exist or lacks any of these facts. @throws IoError
  void ensure_written();

  /// Discards the recorded checks if they ran in slots with a GPU and `slots` have no GPU, or the
  /// other way round.
  void discard_stale_checks(const std::vector<Slot>& slots);
  /// Whether a trial with the same settings was checked.
  [[nodiscard]] bool is_checked(const Trial& trial) const;
  /// Records that trials were checked, and writes the file. @throws IoError
  void add_checked(const std::vector<const Trial*>& trials);

 private:
  void write();

  const Sweep& sweep_;
  std::filesystem::path path_;
  nlohmann::ordered_json facts_;
  bool is_written_ = false;
};

}  // namespace precast::tools
