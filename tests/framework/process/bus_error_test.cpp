#include "framework/process/bus_error.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "framework/core/file.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

constexpr std::size_t kThreads = 16;
constexpr std::size_t kPageBytes = 4096;

/// Maps the file, truncates it, and reads each page in a separate thread.
void read_lost_pages(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::filesystem::resize_file(path, 0);
  report_bus_errors();
  std::vector<std::jthread> readers;
  for (std::size_t i = 0; i < kThreads; ++i) {
    readers.emplace_back([&, i] {
      const volatile std::byte* const bytes = file.bytes().data();
      static_cast<void>(bytes[i * kPageBytes]);
    });
  }
}

TEST(BusErrorTest, LostPagesOfAFileAreOneErrorThatNamesTheFile) {
  const test::TemporaryFolder folder;
  const auto path = folder / "shortened.beton";
  for (int i = 0; i < 20; ++i) {
    write_file(path, std::string(kThreads * kPageBytes, 'x'));
    EXPECT_EXIT(read_lost_pages(path), ::testing::ExitedWithCode(5),
                "^error: [^\n]*/shortened\\.beton: [^\n]*\n$");
  }
}

TEST(BusErrorTest, ASignalOfAnotherProcessEndsTheProcessAsBefore) {
  const auto kill_itself = [] {
    report_bus_errors();
    ::kill(::getpid(), SIGBUS);
  };
  EXPECT_EXIT(kill_itself(), ::testing::KilledBySignal(SIGBUS), "^$");
}

}  // namespace
}  // namespace precast
