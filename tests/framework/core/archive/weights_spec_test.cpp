#include "framework/core/archive/weights_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/core/archive/safetensors.h"
#include "framework/core/archive/torch_zip.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/framework/core/archive/sample_tensors.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

using test::Names;
using testing::ThrowsMessage;

WeightsSpec full_spec() {
  return {.arch = "resnet18",
          .params = {{"squeeze_excite.latent_channels", "64.0"}, {"zero_init_residual", "true"}},
          .blurpool = true,
          .blurred = {{"layer2.0.conv1", 64}, {"layer2.0.downsample.0", 64}},
          .num_classes = 3,
          .class_names = {"cat \"tabby\"", "chïen", ""},
          .mean = {123.675, 0.485 * 255, -1},
          .std = {58.395, 1e-3, 1},
          .resolution_px = 256};
}

TEST(WeightsSpecTest, TextGivesBackWhatWasWritten) {
  for (const WeightsSpec& spec :
       {full_spec(), WeightsSpec{.arch = "a"}, WeightsSpec{.arch = "a", .in_channels = 1}})
    EXPECT_EQ(parse_weights_spec(weights_spec_text(spec), "w"), spec);
}

TEST(WeightsSpecTest, ChannelsAreInTheTextOnlyIfTheyAreNotThree) {
  EXPECT_EQ(weights_spec_text({.arch = "a"}).find("in_channels"), std::string::npos);
  std::string text = weights_spec_text({.arch = "a", .in_channels = 1});
  const std::size_t position = text.find("\"in_channels\":1");
  ASSERT_NE(position, std::string::npos);
  text.replace(position, 15, "\"in_channels\":0");
  EXPECT_THAT([&] { (void)parse_weights_spec(text, "w"); },
              ThrowsMessage<CheckpointError>(Names("in_channels", 0)));
}

TEST(WeightsSpecTest, BothFormatsCarryIt) {
  const test::TemporaryFolder folder;
  for (const char* name : {"w.pt", "w.pth", "w.safetensors"}) {
    save_weights(folder / name, test::sample_tensors(), weights_metadata(full_spec()));
    EXPECT_EQ(read_weights_spec(folder / name), full_spec()) << name;
    EXPECT_EQ(test::dump(load_weights(folder / name).records()),
              test::dump(test::sample_tensors()));
    save_weights(folder / name, test::sample_tensors());
    EXPECT_EQ(read_weights_spec(folder / name), std::nullopt) << name;
  }
  save_weights(folder / "w.safetensors", test::sample_tensors(), weights_metadata(full_spec()));
  EXPECT_EQ(load_weights(folder / "w.safetensors").metadata().at("format"), "pt");
  save_weights(folder / "w.pt", test::sample_tensors(), {{"epoch", "16"}});
  EXPECT_TRUE(load_weights(folder / "w.pt").metadata().empty());
}

TEST(WeightsSpecTest, BytesThatAreNotUtf8AreReplaced) {
  const WeightsSpec spec{.arch = "a", .class_names = {"\xFF!"}};
  EXPECT_EQ(parse_weights_spec(weights_spec_text(spec), "w").class_names,
            std::vector<std::string>{"\xEF\xBF\xBD!"});
}

TEST(WeightsSpecTest, ClassNamesThatAreTooLongToBeReadAreNotWritten) {
  WeightsSpec spec = full_spec();
  const auto read = [&] {
    return parse_weights_spec(weights_metadata(spec).at(std::string(kWeightsSpecKey)), "w");
  };
  spec.class_names.assign(15, std::string(1U << 20U, 'a'));
  EXPECT_EQ(read(), spec);
  spec.class_names.assign(17, std::string(1U << 20U, 'a'));
  const WeightsSpec stored = read();
  EXPECT_TRUE(stored.class_names.empty());
  EXPECT_TRUE(drop_long_class_names(spec));
  EXPECT_EQ(stored, spec);
  EXPECT_FALSE(drop_long_class_names(spec));
}

