#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/archive/weight_names.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/file.h"
#include "tests/framework/core/archive/sample_tensors.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using test::Names;

class ConvertTest : public testing::Test {
 protected:
  int convert(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    arguments.insert(arguments.begin(), {test::bin_dir() + "/precast", "convert"});
    test::Program program(std::move(arguments), std::move(environment));
    const int code = program.wait();
    output = program.out;
    error = program.err;
    return code;
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder_ / name).string(); }
  static std::string golden(const std::string& name) {
    return fmt::format("{}/torch/{}.pt", test::golden_dir(), name);
  }
  static std::string dump_of(const std::string& path) {
    return test::dump(load_weights(path).records());
  }
  [[nodiscard]] std::size_t count_files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }

  test::TemporaryFolder folder_;
  std::string output;
  std::string error;
};

TEST_F(ConvertTest, FilesOfTorchSurviveARoundTrip) {
  for (const char* name : {"state_dict", "plain_dict", "dtypes", "channels_last", "parameters",
                           "checkpoint", "checkpoint_protocol4"}) {
    ASSERT_EQ(convert({golden(name), at("a.safetensors")}), 0) << name << error;
    ASSERT_EQ(convert({at("a.safetensors"), at("b.pth")}), 0) << name << error;
    for (const char* made : {"a.safetensors", "b.pth"}) {
      EXPECT_EQ(dump_of(at(made)), test::golden_dump(name)) << name << made;
    }
    EXPECT_EQ(count_files(), 2U);
  }
}

TEST_F(ConvertTest, AveragesBesideTheWeightsCauseAWarning) {
  test::write_training_checkpoint(at("timm.pt"), {"state_dict", "state_dict_ema"});
  ASSERT_EQ(convert({at("timm.pt"), at("out.pt")}), 0) << error;
  EXPECT_THAT(error, Names("warning", at("timm.pt"), "'state_dict'", "'state_dict_ema'"));
  EXPECT_EQ(dump_of(at("out.pt")), dump_of(at("timm.pt")));
  test::write_training_checkpoint(at("plain.pt"), {"state_dict"});
  ASSERT_EQ(convert({at("plain.pt"), at("out.pt")}), 0);
  EXPECT_EQ(error, "");
}

TEST_F(ConvertTest, PrefixesOfWrappersAreRemovedAndFiltersStay) {
  auto records = test::sample_tensors();
  records.resize(4);
  const char* names[] = {"module.layer2.0.conv1.conv.weight", "module.layer2.0.conv1.blur_filter",
                         "module._orig_mod.fc.weight", "module.block.conv.weight"};
  for (std::size_t i = 0; i < records.size(); ++i) records[i].name = names[i];
  save_weights(at("in.safetensors"), records, {{"epoch", "16"}});
  ASSERT_EQ(convert({at("in.safetensors"), at("out.pt"), "--json"}), 0) << error;

  const auto report = nlohmann::json::parse(output);
  EXPECT_EQ(report["file"], at("out.pt"));
  EXPECT_EQ(report["tensors"], 4);
  EXPECT_EQ(report["tensor_bytes"], records[0].bytes.size() + records[1].bytes.size() +
                                        records[2].bytes.size() + records[3].bytes.size());
  EXPECT_EQ(report["bytes"], std::filesystem::file_size(at("out.pt")));
  EXPECT_EQ(report["renamed"], 0);
  EXPECT_EQ(report["left_out"], std::vector<std::string>{"metadata epoch"});
  const char* plain[] = {"layer2.0.conv1.conv.weight", "layer2.0.conv1.blur_filter", "fc.weight",
                         "block.conv.weight"};
  for (std::size_t i = 0; i < records.size(); ++i) records[i].name = plain[i];
  EXPECT_EQ(dump_of(at("out.pt")), test::dump(records));

  ASSERT_EQ(convert({at("in.safetensors"), at("out.safetensors")}), 0);
  EXPECT_THAT(output, Names(at("out.safetensors"), 4));
  EXPECT_EQ(load_weights(at("out.safetensors")).metadata().at("epoch"), "16");
}

