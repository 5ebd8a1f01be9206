#include "framework/core/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <string>
#include <string_view>

#include "framework/core/log.h"
#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using test::Names;

/// Connects standard error to a separate terminal and returns what `action` writes to it.
template <typename Action>
std::string on_terminal(Action action) {
  constexpr std::string_view kEnd = "<end>";
  int screen = -1;
  int line = -1;
  EXPECT_EQ(::openpty(&screen, &line, nullptr, nullptr, nullptr), 0);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(line, STDERR_FILENO);
  action();
  EXPECT_EQ(::write(STDERR_FILENO, kEnd.data(), kEnd.size()), static_cast<ssize_t>(kEnd.size()));
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  // The kernel hands what was written over in pieces.
  std::string text;
  char piece[256];
  while (!text.ends_with(kEnd)) {
    const ssize_t size = ::read(screen, piece, sizeof(piece));
    if (size <= 0) break;
    text.append(piece, static_cast<std::size_t>(size));
  }
  ::close(line);
  ::close(screen);
  return text.substr(0, text.rfind(kEnd));
}

TEST(FormatDuration, ChoosesUnitsAndRoundsIntoTheNext) {
  EXPECT_EQ(format_duration(0), "0.0 s");
  EXPECT_EQ(format_duration(6.74), "6.7 s");
  EXPECT_EQ(format_duration(59.94), "59.9 s");
  EXPECT_EQ(format_duration(59.96), "1:00");
  EXPECT_EQ(format_duration(245), "4:05");
  EXPECT_EQ(format_duration(3599.6), "1:00:00");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(360'000), "100:00:00");
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::quiet_NaN()), "?");
}

TEST(FormatBytes, ChoosesUnitsAndRoundsIntoTheNext) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.0 kB");
  EXPECT_EQ(format_bytes(12'345'678), "12.3 MB");
  EXPECT_EQ(format_bytes(999'960), "1.0 MB");
  EXPECT_EQ(format_bytes(1.5e15), "1500.0 TB");
}

TEST(Progress, RedrawsOneLineOnATerminal) {
  const std::string text = on_terminal([] {
    Progress progress;
    EXPECT_TRUE(progress.due());
    const auto before = std::chrono::steady_clock::now();
    progress.show("step 1");
    const bool due = progress.due();
    // Says nothing on a machine so busy that a redraw is due by now.
    if (std::chrono::steady_clock::now() - before < std::chrono::milliseconds(90)) {
      EXPECT_FALSE(due);
    }
    progress.show("step 2");
  });
  EXPECT_EQ(text, "\r\033[Kstep 1\r\033[Kstep 2\r\033[K");
}

TEST(Progress, MakesWayForALogLineOnATerminal) {
  const std::string text = on_terminal([] {
    Progress progress;
    progress.show("step 1");
    log_info("epoch {} done", 3);
    log_warning("slow");
  });
  EXPECT_EQ(text, "\r\033[Kstep 1\r\033[Kepoch 3 done\r\n\r\033[Kwarning: slow\r\n\r\033[K");
}

TEST(Progress, PrintsPlainLinesElsewhere) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress;
    EXPECT_FALSE(progress.due());
    progress.show("step 1");
    log_info("epoch {} done", 3);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "step 1\nepoch 3 done\n");
}

TEST(Progress, TellsTheRateAndTheTimeLeft) {
  const Progress progress;
  EXPECT_THAT(progress.rate(0, 5), Names("0 samples/s", "?"));
  EXPECT_THAT(progress.rate(5, 5), Names("samples/s", "0.0 s"));
}

}  // namespace
}  // namespace precast
