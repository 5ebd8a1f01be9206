#include "data/beton/reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::golden_beton;
using test::golden_beton_facts;
using test::Names;
using testing::AllOf;

/// The error message from opening `path`; "" if there is no error.
std::string error_of(const std::filesystem::path& path) {
  try {
    const BetonReader reader(path);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

class GoldenTest : public testing::TestWithParam<std::string> {
 protected:
  GoldenTest() {
    test::write_bytes(path_, golden_beton(GetParam()));
    facts_ = golden_beton_facts(GetParam());
  }
  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "golden.beton";
  nlohmann::json facts_;
};

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest,
                         testing::Values("img_raw_w1", "img_jpg_w3", "img_smart_w3",
                                         "img_prop_nette_w1", "scalars_only", "wds_w2",
                                         "allfields_w1", "allfields_w3_empty", "bytes_first_empty",
                                         "overflow_w1"),
                         [](const auto& golden) { return golden.param; });

TEST_P(GoldenTest, HeaderAndFieldsAreThoseThatFfcvReads) {
  const BetonReader reader(path_);
  EXPECT_EQ(reader.header().page_bytes, facts_["page_size"]);
  EXPECT_EQ(reader.header().table_offset, facts_["table_offset"]);
  EXPECT_EQ(reader.bytes().size(), facts_["bytes"]);
  ASSERT_EQ(reader.size(), facts_["rows"].size());
  ASSERT_EQ(reader.fields().size(), facts_["fields"].size());
  for (std::size_t i = 0; i < reader.fields().size(); ++i) {
    const FieldInfo& field = reader.fields()[i];
    const auto& fact = facts_["fields"][i];
    EXPECT_EQ(field.name, fact[0].get<std::string>());
    EXPECT_EQ(static_cast<int>(field.type), fact[1]);
    EXPECT_EQ(field.offset, fact[2]);
    EXPECT_EQ(field.dtype, fact[3].get<std::string>());
    EXPECT_EQ(field.shape, fact[4].get<std::vector<std::uint64_t>>());
    EXPECT_EQ(reader.field(field.name), i);
  }
}

TEST_P(GoldenTest, EverySampleIsTheOneThatFfcvReads) {
  const BetonReader reader(path_);
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    for (std::size_t i = 0; i < reader.fields().size(); ++i) {
      const auto& fact = facts_["rows"][sample][i];
      const FieldType type = reader.fields()[i].type;
      if (type == FieldType::integer) {
        EXPECT_EQ(reader.integer(sample, i), fact.get<std::int64_t>());
        continue;
      }
      if (type == FieldType::floating) {
        EXPECT_EQ(reader.floating(sample, i), fact.get<double>());
        continue;
      }
      const auto blob = reader.blob(sample, i);
      const auto extent = std::vector<std::uint64_t>(fact.end() - 3, fact.end());
      if (extent[1] > 0) {
        EXPECT_EQ(reader.blob_offset(sample, i), extent[0]);
      }
      EXPECT_EQ(blob.size(), extent[1]);
      EXPECT_EQ(test::crc32_of(blob), extent[2]);
      if (type != FieldType::image) continue;
      const ImageRecord image = reader.image(sample, i);
      EXPECT_EQ(static_cast<int>(image.mode), fact[0]);
      EXPECT_EQ(image.width, fact[1]);
      EXPECT_EQ(image.height, fact[2]);
      EXPECT_EQ(image.bytes.data(), blob.data());
    }
  }
}

TEST(BetonReader, RefusesOtherFieldTypesAndSamplesOutOfRange) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "a.beton", golden_beton("img_raw_w1"));
  const BetonReader reader(folder / "a.beton");
  EXPECT_THROW((void)reader.integer(0, 0), std::logic_error);
  EXPECT_THROW((void)reader.floating(0, 1), std::logic_error);
  EXPECT_THROW((void)reader.image(0, 1), std::logic_error);
  EXPECT_THROW((void)reader.blob(0, 1), std::logic_error);
  EXPECT_THROW((void)reader.image(24, 0), std::logic_error);
  EXPECT_THROW((void)reader.image(0, 2), std::logic_error);
  EXPECT_THAT([&] { (void)reader.field("labels"); },
              testing::ThrowsMessage<DataError>(Names(folder / "a.beton", "'labels'", "'label'")));
}

TEST(BetonReader, SaysThatAMissingFileIsMissing) {
  EXPECT_THAT([] { BetonReader reader("/nonexistent/a.beton"); },
              testing::ThrowsMessage<IoError>(Names("/nonexistent/a.beton")));
}

