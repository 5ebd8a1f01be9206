#include "framework/core/archive/zip_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "framework/core/error.h"
#include "tests/support/bytes.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

using test::Names;
using ::testing::ElementsAre;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Crc32, GivesThePublishedCheckValue) {
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xCBF43926U);
  EXPECT_EQ(crc32({}), 0U);
  const std::string_view text = "The quick brown fox jumps over the lazy dog";
  EXPECT_EQ(crc32(bytes_of(text)), 0x414FA339U);
  EXPECT_EQ(crc32(bytes_of(text.substr(5)), crc32(bytes_of(text.substr(0, 5)))), 0x414FA339U);
}

/// Parameter: zip32_limit of ZipWriter. With 0, all sizes and offsets are stored in zip64 fields.
class ZipFile : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  std::vector<std::byte> written() {
    ZipWriter zip(folder_ / "a.zip", posix_file_ops(), GetParam());
    zip.add("a/first", bytes_of("hello"));
    zip.add("a/empty", {});
    zip.add("a/second", bytes_of(std::string(1000, 'x')));
    zip.finish();
    return read_file(folder_ / "a.zip");
  }
  test::TemporaryFolder folder_;
};

TEST_P(ZipFile, GivesBackWhatWasWritten) {
  const auto file = written();
  const ZipReader zip(file, "a.zip");
  EXPECT_THAT(zip.names(), ElementsAre("a/first", "a/empty", "a/second"));
  EXPECT_EQ(text_of(zip.read("a/first")), "hello");
  EXPECT_EQ(zip.read("a/empty").size(), 0U);
  EXPECT_EQ(text_of(zip.read("a/second")), std::string(1000, 'x'));
  EXPECT_THROW(static_cast<void>(zip.read("a/third")), CheckpointError);
}

TEST_P(ZipFile, AlignsEntriesTo64Bytes) {
  const auto file = written();
  const ZipReader zip(file, "a.zip");
  for (const char* name : {"a/first", "a/second"}) {
    EXPECT_EQ((zip.read(name).data() - file.data()) % 64, 0) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Limits, ZipFile,
                         ::testing::Values(std::uint64_t{0}, std::uint64_t{500},
                                           std::uint64_t{UINT32_MAX}));

TEST(ZipReader, NamesTheFileThatIsTruncated) {
  try {
    const ZipReader zip(bytes_of("PK\x03\x04 and no more"), "cut.pt");
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), Names("cut.pt", 16));
  }
}

TEST(ZipReader, RefusesToReadCompressedEntries) {
  const test::TemporaryFolder folder;
  {
    ZipWriter zip(folder / "a.zip");
    zip.add("x", bytes_of("hello"));
    zip.finish();
  }
  auto file = read_file(folder / "a.zip");
  // The compression method: byte 10 of the directory entry, which starts 22 + 46 + 1 bytes before
  // the end of the file.
  file[file.size() - 22 - 47 + 10] = std::byte{8};
  const ZipReader zip(file, "a.zip");
  EXPECT_TRUE(zip.contains("x"));
  EXPECT_THROW(static_cast<void>(zip.read("x")), CheckpointError);
}

TEST(ZipReader, RefusesEntriesThatShareBytes) {
  const test::TemporaryFolder folder;
  {
    ZipWriter zip(folder / "a.zip");
    zip.add("x", bytes_of(std::string(1000, 'x')));
    zip.add("y", bytes_of(std::string(1000, 'y')));
    zip.finish();
  }
  auto file = read_file(folder / "a.zip");
  EXPECT_EQ(ZipReader(file, "a.zip").names().size(), 2U);
  // Increases both sizes in the directory entry of x from 1000 to 2024 bytes, so that x reaches to
  // the end of y.
  const std::size_t entry = file.size() - 22 - 2 * 47;
  for (const std::size_t size_at : {20, 24}) file[entry + size_at + 1] = std::byte{7};
  try {
    const ZipReader zip(file, "a.zip");
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), Names("a.zip", "'y'"));
  }
}

TEST(ZipWriter, LeavesNothingWithoutFinish) {
  const test::TemporaryFolder folder;
  {
    ZipWriter zip(folder / "a.zip");
    zip.add("x", bytes_of("hello"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace precast