/// A convolution of 16 channels and a linear layer, in files of a network with and without
/// BlurPool.
class ConvertNamesTest : public ConvertTest {
 protected:
  ConvertNamesTest() {
    save("plain", {"conv.weight", "fc.weight"}, plain_);
    WeightsSpec blurred = plain_;
    blurred.blurpool = true;
    blurred.blurred = {{"conv", 16}};
    // First the weights of a checkpoint, then a file like those of ffcv-imagenet.
    save("blurred", {"conv.weight", "fc.weight"}, blurred);
    save("ffcv", {"conv.blur_filter", "conv.conv.weight", "fc.weight"}, std::nullopt);
    save("torchvision", {"conv.weight", "fc.weight"}, std::nullopt);
    WeightsSpec own = plain_;
    own.params["squeeze_excite.latent_channels"] = "64.0";
    save("own", {"conv.weight", "fc.weight"}, own);
    own = {.arch = "layers"};
    save("layers", {"conv.weight", "fc.weight"}, own);
    own = plain_;
    own.in_channels = 4;
    save("channels", {"conv.weight", "fc.weight"}, own);
    save("own filter", {"conv.blur_filter", "conv.conv.weight", "fc.weight"}, plain_);
  }
  void save(const std::string& file, const std::vector<std::string>& names,
            const std::optional<WeightsSpec>& spec) {
    std::vector<TensorRecord> records;
    for (const std::string& name : names) {
      const bool filter = name.ends_with("blur_filter");
      const std::vector<std::int64_t> shape =
          name == "fc.weight" ? std::vector<std::int64_t>{2, 4}
                              : std::vector<std::int64_t>{filter ? 16 : 4, filter ? 1 : 16, 3, 3};
      records.push_back({name, DType::f32, shape,
                         std::as_bytes(std::span(values_)).first(*byte_count(DType::f32, shape))});
    }
    const auto metadata = spec ? weights_metadata(*spec) : std::map<std::string, std::string>();
    save_weights(at(file + ".safetensors"), records, metadata);
    save_weights(at(file + ".pt"), records, metadata);
  }
  [[nodiscard]] std::vector<std::string> names_in(const std::string& file) const {
    std::vector<std::string> names;
    const WeightsFile weights = load_weights(at(file));
    for (const TensorRecord& record : weights.records()) names.push_back(record.name);
    return names;
  }

  std::vector<float> values_ = std::vector<float>(1024, 0.5F);
  WeightsSpec plain_ = {.arch = "resnet18", .num_classes = 2, .class_names = {"cat", "dog"}};
};

TEST_F(ConvertNamesTest, GiveWhatTheOtherProgramComputesOrAreRefused) {
  const std::vector<std::string> plain = {"conv.weight", "fc.weight"};
  const std::vector<std::string> ffcv = {"conv.blur_filter", "conv.conv.weight", "fc.weight"};
  struct Case {
    std::string in, names;
    std::vector<std::string> written;
    std::vector<std::string> facts = {};
  };
  const std::vector<Case> cases = {
      {"plain", "", plain},
      {"plain", "torchvision", plain},
      {"plain", "timm", plain},
      {"plain", "ffcv", plain},
      {"torchvision", "", plain},
      {"torchvision", "torchvision", plain},
      {"torchvision", "timm", plain},
      {"torchvision", "ffcv", plain},
      {"blurred", "", ffcv},
      {"blurred", "ffcv", ffcv},
      {"blurred", "torchvision", {}, {"torchvision", "BlurPool", "ffcv"}},
      {"blurred", "timm", {}, {"timm", "BlurPool"}},
      {"ffcv", "", ffcv},
      {"ffcv", "ffcv", ffcv},
      {"ffcv", "torchvision", {}, {"torchvision", "BlurPool"}},
      {"ffcv", "timm", {}, {"timm", "BlurPool"}},
      {"own filter", "", ffcv},
      {"own filter", "torchvision", ffcv},
      {"own", "", plain},
      {"own", "torchvision", {}, {"model.params.squeeze_excite.latent_channels", "64.0"}},
      {"own", "timm", {}, {"model.params.squeeze_excite.latent_channels", "64.0"}},
      {"own", "ffcv", {}, {"model.params.squeeze_excite.latent_channels", "64.0"}},
      {"layers", "", plain},
      {"layers", "torchvision", {}, {"model.arch", "layers"}},
      {"channels", "", plain},
      {"channels", "timm", plain},
      {"channels", "torchvision", {}, {"torchvision", "model.in_channels", "4"}},
      {"channels", "ffcv", {}, {"ffcv", "model.in_channels", "4"}},
  };
  for (const Case& item : cases) {
    for (const std::string from : {".pt", ".safetensors"}) {
      for (const std::string to : {"out.pt", "out.safetensors"}) {
        SCOPED_TRACE(item.in + from + " " + item.names + " " + to);
        std::filesystem::remove(at(to));
        std::vector<std::string> arguments = {at(item.in + from), at(to)};
        if (!item.names.empty()) arguments.insert(arguments.end(), {"--names", item.names});
        EXPECT_EQ(convert(arguments), item.facts.empty() ? 0 : 4) << error;
        EXPECT_EQ(std::filesystem::exists(at(to)), item.facts.empty());
        EXPECT_THAT(error, test::NamesMatcher(item.facts));
        if (!item.facts.empty()) continue;
        EXPECT_EQ(names_in(to), item.written);
        EXPECT_EQ(read_weights_spec(at(to)), read_weights_spec(at(item.in + from)));
      }
    }
  }
}

