#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/engine/trainer.h"

namespace precast::tools {

/// Images or other samples per second of training; 0 before the first step.
[[nodiscard]] double train_rate(const engine::TrainSummary& summary);

/// What a finished run prints on standard output.
struct RunResults {
  /// Has a final_eval.
  const engine::TrainSummary& summary;
  /// Whether the network reads images, and whether their mirror images were evaluated too.
  bool images = true;
  bool flip_tta = false;
  /// Lines about the data pipeline, as describe_data() returns them.
  std::vector<std::string> data = {};
  std::filesystem::path folder;
};
void print_results(const RunResults& results);

}  // namespace precast::tools
