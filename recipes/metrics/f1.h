#pragma once

#include <memory>
#include <string>

#include "framework/api/metric.h"

namespace precast::recipes {

struct F1Options {
  /// micro: computed from the counts of all classes together; macro: the mean over classes.
  std::string average = "macro";

  void options(Schema& schema);
};

/// The harmonic mean of precision and recall, "f1_macro" or "f1_micro", as scikit-learn's f1_score.
/// For TargetKind::multi_hot, a sample has the classes whose targets are above 0.5, a class is
/// predicted if its logit is above 0, and a class that neither occurs nor is predicted counts as 0
/// in the mean. For class_index, the class with the largest logit is predicted, and a class that
/// neither occurs nor is predicted is left out of the mean.
[[nodiscard]] std::unique_ptr<Metric> make_f1(const F1Options& options);

}  // namespace precast::recipes