TEST_F(ConvertNamesTest, ACheckpointGivesTheWeightsThatItsRunEvaluated) {
  WeightsSpec spec = plain_;
  spec.blurpool = true;
  spec.blurred = {{"conv", 16}};
  const std::vector<float> raw(64, 0.5F), average(64, 0.25F);
  const auto record = [](const std::string& name, const std::vector<float>& values) {
    return TensorRecord{name, DType::f32, {4, 16, 1, 1}, std::as_bytes(std::span(values))};
  };
  /// @param method nullopt: a checkpoint of an older version, which did not record the method
  const auto checkpoint = [&](std::int64_t step, const std::optional<std::string>& method) {
    CheckpointWriter writer(folder_.path(), step, /*expected_bytes=*/0);
    auto metadata = weights_metadata(spec);
    if (method) metadata.emplace(kAveragesKey, *method);
    const FfcvNames model = ffcv_names({record("conv.weight", raw)}, spec.blurred, "test");
    save_weights(writer.path("model.safetensors"), model.records, metadata);
    writer.add_written("model.safetensors");
    save_weights(writer.path("methods.safetensors"),
                 std::vector{record("ema/conv.weight.ema", average)});
    writer.add_written("methods.safetensors");
    return writer.commit().string();
  };
  const auto written = [&] {
    const WeightsFile file = load_weights(at("out.safetensors"));
    EXPECT_EQ(spec_of(file), spec);
    EXPECT_FALSE(file.metadata().contains(std::string(kAveragesKey)));
    EXPECT_EQ(names_in("out.safetensors"),
              (std::vector<std::string>{"conv.blur_filter", "conv.conv.weight"}));
    float first = 0;
    std::memcpy(&first, file.find("conv.conv.weight")->bytes.data(), sizeof first);
    return first;
  };
  const std::string averaged = checkpoint(1, "ema");
  ASSERT_EQ(convert({averaged, at("out.safetensors")}), 0) << error;
  EXPECT_EQ(written(), 0.25F);
  EXPECT_EQ(error, "");
  // The file itself is still converted, with a warning.
  ASSERT_EQ(convert({averaged + "/model.safetensors", at("raw.safetensors")}), 0);
  EXPECT_THAT(error, Names("warning", "ema", "precast eval " + averaged));
  EXPECT_EQ(dump_of(at("raw.safetensors")), dump_of(averaged + "/model.safetensors"));
  ASSERT_EQ(convert({at("raw.safetensors"), at("raw.pt")}), 0);
  EXPECT_THAT(error, testing::AllOf(Names("warning", "ema"), testing::Not(Names("precast eval"))))
      << "the file is not in the folder of a checkpoint";
  ASSERT_EQ(convert({checkpoint(2, ""), at("out.safetensors")}), 0) << error;
  EXPECT_EQ(written(), 0.5F);
  const std::string older = checkpoint(3, std::nullopt);
  EXPECT_EQ(convert({older, at("none.safetensors")}), 4);
  EXPECT_THAT(error, Names(older));
  const std::string other = checkpoint(4, "swa");
  EXPECT_EQ(convert({other, at("none.safetensors")}), 4);
  EXPECT_THAT(error, Names(other, "swa"));
  EXPECT_EQ(convert({averaged, averaged + "/out.safetensors"}), 2);
  EXPECT_EQ(convert({folder_.path().string(), at("none.safetensors")}), 2);
  EXPECT_FALSE(std::filesystem::exists(at("none.safetensors")));
}

