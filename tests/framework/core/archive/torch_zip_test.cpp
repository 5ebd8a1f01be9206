#include "framework/core/archive/torch_zip.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "framework/core/archive/weights_file.h"
#include "framework/core/archive/zip_file.h"
#include "framework/core/error.h"
#include "tests/framework/core/archive/sample_tensors.h"
#include "tests/support/bytes.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

using namespace std::string_literals;
using test::dump;
using test::Names;

std::string parsed(std::span<const std::byte> file) {
  return dump(parse_torch_zip(file, "w.pt").records);
}

TEST(TorchZipGoldens, AreReadAsTorchWroteThem) {
  std::size_t read = 0;
  for (const std::string& name : test::golden_names()) {
    const std::string path = test::golden_dir() + "/torch/" + name;
    const nlohmann::json golden = nlohmann::json::parse(std::ifstream(path + ".json"));
    if (golden.contains("error")) {
      try {
        static_cast<void>(load_weights(path + ".pt"));
        ADD_FAILURE() << name << " was accepted";
      } catch (const CheckpointError& error) {
        EXPECT_THAT(error.what(), Names(golden["error"].get<std::string>(), path + ".pt"));
      }
    } else {
      EXPECT_EQ(dump(load_weights(path + ".pt").records()), test::golden_dump(name)) << name;
    }
    ++read;
  }
  EXPECT_EQ(read, 14U);
}

TEST(TorchZip, ViewsContiguousTensorsAndCopiesOthersOnce) {
  const auto file = test::golden_file("views");
  const TensorArchive archive = parse_torch_zip(file, "views.pt");
  EXPECT_EQ(archive.owned.size(), 3U);
  ASSERT_EQ(archive.records[1].name, "tail");
  EXPECT_EQ(archive.records[1].bytes.data(), archive.records[0].bytes.data() + 20 * sizeof(float));
}

TEST(TorchZip, GivesBackWhatWasWritten) {
  const test::TemporaryFolder folder;
  write_torch_zip(folder / "w.pt", test::sample_tensors());
  const auto file = read_file(folder / "w.pt");
  const TensorArchive archive = parse_torch_zip(file, "w.pt");
  EXPECT_EQ(dump(archive.records), dump(test::sample_tensors()));
  EXPECT_TRUE(archive.owned.empty());
  write_torch_zip(folder / "again.pt", test::sample_tensors());
  EXPECT_EQ(read_file(folder / "again.pt"), file);
}

