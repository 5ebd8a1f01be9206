#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/image/image_file.h"
#include "data/write/blob_fields.h"
#include "data/write/writer.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/precast_run.h"

namespace precast::tools {
namespace {

using test::Names;
using testing::AllOf;
using testing::HasSubstr;

class InspectTest : public testing::Test {
 protected:
  /// Unpacks a golden file. @return its path.
  std::string golden(const std::string& name) {
    return test::put_golden_beton(folder_.path(), name);
  }
  int inspect(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "inspect");
    const test::PrecastRun run = test::precast_run(std::move(arguments));
    output = run.out;
    error = run.err;
    return run.code;
  }
  /// Writes a file of one float field. @return its path.
  std::string floats(const std::string& field, const std::vector<double>& values) {
    const std::string path = (folder_ / "floats.beton").string();
    data::BetonWriter writer(path, {{field, data::FieldType::floating}}, values.size(), {});
    for (const double number : values) {
      data::EncodedValue value;
      value.metadata.resize(sizeof number);
      data::store(value.metadata.data(), number);
      writer.add({&value, 1});
    }
    writer.finish();
    return path;
  }
  test::TemporaryFolder folder_;
  std::string output;
  std::string error;
};

TEST_F(InspectTest, TheLabelFieldMustExistEvenIfNoFieldHasLabels) {
  const std::string file = floats("x", {1, 2});
  EXPECT_EQ(inspect({file, "--where", "x > 1"}), 0) << error;
  EXPECT_EQ(inspect({file, "--where", "x > 1", "--label-field", "species"}), 2);
  EXPECT_THAT(error, Names("species"));
}

TEST_F(InspectTest, JsonHoldsWhatFfcvPutIntoTheFile) {
  ASSERT_EQ(inspect({golden("img_smart_w3"), "--json", "--label-values"}), 0) << error;
  const auto report = nlohmann::json::parse(output);
  const auto facts = test::golden_beton_facts("img_smart_w3");
  EXPECT_EQ(report["samples"], facts["rows"].size());
  EXPECT_EQ(report["page_size"], facts["page_size"]);
  EXPECT_EQ(report["table_offset"], facts["table_offset"]);
  EXPECT_EQ(report["pages"], 3);
  const auto& label = report["fields"][0];
  const auto& image = report["fields"][1];
  std::vector<std::int64_t> labels;
  int jpg = 0;
  double width = 0;
  for (const auto& row : facts["rows"]) {
    labels.push_back(row[0]);
    jpg += row[1][0] == 0 ? 1 : 0;
    width += row[1][1].get<double>();
  }
  EXPECT_EQ(label["labels"], labels);
  EXPECT_EQ(label["min"], *std::ranges::min_element(labels));
  EXPECT_EQ(image["jpg"], jpg);
  EXPECT_EQ(image["raw"], facts["rows"].size() - static_cast<std::size_t>(jpg));
  EXPECT_DOUBLE_EQ(image["width"]["mean"], width / static_cast<double>(labels.size()));
  ASSERT_EQ(inspect({golden("img_smart_w3"), "--json"}), 0);
  EXPECT_THAT(output, testing::Not(HasSubstr("labels")));
}

TEST_F(InspectTest, ShowsEveryKindOfField) {
  ASSERT_EQ(inspect({golden("allfields_w1")}), 0) << error;
  EXPECT_THAT(output, Names(40, "tensor_f16_16chr tensor", "<f4 [3,5]", "1e+308"));
  const std::string images = golden("img_jpg_w3");
  ASSERT_EQ(inspect({images, "--json"}), 0) << error;
  const auto bytes = nlohmann::json::parse(output)["field_bytes"]["image"].get<double>();
  ASSERT_EQ(inspect({images}), 0) << error;
  EXPECT_EQ(test::occurrences(output, "\nimage "), 1) << "one line begins with the field's name";
  EXPECT_THAT(output, HasSubstr(format_bytes(bytes) + " in all"));
  ASSERT_EQ(inspect({golden("scalars_only")}), 0) << error;
  EXPECT_THAT(output, Names(50, 0, "exactly_16_chars int"));
}

TEST_F(InspectTest, TakesAnImageOutAsItIsStored) {
  const std::string raw = golden("img_raw_w1");
  const std::string ppm = (folder_ / "x.ppm").string();
  ASSERT_EQ(inspect({raw, "--sample", "2", "--output", ppm}), 0) << error;
  const data::BetonReader reader(raw);
  const data::ImageRecord image = reader.image(2, 0);
  const auto file = test::read_bytes(ppm);
  const std::string head = fmt::format("P6\n{} {}\n255\n", image.width, image.height);
  ASSERT_EQ(file.size(), head.size() + image.bytes.size());
  EXPECT_TRUE(std::ranges::equal(std::span(file).subspan(head.size()), image.bytes));

  const std::string npy = (folder_ / "x.npy").string();
  ASSERT_EQ(inspect({raw, "--sample", "2", "--output", npy}), 0) << error;
  const auto array = test::read_bytes(npy);
  EXPECT_TRUE(std::ranges::equal(std::span(array).last(image.bytes.size()), image.bytes));

  const std::string jpg = golden("img_jpg_w3");
  const std::string out = (folder_ / "x.jpg").string();
  ASSERT_EQ(inspect({jpg, "--sample", "5", "--output", out}), 0) << error;
  const data::BetonReader jpegs(jpg);
  EXPECT_TRUE(std::ranges::equal(test::read_bytes(out), jpegs.image(5, 0).bytes));
  EXPECT_EQ(nlohmann::json::parse(output)["label"], jpegs.integer(5, 1));
}

TEST_F(InspectTest, RefusesWhatItCannotShow) {
  const std::string file = golden("img_raw_w1");
  EXPECT_EQ(inspect({file, "--sample", "24"}), 2);
  EXPECT_THAT(error, Names("--sample", 0, 23, 24));
  EXPECT_EQ(inspect({file, "--sample", "0", "--output", (folder_ / "x.gif").string()}), 2);
  const std::string image = (folder_ / "x.jpg").string();
  std::filesystem::create_hard_link(file, image);
  EXPECT_EQ(inspect({file, "--sample", "0", "--output", image}), 2);
  EXPECT_THAT(error, Names(image, file));
  EXPECT_EQ(inspect({file, "--output", "x.jpg"}), 2);
  EXPECT_EQ(inspect({file, "--sample", "0", "--field", "label", "--output", "x.jpg"}), 2);
  EXPECT_EQ(inspect({}), 2);
  EXPECT_EQ(inspect({(folder_ / "missing.beton").string()}), 5);
  const std::string cut = golden("img_jpg_w3");
  std::filesystem::resize_file(cut, 4'000'000);
  EXPECT_EQ(inspect({cut}), 3);
  EXPECT_THAT(error, Names(cut, "header", 4'000'000));
}

TEST_F(InspectTest, WhereTellsWhichSamplesFitAndHowTheyAreDistributed) {
  const std::string file = golden("img_smart_w3");
  const auto facts = test::golden_beton_facts("img_smart_w3");
  std::vector<std::uint64_t> expected;
  std::map<std::int64_t, int> classes;
  const auto limit = facts["rows"][facts["rows"].size() / 2][0].get<std::int64_t>();
  const std::string where = fmt::format("mode == jpg and label <= {}", limit);
  for (std::uint64_t i = 0; i < facts["rows"].size(); ++i) {
    const auto& row = facts["rows"][i];
    if (row[1][0] != 0 || row[0] > limit) continue;
    expected.push_back(i);
    ++classes[row[0]];
  }
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(inspect({file, "--json", "--where", where}), 0) << error;
  const auto report = nlohmann::json::parse(output);
  EXPECT_EQ(report["ids"], expected);
  EXPECT_EQ(report["chosen"], expected.size());
  // The minimum over all samples could be mistaken for the minimum over the chosen samples.
  EXPECT_FALSE(report["fields"][0].contains("min"));
  std::size_t counted = 0;
  for (const auto& bin : report["longer_side"]) counted += bin["count"].get<std::size_t>();
  EXPECT_EQ(counted, expected.size());
  ASSERT_EQ(report["classes"].size(), classes.size());
  for (const auto& entry : report["classes"])
    EXPECT_EQ(entry["count"], classes.at(entry["label"].get<std::int64_t>()));
  ASSERT_EQ(inspect({file, "--where", where}), 0) << error;
  EXPECT_THAT(output,
              AllOf(Names(expected.size(), facts["rows"].size(), expected[0]), HasSubstr("#")));
  EXPECT_EQ(inspect({file, "--where", "label < 5", "--sample", "0"}), 2);
  EXPECT_THAT(error, Names("--where", "--sample"));
}

/// Writes samples whose classes alternate. @param field the name of the label field.
std::string named_classes(const std::filesystem::path& path, const std::vector<std::string>& names,
                          std::size_t samples, const std::string& field = "label") {
  data::BetonLayout layout;
  layout.info = data::file_info_text({.classes = {{field, names}}, .written = {}});
  data::BetonWriter writer(path, {{field, data::FieldType::integer}}, samples, layout);
  for (std::size_t i = 0; i < samples; ++i) {
    data::EncodedValue value;
    value.metadata.resize(8);
    data::store(value.metadata.data(), static_cast<std::int64_t>(i % names.size()));
    writer.add({&value, 1});
  }
  writer.finish();
  return path.string();
}

TEST_F(InspectTest, ClassesAreShownAndChosenByTheirNames) {
  const std::string file = named_classes(folder_ / "a.beton", {"cats", "dogs"}, 4);
  ASSERT_EQ(inspect({file}), 0) << error;
  EXPECT_THAT(output, Names("2 classes of 2 samples each", "0 cats", "1 dogs"));
  for (const auto& [option, value] :
       {std::pair("--classes", "dogs"), std::pair("--where", "label == \"dogs\""),
        std::pair("--where", "label in ['dogs']")}) {
    ASSERT_EQ(inspect({file, option, value, "--json"}), 0) << error;
    const auto report = nlohmann::json::parse(output);
    EXPECT_EQ(report["ids"], (std::vector<int>{1, 3})) << value;
    EXPECT_EQ(report["classes"][0]["name"], "dogs");
    ASSERT_EQ(inspect({file, option, value}), 0) << error;
    EXPECT_THAT(output, Names("dogs"));
  }
  ASSERT_EQ(inspect({file, "--classes", "cats,1"}), 0) << error;
  EXPECT_THAT(output, Names("4 of 4"));
  ASSERT_EQ(inspect({file, "--sample", "1"}), 0) << error;
  EXPECT_EQ(nlohmann::json::parse(output)["class_names_by_field"]["label"], "dogs");
  EXPECT_EQ(inspect({file, "--where", "label == 'dosg'"}), 2);
  EXPECT_THAT(error, Names("--where", "'dosg'", "'dogs'"));
  EXPECT_EQ(inspect({file, "--classes", "cat"}), 2);
  EXPECT_THAT(error, Names("--classes", "'cat'", "'cats'"));
}

TEST_F(InspectTest, ANumberThatIsAClassNameMeansThatClassUnlessItIsAnothersLabel) {
  const auto chosen = [this](const std::string& file, const std::string& classes) {
    EXPECT_EQ(inspect({file, "--classes", classes, "--json"}), 0) << error;
    return nlohmann::json::parse(output)["ids"];
  };
  // The sorted names of class folders: the label of "10" is 2, that of "2" is 3.
  const std::string file = named_classes(folder_ / "a.beton", {"0", "1", "10", "2"}, 4);
  EXPECT_EQ(chosen(file, "1,10"), nlohmann::json::array({1, 2}));
  EXPECT_EQ(chosen(file, "0:2,3"), nlohmann::json::array({0, 1, 3}));
  EXPECT_EQ(inspect({file, "--classes", "0,2"}), 2);
  EXPECT_THAT(error, Names("--classes", file, "'2'", "2 (10)", "3 (2)", "--where 'label == 2'",
                           R"(--where 'label == "2"')"));
  EXPECT_EQ(inspect({file, "--classes", "4"}), 2);
  EXPECT_THAT(error, Names("--classes", 4, "'4'"));
  // With leading zeros, a value may be the name of a class or a number.
  const std::string zeros =
      named_classes(folder_ / "b.beton", {"007", "008", "009"}, 3, "class id");
  EXPECT_EQ(chosen(zeros, "007"), nlohmann::json::array({0}));
  EXPECT_EQ(chosen(zeros, "001"), nlohmann::json::array({1}));
  const std::string shifted = named_classes(folder_ / "c.beton", {"001", "002"}, 2, "class id");
  EXPECT_EQ(inspect({shifted, "--classes", "001"}), 2);
  EXPECT_THAT(error, Names("'001'", "1 (002)", "0 (001)", R"('"class id" == 1')",
                           R"('"class id" == "001"')"));
  ASSERT_EQ(inspect({shifted, "--where", R"("class id" == "001")", "--json"}), 0) << error;
  EXPECT_EQ(nlohmann::json::parse(output)["ids"], nlohmann::json::array({0}));
}

TEST_F(InspectTest, AClassWhoseNameContainsACommaIsChosenWithWhere) {
  const std::string file = named_classes(folder_ / "a.beton", {"cats", "dogs, wolves"}, 4);
  EXPECT_EQ(inspect({file, "--classes", "dogs, wolves"}), 2);
  EXPECT_THAT(error, Names("--classes", "'dogs'", R"(--where 'label == "dogs, wolves"')"));
  ASSERT_EQ(inspect({file, "--where", R"(label == "dogs, wolves")", "--json"}), 0) << error;
  EXPECT_EQ(nlohmann::json::parse(output)["ids"], nlohmann::json::array({1, 3}));
}

TEST_F(InspectTest, ALongClassNameDoesNotMoveTheOtherBars) {
  const std::string name(250, 'x');
  ASSERT_EQ(inspect({named_classes(folder_ / "a.beton", {"ant", name, "honeybee"}, 5)}), 0)
      << error;
  std::map<std::string, std::string> lines;
  std::istringstream text(output);
  for (std::string line; std::getline(text, line);) lines[line.substr(0, line.find(' ', 2))] = line;
  const std::string bar(40, '#');
  EXPECT_EQ(lines["  0"], "  0 ant      " + bar + " 2");
  EXPECT_EQ(lines["  1"], "  1 " + name + " " + bar + " 2");
  EXPECT_EQ(lines["  2"], "  2 honeybee " + bar.substr(20) + " 1");
}

TEST_F(InspectTest, SamplesCanBeDrawnAtRandom) {
  const std::string file = golden("img_smart_w3");
  ASSERT_EQ(inspect({file, "--samples", "random:5", "--json"}), 0) << error;
  const auto drawn = nlohmann::json::parse(output)["ids"];
  EXPECT_EQ(drawn.size(), 5U);
  ASSERT_EQ(inspect({file, "--samples", "random:5:0", "--json"}), 0) << error;
  EXPECT_EQ(nlohmann::json::parse(output)["ids"], drawn);
  for (const char* wrong : {"random:0", "random:1000000", "random:x"}) {
    EXPECT_EQ(inspect({file, "--samples", wrong}), 2) << wrong;
    EXPECT_THAT(error, Names("--samples", wrong));
  }
}

TEST_F(InspectTest, SamplesCanBeListedInAFile) {
  const std::string file = golden("img_smart_w3");
  const std::string list = (folder_ / "ids.txt").string();
  std::ofstream(list) << "5\n0:2  # two\n";
  ASSERT_EQ(inspect({file, "--samples", "@" + list, "--json"}), 0) << error;
  EXPECT_EQ(nlohmann::json::parse(output)["ids"], nlohmann::json::array({0, 1, 5}));
  std::ofstream(list) << "5\n1000000\n";
  EXPECT_EQ(inspect({file, "--samples", "@" + list}), 2);
  EXPECT_THAT(error, Names("--samples", "ids.txt:2", 1000000));
}

TEST_F(InspectTest, ExtractsACompleteSampleIntoAFolder) {
  const std::string file = golden("allfields_w1");
  const auto out = folder_ / "sample";
  ASSERT_EQ(inspect({file, "--sample", "3", "--output", out.string()}), 0) << error;
  const data::BetonReader reader(file);
  std::size_t files = 0;
  for (std::size_t field = 0; field < reader.fields().size(); ++field) {
    const data::FieldInfo& info = reader.fields()[field];
    const auto blob =
        reader.blob_bytes(3, field) > 0 ? reader.blob(3, field) : std::span<const std::byte>();
    if (info.type == data::FieldType::bytes) {
      EXPECT_TRUE(std::ranges::equal(test::read_bytes(out / (info.name + ".bin")), blob));
    } else if (info.type == data::FieldType::json) {
      // The exported file lacks the zero byte that FFCV appends.
      EXPECT_TRUE(std::ranges::equal(test::read_bytes(out / (info.name + ".json")),
                                     blob.first(blob.size() - 1)));
    } else if (!info.dtype.empty()) {
      const auto npy = test::read_bytes(out / (info.name + ".npy"));
      EXPECT_TRUE(std::ranges::equal(std::span(npy).last(blob.size()), blob));
      const std::string head(reinterpret_cast<const char*>(npy.data()), npy.size() - blob.size());
      EXPECT_THAT(head, HasSubstr("'descr': '" + info.dtype + "'"));
    }
    if (info.type != data::FieldType::integer && info.type != data::FieldType::floating) ++files;
  }
  using Entries = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Entries(out), Entries()), files);
}

