#include "framework/core/archive/weights_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/archive/weights_spec.h"
#include "framework/core/error.h"
#include "tests/framework/core/archive/sample_tensors.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

using test::dump;
using test::Names;

class WeightsFileTest : public ::testing::Test {
 protected:
  std::string problem(const std::string& name) {
    try {
      static_cast<void>(load_weights(folder_ / name));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  test::TemporaryFolder folder_;
};

TEST_F(WeightsFileTest, HeaderLengthsMayLookLikeAPickle) {
  for (const std::uint64_t header_bytes : {0x0280U, 0x10280U, 256U}) {
    std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    header.resize(header_bytes, ' ');
    std::ofstream file(folder_ / "w", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header_bytes), 8);
    file << header << "1234";
    file.close();
    const WeightsFile weights = load_weights(folder_ / "w");
    EXPECT_EQ(weights.format(), WeightsFormat::safetensors) << header_bytes;
    EXPECT_NE(weights.find("w"), nullptr) << header_bytes;
  }
}

TEST_F(WeightsFileTest, SavesByExtensionAndLoadsByContent) {
  save_weights(folder_ / "a.safetensors", test::sample_tensors(), {{"epoch", "16"}});
  save_weights(folder_ / "a.pt", test::sample_tensors());
  std::filesystem::rename(folder_ / "a.safetensors", folder_ / "was_safetensors.bin");
  const WeightsFile safetensors = load_weights(folder_ / "was_safetensors.bin");
  const WeightsFile torch = load_weights(folder_ / "a.pt");
  EXPECT_EQ(safetensors.format(), WeightsFormat::safetensors);
  EXPECT_EQ(torch.format(), WeightsFormat::torch);
  EXPECT_EQ(safetensors.metadata().at("epoch"), "16");
  EXPECT_EQ(dump(safetensors.records()), dump(test::sample_tensors()));
  EXPECT_EQ(dump(torch.records()), dump(test::sample_tensors()));
}

TEST_F(WeightsFileTest, FindsByNameAndMoves) {
  save_weights(folder_ / "a.pth", test::sample_tensors());
  WeightsFile first = load_weights(folder_ / "a.pth");
  const WeightsFile file = std::move(first);
  ASSERT_NE(file.find("half"), nullptr);
  EXPECT_EQ(file.find("half")->dtype, DType::f16);
  EXPECT_EQ(file.find("none"), nullptr);
  EXPECT_EQ(file.path(), folder_ / "a.pth");
}

TEST_F(WeightsFileTest, StripsThePrefixesOfWrappers) {
  auto records = test::sample_tensors();
  records.resize(3);
  records[0].name = "module._orig_mod.fc.weight";
  records[1].name = "_orig_mod.fc.bias";
  records[2].name = "submodule.x";
  save_weights(folder_ / "a.safetensors", records);
  const WeightsFile file = load_weights(folder_ / "a.safetensors");
  EXPECT_EQ(file.records()[0].name, "fc.weight");
  EXPECT_EQ(file.records()[1].name, "fc.bias");
  EXPECT_EQ(file.records()[2].name, "submodule.x");
  const WeightsFile kept = load_weights(folder_ / "a.safetensors", WrapperPrefixes::keep);
  EXPECT_EQ(dump(kept.records()), dump(records));
  // In a file that precast wrote, the prefix `module.` is part of the model's own names, so it is
  // kept.
  for (const char* name : {"own.safetensors", "own.pt"}) {
    save_weights(folder_ / name, records, {{std::string(kWeightsSpecKey), "{}"}});
    EXPECT_EQ(dump(load_weights(folder_ / name).records()), dump(records)) << name;
  }

  records[1].name = "fc.weight";
  save_weights(folder_ / "twice.safetensors", records);
  EXPECT_THAT(problem("twice.safetensors"), Names(folder_ / "twice.safetensors", "'fc.weight'"));
}

TEST_F(WeightsFileTest, NamesWhatIsNoWeightsFile) {
  write_file(folder_ / "text.pt", "just some text");
  write_file(folder_ / "empty.pt", "");
  EXPECT_THAT(problem("text.pt"), Names(folder_ / "text.pt", ".safetensors", ".pt", 14));
  EXPECT_THAT(problem("empty.pt"), Names(folder_ / "empty.pt", 0));
  EXPECT_THAT(problem("missing.pt"), Names(folder_ / "missing.pt", std::strerror(ENOENT)));
  EXPECT_THROW(save_weights(folder_ / "a.onnx", test::sample_tensors()), CheckpointError);
  EXPECT_THROW(save_weights(folder_ / "no" / "a.pt", test::sample_tensors()), IoError);
}

}  // namespace
}  // namespace precast
