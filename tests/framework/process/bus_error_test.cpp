#include "framework/process/bus_error.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <filesystem>

#include "framework/core/file.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

/// Reads a byte of a mapped file that is shorter now.
void read_lost_page(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::filesystem::resize_file(path, 0);
  report_bus_errors();
  const volatile std::byte* const bytes = file.bytes().data();
  static_cast<void>(bytes[5000]);
}

TEST(BusErrorTest, ALostPageOfAFileIsAnErrorThatNamesTheFile) {
  const test::TemporaryFolder folder;
  const auto path = folder / "shortened.beton";
  write_file(path, std::string(10000, 'x'));
  EXPECT_EXIT(read_lost_page(path), ::testing::ExitedWithCode(5), "/shortened\\.beton: ");
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