TEST_F(InspectTest, FieldsWhoseFilesWouldHaveOneNameAreAnError) {
  const std::string file = (folder_ / "names.beton").string();
  data::BetonWriter writer(file, {{"a/b", data::FieldType::bytes}, {"a_b", data::FieldType::bytes}},
                           1, {});
  std::vector<data::EncodedValue> values(2);
  data::BytesField().encode(data::Value(std::string("first")), 0, values[0]);
  data::BytesField().encode(data::Value(std::string("second")), 0, values[1]);
  writer.add(values);
  writer.finish();
  const auto out = folder_ / "sample";
  EXPECT_EQ(inspect({file, "--sample", "0", "--output", out.string()}), 2);
  EXPECT_THAT(error, Names("--output", "a_b.bin", "'a/b'", "'a_b'"));
  EXPECT_FALSE(std::filesystem::exists(out));
  const std::string one = (folder_ / "x.bin").string();
  ASSERT_EQ(inspect({file, "--sample", "0", "--field", "a/b", "--output", one}), 0) << error;
  EXPECT_EQ(std::filesystem::file_size(one), 5U);
}

TEST_F(InspectTest, OneFieldGoesToAFileWhoseEndingFits) {
  const std::string file = golden("allfields_w1");
  const data::BetonReader reader(file);
  const auto of_type = [&](data::FieldType type) {
    return reader.fields()[reader.first_field(type)].name;
  };
  const std::string png = (folder_ / "x.png").string();
  ASSERT_EQ(inspect({golden("img_raw_w1"), "--sample", "0", "--output", png}), 0) << error;
  data::Image image;
  data::decode_image_file(test::read_bytes(png), image);
  const data::BetonReader images(folder_ / "img_raw_w1.beton");
  const data::ImageRecord stored = images.image(0, 0);
  EXPECT_EQ(image.width, stored.width);
  EXPECT_EQ(image.height, stored.height);
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(image.pixels)), stored.bytes));
  const std::string any = (folder_ / "x.any").string();
  EXPECT_EQ(
      inspect({file, "--sample", "0", "--output", any, "--field", of_type(data::FieldType::json)}),
      0)
      << error;
  EXPECT_EQ(inspect({file, "--sample", "0", "--output", any, "--field",
                     of_type(data::FieldType::ndarray)}),
            2);
  EXPECT_THAT(error, Names("--output", ".npy", any));
  EXPECT_EQ(inspect({file, "--sample", "0", "--output", any, "--field",
                     of_type(data::FieldType::integer)}),
            2);
  EXPECT_THAT(error, Names("--output", of_type(data::FieldType::integer)));
}

