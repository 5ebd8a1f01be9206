#include "data/beton/disk_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;

/// A file of 10,000 bytes; byte i is i % 251.
class DiskFileTest : public ::testing::Test {
 protected:
  DiskFileTest() {
    std::ofstream out(folder_ / "x");
    for (int i = 0; i < 10'000; ++i) out.put(static_cast<char>(i % 251));
  }
  static void expect_bytes(std::span<const std::byte> bytes, std::uint64_t offset) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      ASSERT_EQ(std::to_integer<std::uint64_t>(bytes[i]), (offset + i) % 251) << i;
  }
  template <typename Wanted>
  static std::string error_of_read(const DiskFile& file, std::uint64_t offset,
                                   std::uint64_t count) {
    std::vector<std::byte> to(count);
    try {
      file.read(offset, to);
    } catch (const Wanted& error) {
      return error.what();
    }
    return "none";
  }
  test::TemporaryFolder folder_;
};

TEST_F(DiskFileTest, ContinuesShortAndInterruptedReads) {
  int calls = 0;
  const DiskFile file(folder_ / "x", [&](int fd, void* to, std::size_t bytes, std::int64_t at) {
    if (++calls % 2 == 1) {
      errno = EINTR;
      return std::ptrdiff_t{-1};
    }
    return ::pread(fd, to, std::min<std::size_t>(bytes, 7), at);
  });
  std::vector<std::byte> to(1000);
  file.read(123, to);
  expect_bytes(to, 123);
  EXPECT_GT(calls, 2 * 1000 / 7);
}

TEST_F(DiskFileTest, ReadsBlock) {
  int flags = -1;
  const DiskFile file(folder_ / "x", [&](int fd, void* to, std::size_t bytes, std::int64_t at) {
    flags = ::fcntl(fd, F_GETFL);
    return ::pread(fd, to, bytes, at);
  });
  std::vector<std::byte> to(100);
  file.read(0, to);
  ASSERT_GE(flags, 0);
  EXPECT_EQ(flags & O_NONBLOCK, 0);
}

TEST_F(DiskFileTest, AFailedReadNamesFileAndOffset) {
  const DiskFile file(folder_ / "x", [&](int fd, void* to, std::size_t bytes, std::int64_t at) {
    if (at < 500) return ::pread(fd, to, std::min<std::size_t>(bytes, 500), at);
    errno = EIO;
    return std::ptrdiff_t{-1};
  });
  const std::string message = error_of_read<IoError>(file, 0, 600);
  EXPECT_THAT(message, Names("byte 500", folder_ / "x", std::strerror(EIO)));
}

TEST_F(DiskFileTest, AFileThatBecameShorterIsAnError) {
  const DiskFile file(folder_ / "x");
  ASSERT_EQ(::truncate((folder_ / "x").c_str(), 300), 0);
  EXPECT_THAT(error_of_read<DataError>(file, 200, 600), Names(folder_ / "x", 600, "byte 200", 100));
}

TEST_F(DiskFileTest, ReadsBehindTheEndLeaveTheRestAlone) {
  const DiskFile file(folder_ / "x");
  std::vector<std::byte> to(200, std::byte{255});
  file.read(9'900, to);
  expect_bytes(std::span(to).first(100), 9'900);
  EXPECT_EQ(to[100], std::byte{255});
}

TEST_F(DiskFileTest, DirectReadsGiveTheSameBytesUpToTheEnd) {
  DiskFile file(folder_ / "x");
  try {
    file.enable_direct_io();
  } catch (const IoError&) {
    GTEST_SKIP() << "this file system does not support O_DIRECT";
  }
  constexpr std::uint64_t kUnit = DiskFile::kDirectAlignment;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(kUnit, 2 * kUnit)), &std::free);
  file.read(2 * kUnit, {memory.get(), kUnit});
  expect_bytes({memory.get(), 10'000 - 2 * kUnit}, 2 * kUnit);
  EXPECT_EQ(file.alignment(), kUnit);
}

TEST_F(DiskFileTest, OnlyRegularFilesAreOpened) {
  EXPECT_THROW(DiskFile(folder_ / "missing"), IoError);
  EXPECT_THROW(DiskFile(folder_.path()), IoError);
  EXPECT_THROW(DiskFile("/dev/null"), IoError);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT([&] { DiskFile(folder_ / "pipe"); },
              testing::ThrowsMessage<IoError>(Names(folder_ / "pipe")));
}

}  // namespace
}  // namespace precast::data
