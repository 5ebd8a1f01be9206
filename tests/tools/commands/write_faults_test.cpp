// If `precast write` is killed at any moment, or the disk is full, the final name refers to the old
// file, the new one, or nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "data/beton/format.h"
#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

/// A source of 1,000 images of noise, 6 MB as pixels, and a folder to write to.
class WriteFaultsTest : public testing::Test {
 protected:
  static constexpr int kImages = 1000;
  static constexpr int kSide = 45;

  WriteFaultsTest() {
    std::string images{"\0\0\x08\x03\0\0\x03\xE8\0\0\0\x2D\0\0\0\x2D", 16};
    std::string labels{"\0\0\x08\x01\0\0\x03\xE8", 8};
    std::minstd_rand random(3);
    for (int i = 0; i < kImages * kSide * kSide; ++i)
      images.push_back(static_cast<char>(random() % 256));
    for (int i = 0; i < kImages; ++i) labels.push_back(static_cast<char>(i % 10));
    test::write_bytes(images_, std::as_bytes(std::span(images)));
    test::write_bytes(inputs_ / "x-labels-idx1-ubyte", std::as_bytes(std::span(labels)));
  }

  /// Starts `precast write`. The default mode encodes some images as JPEGs, which takes longer than
  /// writing them.
  [[nodiscard]] test::Program start(const fs::path& out, const char* mode = "proportion") const {
    return test::Program({test::bin_dir() + "/precast", "write", images_.string(), out.string(),
                          "--image.mode", mode, "--page-size", "2097152", "--workers", "2"});
  }

  /// Writes the whole file twice; the first run, which reads program and source from the disk, is
  /// not measured. @return the duration of the second run.
  Clock::duration write_uninterrupted() {
    Clock::time_point begin;
    for (int run = 0; run < 2; ++run) {
      begin = Clock::now();
      test::Program program = start(out_);
      EXPECT_EQ(program.wait(), 0) << program.err;
    }
    const auto taken = Clock::now() - begin;
    new_ = test::read_bytes(out_);
    return taken;
  }

  /// Whether the output is the old file or the new file. If there was no old file, it may also not
  /// exist.
  [[nodiscard]] bool is_old_or_new(bool was_there) const {
    if (!fs::exists(out_)) return !was_there;
    const auto found = test::read_bytes(out_);
    return found == new_ || (was_there && found == old_);
  }
  [[nodiscard]] std::vector<fs::path> temporaries() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(outputs_.path()))
      if (entry.path() != out_) found.push_back(entry.path());
    return found;
  }

  test::TemporaryFolder inputs_;
  test::TemporaryFolder outputs_;
  fs::path images_ = inputs_ / "x-images-idx3-ubyte";
  fs::path out_ = outputs_ / "a.beton";
  std::vector<std::byte> new_;
  std::vector<std::byte> old_ = test::golden_beton("scalars_only");
};

/// Whether the file is complete, or rejected by the reader.
bool complete_or_refused(const fs::path& file, const std::vector<std::byte>& whole) {
  try {
    const data::BetonReader reader(file);
    return test::read_bytes(file) == whole;
  } catch (const Error&) {
    return true;
  }
}

TEST_F(WriteFaultsTest, KilledAt200MomentsTheFinalNameHoldsTheOldFileOrTheNewOrNone) {
  auto taken = write_uninterrupted();
  int killed = 0;
  for (int moment = 0; moment < 200; ++moment) {
    const bool was_there = moment % 2 == 1;
    fs::remove(out_);
    if (was_there) test::write_bytes(out_, old_);
    test::Program program = start(out_);
    // Most stages of a run cannot be observed from outside, so the kills are spread over the
    // measured time of a run. If a run ends before its kill, this time is reduced.
    const Clock::duration pause = taken * moment / 180;
    std::this_thread::sleep_for(pause);
    ::kill(program.id(), SIGKILL);
    const int code = program.wait();
    if (code != 0) ++killed;
    if (code == 0) taken = std::min(taken, pause);
    ASSERT_TRUE(is_old_or_new(was_there)) << moment;
    ASSERT_TRUE(code != 0 || test::read_bytes(out_) == new_) << moment;
    for (const fs::path& left : temporaries())
      ASSERT_TRUE(complete_or_refused(left, new_)) << moment << " " << left;
  }
  EXPECT_GT(killed, 10);
  // Files left behind by the killed processes do not affect the next write.
  write_uninterrupted();
}

TEST_F(WriteFaultsTest, InterruptedAtAnyMomentItLeavesNothingElse) {
  auto taken = write_uninterrupted();
  std::mt19937 random(5);
  int stopped = 0;
  for (int i = 0; i < 100; ++i) {
    const bool was_there = i % 2 == 1;
    fs::remove(out_);
    if (was_there) test::write_bytes(out_, old_);
    test::Program program = start(out_);
    const Clock::duration pause = taken * static_cast<int>(random() % 1000) / 1000;
    std::this_thread::sleep_for(pause);
    ::kill(program.id(), i % 3 == 0 ? SIGTERM : SIGINT);
    const int code = program.wait();
    if (code == 0) taken = std::min(taken, pause);
    ASSERT_THAT(code, testing::AnyOf(0, 128 + SIGINT, 128 + SIGTERM)) << program.err;
    if (code != 0) ++stopped;
    ASSERT_TRUE(is_old_or_new(was_there)) << i;
    ASSERT_TRUE(temporaries().empty()) << i << " " << temporaries().front();
  }
  EXPECT_GT(stopped, 5);
}

TEST_F(WriteFaultsTest, AFullDiskIsNamedAndNothingIsLeftOnIt) {
  const fs::path disk = inputs_ / "disk";
  fs::create_directory(disk);
  // The dataset needs 6 MB.
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=4m") != 0)
    GTEST_SKIP() << "a small tmpfs cannot be mounted (root only)";
  for (const bool was_there : {false, true}) {
    if (was_there) test::write_bytes(disk / "a.beton", old_);
    test::Program program = start(disk / "a.beton", "raw");
    EXPECT_EQ(program.wait(), 5);
    EXPECT_THAT(program.err,
                AllOf(HasSubstr((disk / "a.beton").string()), HasSubstr(std::strerror(ENOSPC))));
    const auto files = fs::directory_iterator(disk);
    EXPECT_EQ(std::distance(begin(files), end(files)), was_there ? 1 : 0);
  }
  EXPECT_TRUE(test::read_bytes(disk / "a.beton") == old_);
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
}

TEST_F(WriteFaultsTest, ADeviceIsNoPlaceForADataset) {
  test::Program program = start("/dev/full");
  EXPECT_EQ(program.wait(), 5);
  EXPECT_THAT(program.err, HasSubstr("/dev/full"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

}  // namespace
}  // namespace precast::tools