TEST_F(InspectTest, FloatsThatAreNoNumbersAreCountedAndInfiniteOnesAreTexts) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::string file = floats("weight", {kNan, 1.5, -kInfinity, kNan, 4});
  ASSERT_EQ(inspect({file, "--json"}), 0) << error;
  const auto field = nlohmann::json::parse(output)["fields"][0];
  EXPECT_EQ(field["min"], "-inf");
  EXPECT_EQ(field["max"], 4.0);
  EXPECT_EQ(field["nan"], 2);
  ASSERT_EQ(inspect({file}), 0) << error;
  EXPECT_THAT(output, Names("weight", "-inf", "4.0", "2 nan"));
  ASSERT_EQ(inspect({file, "--json", "--sample", "0"}), 0) << error;
  EXPECT_EQ(nlohmann::json::parse(output)["weight"], "nan");
  ASSERT_EQ(inspect({floats("weight", {kNan})}), 0) << error;
  EXPECT_THAT(output, Names("weight", "1 nan"));
}

TEST_F(InspectTest, AFieldCalledSampleLeavesTheSamplesNumberInItsPlace) {
  ASSERT_EQ(inspect({floats("sample", {0.5, 2.5}), "--json", "--sample", "1"}), 0) << error;
  const auto report = nlohmann::json::parse(output);
  EXPECT_EQ(report["sample"], 1);
  EXPECT_EQ(report["field_named_sample"], 2.5);
}