TEST(TorchZip, RefusesToWriteANameTwice) {
  const test::TemporaryFolder folder;
  auto records = test::sample_tensors();
  records.push_back(records[0]);
  EXPECT_THROW(write_torch_zip(folder / "w.pt", records), CheckpointError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(TorchZip, RefusesEveryTruncation) {
  const test::TemporaryFolder folder;
  write_torch_zip(folder / "w.pt", test::sample_tensors());
  test::expect_refused_at_every_cut(read_file(folder / "w.pt"), parsed);
  test::expect_refused_at_every_cut(test::golden_file("checkpoint"), parsed);
}

TEST(TorchZip, NoticesEveryChangedByte) {
  const test::TemporaryFolder folder;
  write_torch_zip(folder / "w.pt", test::sample_tensors());
  test::expect_refused_or_intact(read_file(folder / "w.pt"), dump(test::sample_tensors()), parsed);
  for (const char* name : {"channels_last", "dtypes", "parameters"}) {
    const auto file = test::golden_file(name);
    test::expect_refused_or_intact(file, parsed(file), parsed);
  }
}

TEST(TorchZip, SurvivesEveryChangedByteWithoutCrc) {
  test::expect_refused_or_intact(test::golden_file("without_crc"), "", parsed);
}

/// Reads a torch file with one tensor, which is described by pickle fragments.
class HostileTensor : public ::testing::Test {
 protected:
  std::string problem(const std::string& elements, const std::string& offset,
                      const std::string& shape, const std::string& strides,
                      const std::string& key = "0") {
    const std::string tensor =
        "ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU"s +
        static_cast<char>(key.size()) + key + "U\x03" + "cpu" + elements + "tQ" + offset + "(" +
        shape + "t(" + strides + "t\x89" + "ccollections\nOrderedDict\n)RtR";
    return problem_of("\x80\x02}U\x01w" + tensor + "s.");
  }

  std::string problem_of(const std::string& pickle) {
    {
      ZipWriter zip(folder_ / "h.pt");
      zip.add("archive/data.pkl", bytes_of(pickle));
      zip.add("archive/data/0", bytes_of(std::string(16, 'x')));
      zip.finish();
    }
    try {
      static_cast<void>(load_weights(folder_ / "h.pt"));
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "accepted";
  }

  test::TemporaryFolder folder_;
};

TEST_F(HostileTensor, IsRefusedWhereItLeavesItsStorage) {
  const std::string big = "\x8A\x08\0\0\0\0\0\0\0\x40"s;  // 2^62
  EXPECT_EQ(problem("K\4", "K\0"s, "K\2K\2", "K\2K\1"), "accepted");
  EXPECT_EQ(problem("K\4", "K\0"s, "K\0"s + big, "K\1K\1"), "accepted");
  EXPECT_THAT(problem("K\4", "K\1", "K\2K\2", "K\2K\1"), Names("'w'", "[2, 2]", "[2, 1]", 1, 4));
  EXPECT_THAT(problem("K\4", "K\0"s, "K\5", "K\1"), Names("'w'", "[5]", "[1]", 0, 4));
  EXPECT_THAT(problem("K\4", "K\0"s, "K\2", "K\4"), Names("'w'", "[2]", "[4]", 0, 4));
  EXPECT_THAT(problem("K\4", "K\0"s, "K\2", ""), Names("'w'", "[2]", "[]", 0, 4));
  EXPECT_THAT(problem("K\4", "J\xFF\xFF\xFF\xFF", "K\1", "K\1"), Names("'w'", "[1]", "[1]", -1, 4));
  EXPECT_THAT(problem("K\4", "K\3", "K\2", "J\xFF\xFF\xFF\xFF"), Names("'w'", "[2]", "[-1]", 3, 4));
  EXPECT_THAT(problem("K\4", "K\0"s, "J\xFF\xFF\xFF\xFF", "K\1"),
              Names("'w'", "[-1]", "[1]", 0, 4));
  EXPECT_THAT(problem("K\4", "K\0"s, big + big, "K\0K\0"s),
              Names("'w'", "[4611686018427387904, 4611686018427387904]", "[0, 0]", 0, 4));
  EXPECT_THAT(problem("K\4", "K\0"s, "K\3", big),
              Names("'w'", "[3]", "[4611686018427387904]", 0, 4));
  EXPECT_THAT(problem("K\4", big, "K\1", "K\1"),
              Names("'w'", "[1]", "[1]", 4611686018427387904, 4));
  EXPECT_THAT(problem("K\5", "K\0"s, "K\1", "K\1"), Names("'w'", 5, "float32", 16));
  EXPECT_THAT(problem(big, "K\0"s, "K\1", "K\1"), Names("'w'", 4611686018427387904, "float32", 16));
  EXPECT_THAT(problem("K\4", "K\0"s, "K\1", "K\1", "9"), Names("'archive/data/9'"));
  EXPECT_THAT(problem("K\4", "K\0"s, "K\1", "K\1", "../0"), Names("'archive/data/../0'"));
}

TEST_F(HostileTensor, IsRefusedWhereItExpandsBeyondTheFile) {
  EXPECT_THAT(problem("K\4", "K\0"s, "J\0\0\0\x10"s, "K\0"s), Names("'w'", 1073741824));
}

TEST_F(HostileTensor, IsRefusedWhereACallHidesInTheCheckpoint) {
  EXPECT_THAT(problem_of("\x80\x02"
                         "cposix\nsystem\nX\x04\0\0\0true\x85R."s),
              Names("'posix.system'"));
}

TEST(TorchZip, NamesTheAveragesThatATrainingCheckpointAlsoContains) {
  const test::TemporaryFolder folder;
  const auto read = [&](const std::vector<std::string>& keys) {
    test::write_training_checkpoint(folder / "w.pt", keys);
    const WeightsFile file = load_weights(folder / "w.pt");
    EXPECT_EQ(file.records().size(), 1U);
    EXPECT_EQ(file.records().at(0).name, "w");
    return std::tuple(file.weights_key(), file.averages_key(),
                      static_cast<char>(file.records().at(0).bytes[0]));
  };
  EXPECT_EQ(read({"state_dict", "state_dict_ema"}),
            std::tuple("state_dict", "state_dict_ema", 'a'));
  EXPECT_EQ(read({"model_ema", "model"}), std::tuple("model", "model_ema", 'b'));
  EXPECT_EQ(read({"state_dict"}), std::tuple("", "", 'a'));
}

TEST(TorchZip, RefusesOtherZipFiles) {
  const test::TemporaryFolder folder;
  {
    ZipWriter zip(folder / "w.pt");
    zip.add("word/document.xml", bytes_of("<x/>"));
    zip.finish();
  }
  try {
    static_cast<void>(load_weights(folder / "w.pt"));
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), Names(folder / "w.pt", "data.pkl"));
  }
}

}  // namespace
}  // namespace precast
