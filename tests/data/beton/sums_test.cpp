#include "data/beton/sums.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::ThrowsMessage;

/// The bytes of a file with checksums: 20 small raw images with labels and weights.
class FileWithSums : public testing::Test {
 protected:
  FileWithSums() {
    test::write_made_beton(path_, {.samples = 20});
    bytes_ = test::read_bytes(path_);
  }
  /// Whether a reader accepts `bytes_`, and the images of all samples match their checksums.
  [[nodiscard]] bool passes() const {
    try {
      const BetonReader reader(bytes_, "made.beton");
      for (std::uint64_t i = 0; i < reader.size(); ++i) reader.check_value(i, 0, reader.blob(i, 0));
    } catch (const DataError&) {
      return false;
    }
    return true;
  }
  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "made.beton";
  std::vector<std::byte> bytes_;
};

TEST_F(FileWithSums, AreThereHoweverTheFileIsOpened) {
  for (const BlobAccess access : {BlobAccess::mapped, BlobAccess::on_disk}) {
    const BetonReader reader(path_, access);
    ASSERT_FALSE(reader.sums().empty());
    EXPECT_EQ(reader.sums().trailer().samples, 20U);
    EXPECT_EQ(reader.sums().trailer().value_fields, 1U);
  }
  const BetonReader reader(path_);
  EXPECT_EQ(reader.sums().value(7, 0), hash_of(reader.blob(7, 0)));
  EXPECT_NE(reader.sums().value(7, 0), reader.sums().value(8, 0));
}

TEST_F(FileWithSums, AnyFlippedBitOfWhatIsReadIsNoticed) {
  const BetonReader reader(path_);
  const std::uint64_t records_end = kHeaderBytes + 3 * kFieldBytes + 20 * 32;
  const std::uint64_t table = reader.header().table_offset;
  const std::uint64_t values = reader.blob_offset(0, 0);
  const std::uint64_t values_end = reader.blob_offset(19, 0) + reader.blob_bytes(19, 0);
  const std::uint64_t sums = table - sums_bytes(20, 1, 0);
  ASSERT_TRUE(passes());
  const auto flip_all = [&](std::uint64_t begin, std::uint64_t end, std::uint64_t step) {
    for (std::uint64_t at = begin; at < end; at += step) {
      const auto bit = static_cast<std::byte>(1U << at % 8);
      bytes_[at] ^= bit;
      EXPECT_FALSE(passes()) << "at " << at;
      bytes_[at] ^= bit;
    }
  };
  flip_all(0, records_end, 1);
  flip_all(values, values_end, 97);
  flip_all(sums, bytes_.size(), 1);
}

TEST_F(FileWithSums, AnyCutIsNoticed) {
  const std::vector<std::byte> whole = bytes_;
  for (std::size_t size = whole.size() - 1; size > whole.size() - 2000; --size) {
    bytes_.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(passes()) << size;
  }
}

std::string hex(std::uint64_t checksum) {
  return fmt::format("{:016x}", checksum);
}

TEST_F(FileWithSums, AChangedValueIsNamed) {
  const BetonReader whole(path_);
  bytes_[whole.blob_offset(5, 0) + 100] ^= std::byte{4};
  const BetonReader reader(bytes_, "made.beton");
  EXPECT_NO_THROW(reader.check_value(4, 0, reader.blob(4, 0)));
  EXPECT_THAT([&] { reader.check_value(5, 0, reader.blob(5, 0)); },
              ThrowsMessage<DataError>(Names("made.beton", "sample 5", "'image'",
                                             hex(reader.sums().value(5, 0)),
                                             hex(hash_of(reader.blob(5, 0))))));
}

/// A golden file that FFCV wrote, with its checksums in a sidecar.
class FileWithSidecar : public testing::Test {
 protected:
  FileWithSidecar() {
    test::write_bytes(path_, test::golden_beton("allfields_w3_empty"));
    write_sums_sidecar(BetonReader(path_));
  }
  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "golden.beton";
};

TEST_F(FileWithSidecar, CoversEachValueOfEachField) {
  for (const BlobAccess access : {BlobAccess::mapped, BlobAccess::on_disk}) {
    const BetonReader reader(path_, access);
    EXPECT_EQ(reader.sums().trailer().samples, 30U);
    EXPECT_EQ(reader.sums().trailer().value_fields, 6U);
  }
  const BetonReader reader(path_);
  for (std::size_t i = 0; i < reader.fields().size(); ++i) {
    const FieldType type = reader.fields()[i].type;
    if (type == FieldType::integer || type == FieldType::floating) continue;
    EXPECT_NO_THROW(reader.check_value(0, i, reader.blob(0, i)));
    EXPECT_THROW(reader.check_value(0, i, std::as_bytes(std::span("another"))), DataError);
  }
}

TEST_F(FileWithSidecar, AnotherFileOfThatNameIsRefusedWithAHint) {
  std::vector<std::byte> bytes = test::golden_beton("allfields_w3_empty");
  bytes[kHeaderBytes + 1] ^= std::byte{1};
  test::write_bytes(path_, bytes);
  EXPECT_THAT([&] { const BetonReader reader(path_); },
              ThrowsMessage<DataError>(Names(path_, "header", sums_sidecar(path_))));
  test::write_bytes(path_, test::golden_beton("img_raw_w1"));
  EXPECT_THAT([&] { const BetonReader reader(path_); },
              ThrowsMessage<DataError>(Names(path_, 24, 1, sums_sidecar(path_))));
}