TEST_F(ConvertNamesTest, TheFolderOfAFinishedRunGivesItsFinalWeights) {
  const std::filesystem::path run = folder_ / "run";
  std::filesystem::create_directories(run);
  write_file(run / "params.json", "{}");
  const std::string out = at("out.safetensors");
  EXPECT_EQ(convert({run.string(), out}), 2);
  EXPECT_THAT(error, Names(run.string(), "final_weights.safetensors"));
  const auto checkpoint = [&](std::int64_t step) {
    CheckpointWriter writer(run / "checkpoints", step, /*expected_bytes=*/0);
    writer.add("state.json", std::as_bytes(std::span(values_)));
    return writer.commit().string();
  };
  const std::string unfinished = checkpoint(2);
  EXPECT_EQ(convert({run.string(), out}), 2);
  EXPECT_THAT(error, Names(run.string(), "final_weights.safetensors", unfinished));
  EXPECT_FALSE(std::filesystem::exists(out));

  save("run/final_weights", {"conv.weight", "fc.weight"}, plain_);
  const std::string weights = (run / "final_weights.safetensors").string();
  write_file(run / "summary.json", R"({"steps": 2})");
  ASSERT_EQ(convert({run.string() + "/", out, "--json"}), 0) << error;
  EXPECT_EQ(dump_of(out), dump_of(weights));
  EXPECT_EQ(nlohmann::json::parse(output)["input"], weights);
  EXPECT_EQ(convert({run.string(), weights}), 2) << "the final weights must not be replaced";

  // The run was continued and has not finished again.
  const std::string newer = checkpoint(5);
  EXPECT_EQ(convert({run.string(), at("none.safetensors")}), 2);
  EXPECT_THAT(error, Names(run.string(), newer, weights));
  EXPECT_FALSE(std::filesystem::exists(at("none.safetensors")));

  // It is unknown which weights are newer.
  for (const char* summary : {"{", "[]", R"({"steps": "2"})", "{}"}) {
    write_file(run / "summary.json", summary);
    EXPECT_EQ(convert({run.string(), out}), 0) << summary << error;
  }
  std::filesystem::remove(run / "summary.json");
  ASSERT_EQ(convert({run.string(), out, "--json"}), 0) << error;
  EXPECT_EQ(nlohmann::json::parse(output)["input"], weights);
}

TEST_F(ConvertNamesTest, EveryFloatingPointWeightOfACheckpointNeedsItsAverage) {
  const std::vector<float> values(4, 0.5F);
  const std::int64_t count = 7;
  const auto floats = [&](const std::string& name) {
    return TensorRecord{name, DType::f32, {4}, std::as_bytes(std::span(values))};
  };
  const TensorRecord integer = {
      "bn.num_batches_tracked", DType::i64, {}, std::as_bytes(std::span(&count, 1))};
  const auto checkpoint = [&](std::int64_t step, const std::vector<TensorRecord>& model) {
    CheckpointWriter writer(folder_.path(), step, /*expected_bytes=*/0);
    auto metadata = weights_metadata(plain_);
    metadata.emplace(kAveragesKey, "ema");
    save_weights(writer.path("model.safetensors"), model, metadata);
    writer.add_written("model.safetensors");
    save_weights(writer.path("methods.safetensors"), std::vector{floats("ema/bn.weight.ema")});
    writer.add_written("methods.safetensors");
    return writer.commit().string();
  };
  const std::string complete = checkpoint(1, {floats("bn.weight"), integer});
  ASSERT_EQ(convert({complete, at("out.safetensors")}), 0) << error;
  EXPECT_EQ(names_in("out.safetensors").size(), 2U);
  const std::string mixed = checkpoint(2, {floats("bn.weight"), floats("bn.bias"), integer});
  EXPECT_EQ(convert({mixed, at("none.safetensors")}), 4);
  EXPECT_THAT(error, Names(mixed, "ema", "bn.bias"));
  EXPECT_FALSE(std::filesystem::exists(at("none.safetensors")));
}

