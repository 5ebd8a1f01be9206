#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/data/beton/golden_beton.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::test {

/// Runs of two ranks as a user starts them, on a dataset that FFCV wrote (24 Imagenette images):
/// two epochs of three steps.
class RankRuns : public ::testing::Test {
 protected:
  RankRuns() { write_bytes(folder_ / "d.beton", golden_beton("img_prop_nette_w1")); }

  /// `precast train` for the run `id`, with more arguments.
  [[nodiscard]] std::vector<std::string> train(const std::string& id,
                                               const std::vector<std::string>& more) const {
    const std::string data = folder_ / "d.beton";
    std::vector<std::string> all = {std::string(PRECAST_BIN_DIR) + "/precast",
                                    "train",
                                    "--data.train_dataset=" + data,
                                    "--data.val_dataset=" + data,
                                    "--training.batch_size=4",
                                    "--training.epochs=2",
                                    "--training.device=cpu",
                                    "--resolution.min_res=32",
                                    "--resolution.max_res=32",
                                    "--validation.resolution=32",
                                    "--lr.lr=0.01",
                                    "--logging.every=1",
                                    "--logging.folder=" + (folder_ / "runs").string(),
                                    "--logging.run_id=" + id};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] std::filesystem::path run_folder(const std::string& id) const {
    return folder_ / ("runs/" + id);
  }
  [[nodiscard]] std::string file(const std::string& id, const std::string& name) const {
    std::ifstream stream(run_folder(id) / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  /// The log without what a clock says.
  [[nodiscard]] std::vector<std::string> log(const std::string& id) const {
    std::ifstream stream(run_folder(id) / "log");
    std::vector<std::string> rows;
    for (std::string line; std::getline(stream, line);) {
      auto row = nlohmann::ordered_json::parse(line);
      for (const char* key : {"timestamp", "relative_time", "val_time", "train_time"})
        row.erase(key);
      rows.push_back(row.dump());
    }
    return rows;
  }

  TemporaryFolder folder_;
};

}  // namespace precast::test
