#include "tools/app/prediction_writer.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using test::Names;

TEST(PredictionWriterTest, OutputsThatAreNotFiniteAreAnErrorInEveryFormat) {
  const test::TemporaryFolder folder;
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const at::Tensor logits = at::tensor({1.F, 2.F, 3.F, wrong}).view({2, 2});
    for (const PredictFormat& format : std::vector<PredictFormat>{
             {.file = {}},
             {.file = folder / "p.csv", .logits = true},
             {.file = folder / "p.npy", .json = true, .logits = true},
             {.file = folder / "p.jsonl", .logits = true, .classes = std::nullopt}}) {
      PredictionWriter writer(format, {});
      try {
        writer.add(logits, 1, std::vector<std::string>{"a", "b"});
        ADD_FAILURE() << format.file;
      } catch (const Error& error) {
        EXPECT_EQ(error.exit_code(), ExitCode::diverged);
        EXPECT_THAT(error.what(), Names("sample b", "output 1"));
      }
      // The outputs of a sample that could not be read are not used.
      PredictionWriter readable(format, {});
      readable.add(logits, 1, std::vector<std::string>{"a", "b"},
                   std::vector<std::string>{"", "damaged"});
      EXPECT_EQ(readable.samples(), 1);
    }
  }
}

TEST(PredictionWriterTest, AnArrayMayContainOutputsThatAreNotFinite) {
  const test::TemporaryFolder folder;
  PredictionWriter writer({.file = folder / "p.npy", .logits = true}, {});
  writer.add(at::tensor({1.F, -std::numeric_limits<float>::infinity()}).view({1, 2}), 1,
             std::vector<std::string>{"a"});
  testing::internal::CaptureStderr();
  writer.finish();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Names("warning", "1 sample", "is a"));
}

}  // namespace
}  // namespace precast::tools
