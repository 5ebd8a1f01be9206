#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/beton/reader.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"

namespace precast::tools {

/// The datasets for the tests of `precast select` and `precast merge`.
class SubsetTest : public testing::Test {
 protected:
  /// 90 samples, label = i % 3, weight = i.
  SubsetTest() {
    test::write_made_beton(in_, {.samples = 90, .width = 20, .height = 10, .classes = 3});
  }
  /// Unpacks a golden file. @return its path.
  std::string golden(const std::string& name) {
    return test::put_golden_beton(folder_.path(), name);
  }
  /// Runs a command, which must succeed, and returns its JSON.
  static nlohmann::json json_of(const std::string& command, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), command);
    arguments.emplace_back("--json");
    const test::PrecastRun run = test::precast_run(std::move(arguments));
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out);
  }
  static nlohmann::json select(std::vector<std::string> arguments) {
    return json_of("select", std::move(arguments));
  }
  /// The samples of `in_` that are in a file, recognised by their weights.
  static std::vector<int> samples_of(const std::string& file) {
    const data::BetonReader reader(file);
    std::vector<int> ids;
    for (std::uint64_t i = 0; i < reader.size(); ++i)
      ids.push_back(static_cast<int>(reader.floating(i, 2)));
    return ids;
  }
  [[nodiscard]] std::string out(const std::string& name = "a.beton") const {
    return (outputs_ / name).string();
  }

  test::TemporaryFolder folder_;
  test::TemporaryFolder outputs_;
  std::string in_ = (folder_ / "in.beton").string();
};

}  // namespace precast::tools