TEST_F(InspectTest, AnOrdersBatchIsNoLargerThanTheFileUnlessThatIsAskedFor) {
  const std::string file = golden("img_raw_w1");
  ASSERT_EQ(inspect({file, "--order", "random", "--json"}), 0) << error;
  EXPECT_EQ(nlohmann::json::parse(output)["batch_size"], 24);
  EXPECT_EQ(inspect({file, "--order", "random", "--global-batch-size", "256"}), 2);
  EXPECT_THAT(error, Names("--global-batch-size", 1, 24, 256));
}

TEST_F(InspectTest, AnOrderMixesTheClassesOfTheLabelField) {
  // Samples sorted by class; `id` is the first field.
  const std::string file = (folder_ / "ids.beton").string();
  data::BetonLayout layout;
  layout.info = data::file_info_text(
      {.classes = {{"class", {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}}}, .written = {}});
  data::BetonWriter writer(
      file, {{"id", data::FieldType::integer}, {"class", data::FieldType::integer}}, 100, layout);
  for (std::int64_t i = 0; i < 100; ++i) {
    std::vector<data::EncodedValue> values(2);
    for (data::EncodedValue& value : values) value.metadata.resize(8);
    data::store(values[0].metadata.data(), i);
    data::store(values[1].metadata.data(), i / 10);
    writer.add(values);
  }
  writer.finish();
  const auto classes_per_batch = [&](const std::string& order,
                                     const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {file, "--json", "--order", order, "--global-batch-size",
                                          "10"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    EXPECT_EQ(inspect(arguments), 0) << error;
    return nlohmann::json::parse(output)["classes_per_batch"].get<double>();
  };
  EXPECT_EQ(classes_per_batch("sequential"), 1);
  EXPECT_EQ(classes_per_batch("sequential", {"--label-field", "class"}), 1);
  EXPECT_EQ(classes_per_batch("sequential", {"--label-field", "id"}), 10);
  // The order itself reads the field, too.
  EXPECT_EQ(classes_per_batch("class_balanced"), 10);
  EXPECT_EQ(inspect({file, "--order", "random", "--label-field", "none"}), 2);
  EXPECT_THAT(error, Names("label_field", "'none'", file));
}

TEST_F(InspectTest, OptionsWithoutTheirPartnerAreRefused) {
  const std::string file = golden("scalars_only");
  EXPECT_EQ(inspect({file, "--sample", "0", "--field", "image"}), 2);
  EXPECT_THAT(error, Names("--field", "--output"));
  EXPECT_EQ(inspect({file, "--label-values"}), 2);
  EXPECT_THAT(error, Names("--label-values", "--json"));
  EXPECT_EQ(inspect({file, "--label-values", "--json", "--sample", "0"}), 2);
  EXPECT_THAT(error, Names("--label-values", "--sample"));
  EXPECT_EQ(inspect({file, "--label-field", "label", "--sample", "0"}), 2);
  EXPECT_THAT(error, Names("--label-field", "--sample"));
  for (const char* option : {"--global-batch-size", "--seed", "--shuffle-window-mb"}) {
    EXPECT_EQ(inspect({file, option, "7"}), 2);
    EXPECT_THAT(error, Names(option, "--order"));
  }
  EXPECT_EQ(inspect({file, "--order", "sequential", "--shuffle-window-mb", "7"}), 2);
  EXPECT_THAT(error, Names("--shuffle-window-mb", "quasi_random", "sequential"));
  EXPECT_EQ(inspect({golden("img_raw_w1"), "--order", "quasi_random", "--shuffle-window-mb", "7",
                     "--seed", "7"}),
            0)
      << error;
}

}  // namespace
}  // namespace precast::tools
