#pragma once

#include <algorithm>
#include <string_view>

namespace precast::tools {

/// The keys that precast writes next to a run's metrics. No metric may have one of them as its
/// name. They are the keys of the log (engine::Trainer, engine::JsonLinesLog), of summary.json
/// (report_results()), of the output of `eval --json` and of the file of --result-json. For a loss
/// with class labels, top_1 and top_5 are reserved too. The test ReservedFiguresTest compares this
/// list with these files.
inline constexpr std::string_view kReservedFigures[] = {
    // the log
    "current_lr", "epoch", "epoch_step", "images", "loader_time", "loss", "relative_time",
    "resolution", "skipped_steps", "step", "steps", "timestamp", "train_loss", "train_time",
    "val_loss", "val_time", "wait_time",
    // summary.json
    "best_metric", "classes", "epochs", "eval_minutes", "images_per_second", "replaced_samples",
    "run_folder", "train_minutes", "val_images", "wait_minutes", "world_size",
    // eval
    "dataset", "run", "seconds", "top_1_correct", "top_5_correct", "weights",
    // --result-json
    "error", "exit_code", "params"};

[[nodiscard]] constexpr bool is_reserved_figure(std::string_view name) {
  return std::ranges::find(kReservedFigures, name) != std::ranges::end(kReservedFigures);
}

}  // namespace precast::tools