TEST_F(FileWithSidecar, IsKnownFromOneWithChecksumsInsideAndLosesItsSidecarWhenWrittenAgain) {
  EXPECT_FALSE(BetonReader(path_).has_embedded_sums());
  for (const bool checksums : {false, true}) {
    write_sums_sidecar(BetonReader(path_));
    test::write_made_beton(path_, {.samples = 20, .checksums = checksums});
    EXPECT_FALSE(std::filesystem::exists(sums_sidecar(path_)));
    EXPECT_EQ(BetonReader(path_).has_embedded_sums(), checksums);
  }
}

TEST_F(FileWithSidecar, AnEmptySidecarIsAnError) {
  test::write_bytes(sums_sidecar(path_), {});
  EXPECT_THAT([&] { const BetonReader reader(path_); },
              ThrowsMessage<DataError>(Names(sums_sidecar(path_))));
}

TEST_F(FileWithSidecar, ADamagedSidecarIsRefused) {
  const std::filesystem::path sidecar = sums_sidecar(path_);
  const std::vector<std::byte> whole = test::read_bytes(sidecar);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::vector<std::byte> bytes = whole;
    bytes[at] ^= std::byte{0x10};
    test::write_bytes(sidecar, bytes);
    EXPECT_THROW(const BetonReader reader(path_), DataError) << at;
  }
  test::write_bytes(sidecar, std::span(whole).first(kSumsTrailerBytes - 1));
  EXPECT_THROW(const BetonReader reader(path_), DataError);
}

TEST(FileInfo, ComesBackAndWhatIsNoneIsEmpty) {
  const FileInfo info{.classes = {{"label", {"cat", "d\"og", "\xEF\xBF\xBD"}}},
                      .written = {{"precast", "1"}, {"seed", "\xff"}}};
  const FileInfo back = parse_file_info(file_info_text(info));
  EXPECT_EQ(back.classes, info.classes);
  EXPECT_THAT(back.written,
              ElementsAre(testing::Pair("precast", "1"), testing::Pair("seed", "\xEF\xBF\xBD")));
  for (const char* text : {"", "[", "[]", "{}", R"({"classes": 3})", R"({"classes": {"a": 3}})",
                           R"({"classes": {"a": [1]}, "written": {"b": 2}})"}) {
    EXPECT_THAT(parse_file_info(text).written, testing::IsEmpty()) << text;
    EXPECT_THAT(parse_file_info(text).classes["a"], testing::IsEmpty()) << text;
  }
}

TEST(FileInfo, AClassNameThatIsNotUtf8IsAnError) {
  const auto write = [](const std::string& name) {
    (void)file_info_text({.classes = {{"color", {"red", name}}}, .written = {}});
  };
  // The message shows the bytes as escapes; replacement characters would hide their values.
  for (const auto& [name, shown] : {std::pair("\xb9\xb7", R"($'\xb9\xb7')"),
                                    {"\xc3\xa8\xff", R"($'\xc3\xa8\xff')"},
                                    {"d\\'\xb9", R"($'d\\\'\xb9')"}}) {
    EXPECT_THAT([&] { write(name); }, ThrowsMessage<DataError>(Names("label 1", "'color'", shown)));
  }
}

TEST(FileInfo, HundredsOfThousandsOfNamesComeBack) {
  FileInfo info;
  for (int i = 0; i < 420'000; ++i) info.classes["label"].push_back(fmt::format("{:010}", i));
  EXPECT_TRUE(parse_file_info(file_info_text(info)).classes == info.classes);
}

TEST(FileInfo, ATextThatReadersWouldIgnoreIsAnError) {
  const FileInfo info{.classes = {{"label", {"cat", "dog"}}}, .written = {}};
  const std::size_t bytes = file_info_text(info).size();
  EXPECT_EQ(file_info_text(info, bytes).size(), bytes);
  EXPECT_THAT([&] { (void)file_info_text(info, bytes - 1); },
              ThrowsMessage<ConfigError>(Names(bytes - 1, bytes)));
}

TEST(FileInfo, OfDeepTextsIsEmptyAndTakesNoStack) {
  constexpr std::size_t kDeep = 2'000'000;
  std::string text = R"({"classes": )";
  for (std::size_t i = 0; i < kDeep; ++i) text += R"({"a":)";
  text += '1' + std::string(kDeep, '}') + '}';
  EXPECT_THAT(parse_file_info(text).classes, testing::IsEmpty());
}

TEST(SumsSidecar, AnotherFileOfThatNameIsLeftAlone) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "x.beton";
  const std::string text = "d41d8cd98f00b204e9800998ecf8427e  x.beton\n";
  test::write_bytes(sums_sidecar(path), std::as_bytes(std::span(text)));
  EXPECT_THAT([&] { test::write_made_beton(path, {}); },
              ThrowsMessage<ConfigError>(Names(sums_sidecar(path))));
  EXPECT_FALSE(std::filesystem::exists(path));
  remove_sums_sidecar(path);
  EXPECT_TRUE(std::filesystem::exists(sums_sidecar(path)));
}

}  // namespace
}  // namespace precast::data
