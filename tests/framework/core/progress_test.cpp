#include "framework/core/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>

#include "framework/core/log.h"
#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using test::Names;

/// Connects standard error to a separate terminal and returns what `action` writes to it.
/// @param columns the width of the terminal; 0: unknown
template <typename Action>
std::string on_terminal(Action action, unsigned short columns = 0) {
  constexpr std::string_view kEnd = "<end>";
  int screen = -1;
  int line = -1;
  const winsize shape{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  EXPECT_EQ(::openpty(&screen, &line, nullptr, nullptr, &shape), 0);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(line, STDERR_FILENO);
  action();
  EXPECT_EQ(::write(STDERR_FILENO, kEnd.data(), kEnd.size()), static_cast<ssize_t>(kEnd.size()));
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  // The kernel delivers the written text in pieces.
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

TEST(FitText, CountsCharactersAndCutsNone) {
  EXPECT_EQ(fit_text("abc", 3), "abc");
  EXPECT_EQ(fit_text("abcd", 3), "abc");
  EXPECT_EQ(fit_text("\u00e4\u20ac\u00fc", 2), "\u00e4\u20ac");
  EXPECT_EQ(fit_text("abc", 0), "");
}

TEST(FitParts, DropsTheLeastImportantOnesFirst) {
  const std::vector<LinePart> parts = {{"epoch 1", 9}, {"lr 5", 1}, {"loss 2", 5}};
  EXPECT_EQ(fit_parts(parts, 23), "epoch 1 | lr 5 | loss 2");
  EXPECT_EQ(fit_parts(parts, 22), "epoch 1 | loss 2");
  EXPECT_EQ(fit_parts(parts, 15), "epoch 1");
  EXPECT_EQ(fit_parts(parts, 3), "epo");
}

TEST(Progress, FitsTheTerminal) {
  const auto show = [] {
    Progress progress;
    progress.show({{"epoch 1", 2}, {"lr 5", 1}});
    progress.show("a long line without parts");
  };
  // the wording is tested: only the parts that fit are shown
  const std::string wide = "\r\033[Kepoch 1 | lr 5\r\033[Ka long line wi\r\033[K";
  const std::string narrow = "\r\033[Kepoch 1\r\033[Ka long line w\r\033[K";
  EXPECT_EQ(on_terminal(show, 15), wide);
  EXPECT_EQ(on_terminal(show, 14), narrow);
}

TEST(Progress, ATerminalThatIsGoneIsNoError) {
  int screen = -1;
  int line = -1;
  ASSERT_EQ(::openpty(&screen, &line, nullptr, nullptr, nullptr), 0);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(line, STDERR_FILENO);
  {
    Progress progress;
    progress.show("step 1");
    ::close(screen);
    progress.show("step 2");
    log_info("epoch {} done", 3);
  }
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::close(line);
}

TEST(Progress, APipeThatNobodyReadsIsNoError) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  auto* const before = std::signal(SIGPIPE, SIG_IGN);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  ::close(ends[0]);
  {
    Progress progress;
    progress.show("step 1");
    log_info("epoch {} done", 3);
  }
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::close(ends[1]);
  std::signal(SIGPIPE, before);
}

TEST(OpenClosedStreams, KeepsTheirNumbersFromFiles) {
  const int saved = ::dup(STDERR_FILENO);
  ::close(STDERR_FILENO);
  open_closed_streams();
  const int other = ::open("/dev/zero", O_RDONLY);
  const auto taken = std::filesystem::read_symlink("/proc/self/fd/2");
  ::close(other);
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  EXPECT_EQ(taken, "/dev/null");
}

TEST(Progress, RedrawsOneLineOnATerminal) {
  const std::string text = on_terminal([] {
    Progress progress;
    EXPECT_TRUE(progress.due());
    const auto before = std::chrono::steady_clock::now();
    progress.show("step 1");
    const bool due = progress.due();
    // A redraw is due after 100 ms. On a busy machine, this time may already have passed.
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
