#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "framework/core/file.h"

namespace precast::test {

/// The log of a run with `epochs` epochs of 10 steps. Two steps of each epoch are logged.
inline std::string sample_log(int epochs) {
  std::string log;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (const int step : {0, 5}) {
      log += fmt::format(
          R"({{"step":{},"epoch":{},"epoch_step":{},"resolution":32,"current_lr":0.5,"loss":{},"train_time":{},"wait_time":{},"images":{}}})"
          "\n",
          10 * epoch + step, epoch, step, 2.0 / (1 + epoch), 10 * epoch + step, 0.5 * epoch,
          640 * epoch + 64 * (step + 1));
    }
    log += fmt::format(
        R"({{"timestamp":1.7e9,"relative_time":1.0,"current_lr":0.5,"top_1":{},"top_5":0.9,"val_time":2.0,"val_loss":1.5,"train_loss":{},"epoch":{},"resolution":32,"train_time":{},"wait_time":{},"images":{},"steps":{},"loader_time":{{"decoding":{},"reading":0,"blocked":1,"ahead":2}}}})"
        "\n",
        0.25 * (epoch + 1), 1.0 / (1 + epoch), epoch, 10.0 * (epoch + 1), 2.0 * (epoch + 1),
        640 * (epoch + 1), 10 * (epoch + 1), 3.0 * (epoch + 1));
  }
  return log;
}

/// Writes a run folder with that log and the other files of an unfinished run. If the folder
/// already exists, only the log is written.
inline std::filesystem::path write_run(const std::filesystem::path& folder, const std::string& log,
                                       const std::string& lr = "0.5") {
  create_folders(folder);
  // Writes without a sync: tests of truncated logs write hundreds of files, which need not survive
  // a power failure.
  std::ofstream(folder / "log", std::ios::binary) << log;
  if (std::filesystem::exists(folder / "params.json")) return folder;
  write_file(
      folder / "params.json",
      fmt::format(
          R"({{"model.arch":"resnet18","lr.lr":{},"training.epochs":3,"logging.run_id":"{}"}})", lr,
          folder.filename().string()));
  write_file(
      folder / "run.json",
      R"({"precast":"0.1.0","device":"A<100>","steps_per_epoch":10,"memory_bytes":2000000000})");
  return folder;
}

}  // namespace precast::test