/// A copy of a golden file, which a test changes in place.
class DamagedFile {
 public:
  explicit DamagedFile(const std::string& name) : bytes_(golden_beton(name)) {
    test::write_bytes(path(), bytes_);
    file_.open(path(), std::ios::in | std::ios::out | std::ios::binary);
  }
  [[nodiscard]] std::filesystem::path path() const { return folder_ / "damaged.beton"; }
  [[nodiscard]] std::span<const std::byte> original() const { return bytes_; }

  void put(std::uint64_t at, std::span<const std::byte> bytes) {
    file_.seekp(static_cast<std::streamoff>(at));
    file_.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    file_.flush();
  }
  template <typename T>
  void put_number(std::uint64_t at, T number) {
    put(at, std::as_bytes(std::span(&number, 1)));
  }
  void restore(std::uint64_t at, std::size_t size) { put(at, original().subspan(at, size)); }
  void cut(std::uint64_t size) { std::filesystem::resize_file(path(), size); }

 private:
  test::TemporaryFolder folder_;
  std::vector<std::byte> bytes_;
  std::fstream file_;
};

// Positions in img_raw_w1: 2 fields (the first is the image), 24 records of 24 bytes.
constexpr std::uint64_t kRecords = kHeaderBytes + 2 * kFieldBytes;
constexpr std::uint64_t kTable = 4194304;

TEST(BetonReader, SaysThatTheWriterWasKilled) {
  DamagedFile file("img_raw_w1");
  file.put_number<std::uint64_t>(16, 0);
  EXPECT_THAT(error_of(file.path()), Names(file.path(), "header", "allocation table", 0));
}

TEST(BetonReader, RefusesTheFileOfAWriterKilledAtOnce) {
  DamagedFile file("img_raw_w1");
  file.put_number<std::uint64_t>(16, 0);
  file.cut(kRecords);
  EXPECT_THAT(error_of(file.path()), Names(file.path(), "header", "allocation table", 0));
}

TEST(BetonReader, NamesPlaceExpectedAndFound) {
  struct Case {
    std::uint64_t at;
    std::uint64_t value;
    int bytes;
    std::vector<std::string> facts;
  };
  const Case cases[] = {
      {0, 3, 2, {"header", "2", "3"}},
      {0, 0xe0ffd8ff, 4, {"02 00", "ff d8 ff e0"}},
      {2, 0, 2, {"header", "4096", "0"}},
      {2, 5000, 2, {"header", "4096", "5000"}},
      {2, 4000, 2, {"field 3"}},
      {4, 0, 4, {"header", "page size", "0"}},
      {4, 3 << 20, 4, {"header", "page size", "3145728"}},
      {4, 1 << 20, 4, {"header", "page size", "1048576"}},
      {8, 0, 8, {"header", "1 sample", "0"}},
      {8, UINT64_MAX, 8, {"metadata", "18446744073709551615"}},
      {8, UINT64_MAX / 24 + 2, 8, {"metadata", "768614336404564652"}},
      {8, 23, 8, {"allocation table entry 23", "23"}},
      {16, kRecords, 8, {"header", "allocation table", std::to_string(kRecords)}},
      {16, UINT64_MAX, 8, {"header", "allocation table", "18446744073709551615"}},
      {16, kTable + 1, 8, {"24", "575"}},
      {24, 7, 1, {"field 0", "255", "7"}},
      {24, 255, 1, {"field 0", "255"}},
      {25, 0, 1, {"field 0", "16"}},
      {25, 0x80, 1, {"field 0", "16"}},
      {kRecords, 2, 1, {"sample 0", "'image'", "mode", "jpg", "raw", "2"}},
      {kRecords + 1, 0, 2, {"sample 0", "'image'", "mode"}},
      {kRecords + 1, 41, 2, {"sample 0", "'image'", "3690", "3600"}},
      {kRecords + 5, 2097153, 8, {"sample 0", "'image'", "2097153"}},
      {kRecords + 5, 2100752, 8, {"sample 0", "'image'", "2100752", "sample 1"}},
      {kTable, 24, 8, {"allocation table entry 0", "24"}},
      {kTable + 8, 100, 8, {"allocation table entry 0", "3600", "100"}},
      {kTable + 8,
       UINT64_MAX - 10,
       8,
       {"allocation table entry 0", "3600", "18446744073709551605"}},
      {kTable + 16, UINT64_MAX, 8, {"allocation table entry 0", "18446744073709551615"}},
      {kTable + 8, 2097152 - 8, 8, {"allocation table entry 0", "3600", "2097144"}},
      {kTable + 16, 3601, 8, {"allocation table", "2097152", "3601"}},
      {kTable + 16, 3599, 8, {"sample 0", "'image'", "3600", "3599"}},
      {kTable + 16, 0, 8, {"sample 0", "'image'", "2097152"}},
  };
  DamagedFile file("img_raw_w1");
  for (const Case& one : cases) {
    const auto bytes =
        std::as_bytes(std::span(&one.value, 1)).first(static_cast<std::size_t>(one.bytes));
    file.put(one.at, bytes);
    EXPECT_THAT(error_of(file.path()), AllOf(Names(file.path()), test::NamesMatcher(one.facts)))
        << "at " << one.at << " value " << one.value;
    file.restore(one.at, static_cast<std::size_t>(one.bytes));
  }
  EXPECT_EQ(error_of(file.path()), "");
}

