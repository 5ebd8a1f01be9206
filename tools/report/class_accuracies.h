#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/report/run_record.h"

namespace precast::tools {

/// A class of the validation set.
struct ClassAccuracy {
  /// `3 cat`; only `3` if the class has no name or is named by its index.
  std::string name;
  std::int64_t images = 0;
  std::int64_t correct = 0;
  /// A share between 0 and 1.
  [[nodiscard]] double accuracy() const {
    return static_cast<double>(correct) / static_cast<double>(images);
  }
};

/// Returns the classes in summary.json that have validation images, lowest top-1 first. Empty if
/// the file lists no classes.
std::vector<ClassAccuracy> class_accuracies(const RunRecord& run);

}  // namespace precast::tools