TEST(WeightsSpecTest, WhatIsNotASpecIsRefusedAndTheKeyNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"[]", ""},
      {"1", ""},
      {R"({"arch": "a"})", "version"},
      {R"({"version": 2, "arch": "a"})", "version"},
      {R"({"version": 1.0, "arch": "a"})", "version"},
      {R"({"version": 1})", "arch"},
      {R"({"version": 1, "arch": 3})", "arch"},
      {R"({"version": 1, "arch": "a", "arch": "b"})", "arch"},
      {R"({"version": 1, "arch": "a", "other": 1})", "other"},
      {R"({"version": 1, "arch": "a", "params": []})", "params"},
      {R"({"version": 1, "arch": "a", "params": {"b": 1}})", "params"},
      {R"({"version": 1, "arch": "a", "params": {"b": {}}})", "params"},
      {R"({"version": 1, "arch": "a", "params": {"b": "1", "b": "2"}})", "params"},
      {R"({"version": 1, "arch": "a", "blurpool": 1})", "blurpool"},
      {R"({"version": 1, "arch": "a", "blurred": {"l": 64}})", "blurred"},
      {R"({"version": 1, "arch": "a", "blurpool": true, "blurred": {"l": 0}})", "blurred"},
      {R"({"version": 1, "arch": "a", "blurpool": true, "blurred": {"l": -1}})", "blurred"},
      {R"({"version": 1, "arch": "a", "num_classes": 0})", "num_classes"},
      {R"({"version": 1, "arch": "a", "num_classes": 18446744073709551615})", "num_classes"},
      {R"({"version": 1, "arch": "a", "class_names": [1]})", "class_names"},
      {R"({"version": 1, "arch": "a", "class_names": [["b"]]})", "class_names"},
      {R"({"version": 1, "arch": "a", "class_names": null})", "class_names"},
      {R"({"version": 1, "arch": "a", "mean": [1], "std": []})", "std"},
      {R"({"version": 1, "arch": "a", "mean": [1], "std": [0]})", "std"},
      {R"({"version": 1, "arch": "a", "mean": [1e999], "std": [1]})", ""},
      {R"({"version": 1, "arch": "a", "resolution": -3})", "resolution"},
      {R"({"version": 1, "arch": "a"}})", ""},
      {R"({"version": 1, "arch": "a")", ""},
  };
  for (const auto& [text, key] : cases) {
    EXPECT_THAT([&] { (void)parse_weights_spec(text, "w.pt"); },
                ThrowsMessage<CheckpointError>(Names("w.pt", std::string(kWeightsSpecKey), key)))
        << text;
  }
}

TEST(WeightsSpecTest, HostileNestingAndSizeAreRefusedAtOnce) {
  const std::string start = R"({"version": 1, "arch": "a", "class_names": )";
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text = start;
    while (text.size() < 1'000'000) text += open;
    EXPECT_THROW((void)parse_weights_spec(text, "w"), CheckpointError);
  }
  EXPECT_THAT(
      [] { (void)parse_weights_spec(std::string(kMaxWeightsSpecBytes + 1, ' '), "w"); },
      ThrowsMessage<CheckpointError>(Names(kMaxWeightsSpecBytes, kMaxWeightsSpecBytes + 1)));
}

/// The tensors and the model spec as one text.
std::string described(const TensorArchive& archive) {
  const auto found = archive.metadata.find(std::string(kWeightsSpecKey));
  if (found == archive.metadata.end()) return test::dump(archive.records);
  return test::dump(archive.records) + weights_spec_text(parse_weights_spec(found->second, "w"));
}

TEST(WeightsSpecTest, EveryCutAndChangedByteIsNoticed) {
  const test::TemporaryFolder folder;
  const auto tensors = std::vector<TensorRecord>(1, test::sample_tensors()[0]);
  const auto torch = [](std::span<const std::byte> file) {
    return described(parse_torch_zip(file, "w"));
  };
  const auto safetensors = [](std::span<const std::byte> file) {
    return described(parse_safetensors(file, "w"));
  };
  save_weights(folder / "w.pt", tensors, weights_metadata(full_spec()));
  save_weights(folder / "w.safetensors", tensors, weights_metadata(full_spec()));
  const auto zip = read_file(folder / "w.pt");
  const auto header = read_file(folder / "w.safetensors");
  test::expect_refused_at_every_cut(zip, torch);
  test::expect_refused_at_every_cut(header, safetensors);
  test::expect_refused_or_intact(zip, torch(zip), torch);
  test::expect_refused_or_intact(header, safetensors(header), safetensors);
}

}  // namespace
}  // namespace precast
