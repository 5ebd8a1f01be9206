// Restoring a method from a checkpoint for an evaluation outside its run.
#include "framework/engine/checkpoint_scope.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/archive/checkpoint_files.h"
#include "framework/core/archive/safetensors.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/engine/state_archive.h"
#include "tests/support/fake_parts.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::engine {
namespace {

using test::Names;
using testing::ThrowsMessage;

class CountingMethod final : public Method {
 public:
  [[nodiscard]] State state() const override { return {{{"mean", mean}}, counters}; }
  void restore(const std::map<std::string, std::int64_t>& saved) override { counters = saved; }
  at::Tensor mean = at::zeros({2});
  std::map<std::string, std::int64_t> counters;
};

class CheckpointScopeTest : public testing::Test {
 protected:
  CheckpointScopeTest() {
    auto method = std::make_unique<CountingMethod>();
    method_ = method.get();
    methods_.push_back({"counting", std::move(method)});
  }
  /// Prepares the model with a checkpoint that has this state.json.
  void enter(const std::string& state) {
    const StateCopy tensors({{"counting/mean", at::full({2}, 3.F)}});
    write_safetensors(folder_ / kMethodsFile, tensors.records(), {});
    write_file(folder_ / kStateFile, state);
    test::LinearModel model(2);
    static_cast<void>(enter_checkpoint_scope(model, methods_, folder_.path()));
  }

  test::TemporaryFolder folder_;
  std::vector<NamedMethod> methods_;
  CountingMethod* method_ = nullptr;
};

TEST_F(CheckpointScopeTest, RestoresTensorsAndCountersOfAMethod) {
  enter(R"({"format": 1, "counters": {"counting": {"steps": 5}}})");
  EXPECT_EQ(method_->mean[1].item<float>(), 3);
  EXPECT_EQ(method_->counters.at("steps"), 5);
}

TEST_F(CheckpointScopeTest, RefusesAnotherFormat) {
  for (const char* format : {"2", R"("1")"}) {
    EXPECT_THAT(
        [&] {
          enter(std::string(R"({"format": )") + format +
                R"(, "counters": {"counting": {"steps": 5}}})");
        },
        ThrowsMessage<CheckpointError>(Names((folder_ / kStateFile).string(), "format", 1)));
  }
  EXPECT_TRUE(method_->counters.empty());
}

TEST_F(CheckpointScopeTest, NamesTheMethodWithoutCounters) {
  EXPECT_THAT([&] { enter(R"({"format": 1, "counters": {}})"); },
              ThrowsMessage<CheckpointError>(Names((folder_ / kStateFile).string(), "counting")));
}

}  // namespace
}  // namespace precast::engine