TEST(BetonReader, NamesTheFirstBytesOfAFileOfAnotherFormat) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "photo.jpg";
  for (const std::size_t size : {2U, 10U, 100U}) {
    std::vector<std::byte> bytes(size);
    bytes[0] = std::byte{0xff};
    bytes[1] = std::byte{0xd8};
    test::write_bytes(path, bytes);
    EXPECT_THAT(error_of(path), Names(path, ".beton", "02 00", "ff d8"));
  }
  test::write_bytes(path, std::vector<std::byte>{std::byte{kBetonVersion}, std::byte{0}});
  EXPECT_THAT(error_of(path), Names(path, "header", kHeaderBytes, 2));
}

TEST(BetonReader, RefusesTwoFieldsOfOneName) {
  DamagedFile file("img_raw_w1");
  file.put(kHeaderBytes + kFieldBytes + 1, file.original().subspan(kHeaderBytes + 1, 16));
  EXPECT_THAT(error_of(file.path()), Names(file.path(), "field 1", "'image'"));
}

TEST(BetonReader, RefusesShapesAndTypesThatMakeNoSense) {
  // Field 3 of allfields_w1 is an ndarray with dtype <f4 and shape [3, 5].
  const std::uint64_t arguments = kHeaderBytes + 3 * kFieldBytes + 1 + kFieldNameBytes;
  DamagedFile file("allfields_w1");
  const auto expect = [&](std::uint64_t at, std::span<const std::byte> bytes,
                          const std::vector<std::string>& facts) {
    file.put(arguments + at, bytes);
    EXPECT_THAT(error_of(file.path()), test::NamesMatcher(facts));
    file.restore(arguments + at, bytes.size());
  };
  const auto number = [](const std::uint64_t& value) {
    return std::as_bytes(std::span(&value, 1));
  };
  const auto text = [](const std::string& value) { return std::as_bytes(std::span(value)); };
  expect(0, number(std::uint64_t{1} << 62), {"field 3", "4611686018427387904"});
  expect(0, number(std::uint64_t{1} << 40), {"field 3", "1099511627776"});
  expect(0, number(4), {"sample 0", "80", "60"});
  expect(0, std::vector<std::byte>(256), {"field 3", "shape"});
  expect(kDtypeLengthAt, number(0), {"field 3", "dtype", "760", "0"});
  expect(kDtypeLengthAt, number(761), {"field 3", "dtype", "760", "761"});
  expect(kDtypeTextAt, text("[[\"\", 12345]]"), {"field 3", "numpy", "dtype"});
  expect(kDtypeTextAt, text("[[\"\", \"<x4\"]]"), {"field 3", "numpy", "dtype"});
  expect(kDtypeTextAt, text("[[\"\", \"<f0\"]]"), {"field 3", "numpy", "dtype"});
  expect(kDtypeTextAt, text("[[[[[[[[[[[[["), {"field 3", "numpy", "dtype"});
  EXPECT_EQ(error_of(file.path()), "");
}

/// Reads all values of an open file; a wrong pointer would crash the test program.
void read_everything(const BetonReader& reader) {
  const std::span<const std::byte> file = reader.bytes();
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    for (std::size_t i = 0; i < reader.fields().size(); ++i) {
      const FieldType type = reader.fields()[i].type;
      if (type == FieldType::integer || type == FieldType::floating) continue;
      const auto blob = reader.blob(sample, i);
      if (!blob.empty()) {
        ASSERT_GE(blob.data(), file.data());
        ASSERT_LE(blob.data() + blob.size(), file.data() + reader.header().table_offset);
      }
      if (type != FieldType::image) continue;
      const ImageRecord image = reader.image(sample, i);
      ASSERT_GT(blob.size(), 0U);
      if (image.mode == ImageMode::raw) {
        ASSERT_EQ(blob.size(), static_cast<std::size_t>(image.width * image.height) * 3);
      }
    }
  }
}

class DamageTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Files, DamageTest,
                         testing::Values("img_raw_w1", "img_smart_w3", "scalars_only", "wds_w2",
                                         "allfields_w3_empty"),
                         [](const auto& golden) { return golden.param; });

TEST_P(DamageTest, AnyChangedByteIsRefusedOrHarmless) {
  DamagedFile file(GetParam());
  const auto facts = golden_beton_facts(GetParam());
  const std::uint64_t end = kHeaderBytes + facts["fields"].size() * kFieldBytes +
                            facts["rows"].size() * facts["record_bytes"].get<std::uint64_t>();
  const std::uint64_t table = facts["table_offset"];
  int refused = 0;
  for (std::uint64_t at = 0; at < file.original().size(); at = at + 1 == end ? table : at + 1) {
    const auto original = std::to_integer<unsigned>(file.original()[at]);
    for (const unsigned value : {0x00U, 0x01U, 0x7FU, 0x80U, 0xFFU, original ^ 0xFFU}) {
      if (value == original) continue;
      file.put_number(at, static_cast<std::uint8_t>(value));
      try {
        read_everything(BetonReader(file.path()));
      } catch (const DataError&) {
        ++refused;
      }
    }
    file.restore(at, 1);
  }
  EXPECT_GT(refused, 100);
}

TEST_P(DamageTest, AnyCutIsRefused) {
  DamagedFile file(GetParam());
  const auto facts = golden_beton_facts(GetParam());
  const std::uint64_t table = facts["table_offset"];
  const std::uint64_t end = kHeaderBytes + facts["fields"].size() * kFieldBytes +
                            facts["rows"].size() * facts["record_bytes"].get<std::uint64_t>();
  // Shortens the file: byte by byte in the allocation table, in steps of 4,099 bytes in the pages,
  // and byte by byte again in records, field descriptors and header.
  std::uint64_t size = file.original().size() - 1;
  while (size > 0) {
    file.cut(size);
    ASSERT_NE(error_of(file.path()), "") << size;
    size -= size > end && size < table ? std::min<std::uint64_t>(4099, size - end) : 1;
  }
}

TEST(BetonReader, OpensALargeFileInSecondsWhateverTheOrderOfItsTable) {
  // 1 million samples, each with a number and a 30-byte image. The allocation table is in reverse
  // order.
  constexpr std::uint64_t kSamples = 1'000'000;
  constexpr std::uint64_t kBlob = 30;
  constexpr std::uint64_t kPerPage = kMinPageBytes / kBlob;
  const std::uint64_t first = round_up(kRecords + kSamples * 24, kMinPageBytes);
  const std::uint64_t table = first + (kSamples / kPerPage + 1) * kMinPageBytes;
  std::vector<std::byte> head(golden_beton("img_raw_w1"));
  head.resize(kRecords + kSamples * 24);
  std::vector<std::byte> entries(kSamples * kAllocationBytes);
  store(head.data() + 8, kSamples);
  store(head.data() + 16, table);
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const std::uint64_t pointer = first + i / kPerPage * kMinPageBytes + i % kPerPage * kBlob;
    std::byte* record = head.data() + kRecords + i * 24;
    store(record, std::uint8_t{0});
    store(record + kImageWidthAt, std::uint16_t{5});
    store(record + kImageHeightAt, std::uint16_t{2});
    store(record + kImagePointerAt, pointer);
    store(record + 16, static_cast<std::int64_t>(i));
    std::byte* entry = entries.data() + (kSamples - 1 - i) * kAllocationBytes;
    store(entry, i);
    store(entry + 8, pointer);
    store(entry + 16, kBlob);
  }
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "large.beton", head);
  std::filesystem::resize_file(folder / "large.beton", table);
  std::ofstream(folder / "large.beton", std::ios::binary | std::ios::app)
      .write(reinterpret_cast<const char*>(entries.data()),
             static_cast<std::streamsize>(entries.size()));

  const auto start = std::chrono::steady_clock::now();
  const BetonReader reader(folder / "large.beton");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(reader.integer(kSamples - 1, 1), static_cast<std::int64_t>(kSamples - 1));
  EXPECT_EQ(reader.image(123'456, 0).bytes.size(), kBlob);
  // This takes about 0.1 s; a reader with quadratic cost, or with one object per sample, would take
  // much longer.
  EXPECT_LT(taken.count(), 30.0);
}

}  // namespace
}  // namespace precast::data