TEST_F(ConvertNamesTest, AnUnknownProgramEndsWithCode2) {
  EXPECT_EQ(convert({at("plain.pt"), at("out.pt"), "--names", "keras"}), 2);
  EXPECT_THAT(error, Names("--names", "torchvision", "ffcv", "timm", "'keras'"));
}

TEST_F(ConvertNamesTest, ASpecThatDoesNotFitTheTensorsIsRefused) {
  WeightsSpec wrong = plain_;
  wrong.blurpool = true;
  wrong.blurred = {{"layer2.0.conv1", 64}};
  save("wrong", {"conv.weight"}, wrong);
  EXPECT_EQ(convert({at("wrong.pt"), at("out.pt")}), 4);
  EXPECT_THAT(error, Names(at("wrong.pt"), "'layer2.0.conv1.weight'"));
}

TEST_F(ConvertTest, WhatHoldsNoWeightsEndsWithCode4AndWritesNothing) {
  write_file(at("text.pt"), "just some text");
  const auto whole = test::golden_file("state_dict");
  write_file(at("cut.pt"), {reinterpret_cast<const char*>(whole.data()), whole.size() / 2});
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {at("text.pt"), {"14"}},
      {at("cut.pt"), {}},
      {golden("legacy"), {"1.6"}},
      {golden("script"), {"TorchScript"}},
      {golden("no_tensors"), {"state_dict"}},
  };
  for (const auto& [in, facts] : cases) {
    write_file(at("out.safetensors"), "older");
    EXPECT_EQ(convert({in, at("out.safetensors")}), 4) << in;
    EXPECT_THAT(error, testing::AllOf(Names(in), test::NamesMatcher(facts)));
    EXPECT_EQ(output, "");
    EXPECT_EQ(read_file(at("out.safetensors")).size(), 5U) << "the older file must remain";
    EXPECT_EQ(count_files(), 3U);
  }
}

TEST_F(ConvertTest, WhatCannotBeReadOrWrittenEndsWithCode5) {
  EXPECT_EQ(convert({at("none.pt"), at("out.pt")}), 5);
  EXPECT_THAT(error, Names(at("none.pt"), std::strerror(ENOENT)));
  EXPECT_EQ(convert({golden("state_dict"), at("no/out.pt")}), 5);
  EXPECT_THAT(error, Names("no/out.pt", std::strerror(ENOENT)));
  EXPECT_EQ(convert({golden("state_dict"), at("out.pt")},
                    {"PRECAST_FAILPOINTS=atomic_file.before_rename=error"}),
            5);
  EXPECT_EQ(count_files(), 0U);
}

TEST_F(ConvertTest, WrongArgumentsEndWithCode2) {
  EXPECT_EQ(convert({}), 2);
  EXPECT_THAT(error, Names("precast convert IN OUT"));  // the wording is tested: a command
  EXPECT_EQ(convert({golden("state_dict")}), 2);
  EXPECT_EQ(convert({golden("state_dict"), at("out.onnx")}), 2);
  EXPECT_THAT(error, Names(at("out.onnx"), ".safetensors", ".pt", ".pth"));
  EXPECT_EQ(convert({golden("state_dict"), at("out.pt"), "--half"}), 2);
  save_weights(at("same.pt"), test::sample_tensors());
  std::filesystem::create_symlink("same.pt", at("link.pt"));
  EXPECT_EQ(convert({at("same.pt"), at("link.pt")}), 2);
  EXPECT_THAT(error, Names(at("same.pt"), at("link.pt")));
  EXPECT_EQ(convert({"--help"}), 0);
  EXPECT_THAT(output, Names("precast convert IN OUT"));  // the wording is tested: a command
}

}  // namespace
}  // namespace precast::tools
