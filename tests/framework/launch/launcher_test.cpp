#include "framework/launch/launcher.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "tests/support/child.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"

namespace precast {
namespace {

using test::eventually;
using test::Names;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

constexpr int kLongGraceMs = 60'000;
constexpr int kShortGraceMs = 300;

std::vector<std::string> launch_command(int processes, int grace_ms,
                                        const std::vector<std::string>& command) {
  std::vector<std::string> arguments{LAUNCH_PROGRAM, std::to_string(processes),
                                     std::to_string(grace_ms)};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

/// A launcher of `processes` shells that run `script`.
class Shells : public test::Program {
 public:
  Shells(int processes, int grace_ms, const std::string& script,
         std::vector<std::string> environment = {})
      : Program(launch_command(processes, grace_ms, {"/bin/sh", "-c", script}),
                std::move(environment)) {}
};

/// The state of a process or thread, as ps shows it: 'T' is stopped, 'Z' ended and not reaped.
char state_of(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string number;
  std::string name;
  char state = '?';
  file >> number >> name >> state;
  return state;
}

/// The only child of a process.
pid_t child_of(pid_t process) {
  const std::string id = std::to_string(process);
  pid_t child = 0;
  EXPECT_TRUE(std::ifstream("/proc/" + id + "/task/" + id + "/children") >> child);
  return child;
}

/// Waits until all threads reach `state`; a process is stopped only when all its threads are.
bool reaches_state(pid_t process, char state) {
  const std::filesystem::path threads = "/proc/" + std::to_string(process) + "/task";
  return eventually([&] {
    const std::filesystem::directory_iterator all(threads);
    return std::all_of(begin(all), end(all),
                       [&](const auto& thread) { return state_of(thread.path()) == state; });
  });
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(LauncherTest, PassesRanksAndTheStoreToTheProcesses) {
  Shells shells(2, kLongGraceMs,
                "echo $PRECAST_RANK/$PRECAST_WORLD_SIZE $PRECAST_LOCAL_RANK/"
                "$PRECAST_LOCAL_WORLD_SIZE $PRECAST_STORE",
                {"PRECAST_RANK=7", "PRECAST_STORE=elsewhere:1"});
  EXPECT_EQ(shells.wait(), 0);
  EXPECT_EQ(shells.out, "0/2 0/2 127.0.0.1:29500\n");
  EXPECT_EQ(shells.err, "[rank 1] 1/2 1/2 127.0.0.1:29500\n");
}

TEST(LauncherTest, SetsTheThreadsOfAProcessUnlessTheyAreSet) {
  const std::vector<std::string> shell{"/bin/sh", "-c", "echo $OMP_NUM_THREADS"};
  std::vector<std::string> without{"/usr/bin/env", "-u", "OMP_NUM_THREADS"};
  for (const std::string& argument : launch_command(1, 0, shell)) without.push_back(argument);
  test::Program sets(without);
  EXPECT_EQ(sets.wait(), 0);
  EXPECT_EQ(sets.out, "3\n");
  std::vector<std::string> with{"/usr/bin/env", "OMP_NUM_THREADS=5"};
  for (const std::string& argument : launch_command(1, 0, shell)) with.push_back(argument);
  test::Program keeps(with);
  EXPECT_EQ(keeps.wait(), 0);
  EXPECT_EQ(keeps.out, "5\n");
}

TEST(LauncherTest, PrefixesTheLinesOfAllButRank0) {
  Shells shells(2, kLongGraceMs, "echo out; echo error >&2; printf unfinished");
  EXPECT_EQ(shells.wait(), 0);
  EXPECT_EQ(shells.out, "out\nunfinished\n");
  EXPECT_EQ(test::occurrences(shells.err, "\n"), 4) << shells.err;
  EXPECT_THAT(shells.err, AllOf(HasSubstr("[rank 1] out\n"), HasSubstr("[rank 1] error\n"),
                                HasSubstr("[rank 1] unfinished\n")));
  EXPECT_THAT(lines_of(shells.err), testing::Contains("error"));
}

TEST(LauncherTest, KeepsTheLinesOfChattyChildrenWholeAndInOrder) {
  Shells shells(3, kLongGraceMs,
                "i=0; while [ $i -lt 500 ]; do printf \"$i:\"; printf 'abc'; printf 'def\\n'; "
                "i=$((i+1)); done");
  ASSERT_EQ(shells.wait(), 0);
  std::array<int, 3> next{};
  for (const std::string& line : lines_of(shells.err)) {
    const auto rank = static_cast<std::size_t>(line[6] - '0');
    ASSERT_TRUE(rank == 1 || rank == 2) << line;
    const std::string number = std::to_string(next.at(rank)++);
    ASSERT_EQ(line, "[rank " + std::to_string(rank) + "] " + number + ":abcdef");
  }
  EXPECT_EQ(next[1], 500);
  EXPECT_EQ(next[2], 500);
  EXPECT_EQ(lines_of(shells.out).size(), 500U);
}

TEST(LauncherTest, KeepsLinesOf64KilobytesWhole) {
  Shells shells(3, kLongGraceMs,
                "for i in 1 2 3; do head -c 65536 /dev/zero | tr '\\0' $PRECAST_RANK; echo; done; "
                "head -c 65536 /dev/zero | tr '\\0' $PRECAST_RANK");
  ASSERT_EQ(shells.wait(), 0);
  const std::vector<std::string> lines = lines_of(shells.err);
  EXPECT_EQ(lines.size(), 8U);
  for (const std::string& line : lines) {
    EXPECT_EQ(line, "[rank " + line.substr(6, 1) + "] " + std::string(65536, line[6]));
  }
  EXPECT_EQ(shells.out.size(), 4U * 65537);
}

/// @return a script for two ranks: rank 1 runs `first`; when the launcher has reaped it, rank 0
/// runs `then`.
std::string one_after_the_other(const std::string& first, const std::string& then) {
  return "[ $PRECAST_RANK = 1 ] && { echo $$ > $PID.new; mv $PID.new $PID; " + first +
         "; }; until [ -e $PID ]; do sleep 0.02; done; "
         "while kill -0 $(cat $PID) 2>&-; do sleep 0.02; done; " +
         then;
}

TEST(LauncherTest, ReturnsTheCodeOfTheFirstThatFailed) {
  struct Case {
    std::string script;
    int code;
  };
  const std::vector<Case> cases{{"exit 0", 0},
                                {"[ $PRECAST_RANK = 1 ] && exit 3; exit 0", 3},
                                {"exit 85", 85},
                                {"[ $PRECAST_RANK = 1 ] && exit 85; exit 0", 85},
                                {one_after_the_other("exit 85", "exit 4"), 4},
                                {one_after_the_other("kill -KILL $$", "exit 13"), 128 + SIGKILL},
                                {one_after_the_other("exit 13", "exit 5"), 5},
                                {one_after_the_other("exit 12", "exit 5"), 12},
                                {"exit 13", 13}};
  for (const Case& test_case : cases) {
    const test::TemporaryFolder folder;
    Shells shells(2, kLongGraceMs, test_case.script, {"PID=" + (folder / "pid").string()});
    EXPECT_EQ(shells.wait(), test_case.code) << test_case.script << '\n' << shells.err;
  }
}

/// The lines that the launcher itself has printed.
std::vector<std::string> launcher_lines(const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("launcher: "); });
  return lines;
}

/// The line that launch_program's on_failure printed. Expects that it was called exactly once.
std::string failure_line(const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("told "); });
  EXPECT_EQ(lines.size(), 1U) << text;
  return lines.empty() ? "" : lines[0];
}

TEST(LauncherTest, NamesTheFirstFailureOnceAndKillsTheOthersAfterTheGrace) {
  Shells shells(3, kShortGraceMs, "[ $PRECAST_RANK = 1 ] && kill -KILL $$; exec sleep 100");
  EXPECT_EQ(shells.wait(), 128 + SIGKILL);
  EXPECT_THAT(failure_line(shells.err),
              AllOf(Names("1:", "rank 1", "9", "SIGKILL"), ContainsRegex("\\(pid [0-9]+\\)")));
  EXPECT_THAT(launcher_lines(shells.err),
              ElementsAre(Names("rank 1", 9, "SIGKILL", 2, "0.3 s"), Names("rank 0", "0.3 s"),
                          Names("rank 2", "0.3 s")));
  EXPECT_EQ(shells.out, "");
}

TEST(LauncherTest, AFailureThatFollowsAnotherIsNotNamed) {
  const test::TemporaryFolder folder;
  Shells shells(2, kLongGraceMs,
                "[ $PRECAST_RANK = 1 ] || exit 13; until [ -e $TOLD ]; do sleep 0.02; done; exit 5",
                {"TOLD=" + (folder / "told").string()});
  EXPECT_EQ(shells.wait(), 5);
  EXPECT_THAT(launcher_lines(shells.err), ElementsAre(Names("rank 1", "pid", 5)));
  EXPECT_THAT(failure_line(shells.err), Names("rank 0", 13));
}

TEST(LauncherTest, KillsAStoppedChildAfterTheGrace) {
  const test::TemporaryFolder folder;
  Shells shells(
      2, kShortGraceMs,
      "[ $PRECAST_RANK = 1 ] && { echo $$ > $PID.new; mv $PID.new $PID; kill -STOP $$; }; "
      "until [ -e $PID ]; do sleep 0.02; done; "
      "until grep -q '^State:.T' /proc/$(cat $PID)/status; do sleep 0.02; done; exit 13",
      {"PID=" + (folder / "pid").string()});
  EXPECT_EQ(shells.wait(), 13);
  EXPECT_THAT(launcher_lines(shells.err),
              UnorderedElementsAre(Names("rank 0", 13), Names("rank 1", "pid", "0.3 s")));
}

TEST(LauncherTest, ForwardsSignalsOnce) {
  Shells shells(2, kLongGraceMs,
                "trap 'echo usr1' USR1; trap 'echo term; exit 85' TERM; echo ready; "
                "while :; do sleep 0.02; done");
  ASSERT_TRUE(shells.printed("ready\n", 2));
  kill(shells.id(), SIGUSR1);
  ASSERT_TRUE(shells.printed("usr1\n", 2));
  kill(shells.id(), SIGTERM);
  EXPECT_EQ(shells.wait(), 85);
  EXPECT_EQ(shells.out, "ready\nusr1\nterm\n");
  EXPECT_EQ(shells.err, "[rank 1] ready\n[rank 1] usr1\n[rank 1] term\n");
}

TEST(LauncherTest, PassesAHangUpOnAsARequestToStop) {
  Shells shells(1, kLongGraceMs, "trap 'exit 85' TERM; echo ready; while :; do sleep 0.02; done");
  ASSERT_TRUE(shells.printed("ready"));
  kill(shells.id(), SIGHUP);
  EXPECT_EQ(shells.wait(), 85);
}

/// A command that starts a launcher with `signal` ignored; the launcher starts one shell, which
/// runs `script`.
std::vector<std::string> launch_ignoring(const std::string& signal, const std::string& script) {
  std::vector<std::string> command{"/bin/sh", "-c", "trap '' " + signal + "; exec \"$@\"", "sh"};
  for (const std::string& argument : launch_command(1, kLongGraceMs, {"/bin/sh", "-c", script}))
    command.push_back(argument);
  return command;
}

TEST(LauncherTest, AsABackgroundJobOfAScriptItStillForwardsRequestsToStop) {
  const std::vector<std::pair<std::string, int>> requests{
      {"INT", SIGINT}, {"TERM", SIGTERM}, {"USR1", SIGUSR1}};
  for (const auto& [name, signal] : requests) {
    // The trap has no effect if the shell was started with the signal ignored.
    test::Program launcher(launch_ignoring(
        name, "trap 'exit 85' " + name + "; echo ready; while :; do sleep 0.02; done"));
    ASSERT_TRUE(launcher.printed("ready"));
    kill(launcher.id(), signal);
    EXPECT_EQ(launcher.wait(), 85) << name;
  }
}

TEST(LauncherTest, UnderNohupAHangUpIsNotPassedOn) {
  test::Program launcher(launch_ignoring("HUP",
                                         "trap 'exit 1' TERM; trap 'exit 85' INT; kill -HUP $$; "
                                         "echo ready; while :; do sleep 0.02; done"));
  ASSERT_TRUE(launcher.printed("ready"));
  kill(launcher.id(), SIGHUP);
  kill(launcher.id(), SIGINT);
  EXPECT_EQ(launcher.wait(), 85);
}

TEST(LauncherTest, ChildrenThatASentSignalEndsGiveItsCode) {
  Shells shells(2, kLongGraceMs, "echo ready; exec sleep 100");
  ASSERT_TRUE(shells.printed("ready\n", 2));
  kill(shells.id(), SIGTERM);
  EXPECT_EQ(shells.wait(), 128 + SIGTERM);
}

TEST(LauncherTest, ASecondSigintKillsAtOnce) {
  Shells shells(2, kLongGraceMs, "trap 'echo int' INT; echo ready; while :; do sleep 0.02; done");
  ASSERT_TRUE(shells.printed("ready\n", 2));
  kill(shells.id(), SIGINT);
  ASSERT_TRUE(shells.printed("int\n", 2));
  kill(shells.id(), SIGINT);
  EXPECT_EQ(shells.wait(), 128 + SIGINT);
  EXPECT_EQ(test::occurrences(shells.out + shells.err, "int\n"), 2);
}

TEST(LauncherTest, StopsAndContinuesWithItsChildren) {
  Shells shells(1, kLongGraceMs, "echo ready; exec sleep 100");
  ASSERT_TRUE(shells.printed("ready"));
  const pid_t child = child_of(shells.id());
  kill(shells.id(), SIGTSTP);
  int status = 0;
  ASSERT_EQ(waitpid(shells.id(), &status, WUNTRACED), shells.id());
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(reaches_state(child, 'T'));
  kill(shells.id(), SIGCONT);
  EXPECT_TRUE(reaches_state(child, 'S'));
  kill(shells.id(), SIGTERM);
  EXPECT_EQ(shells.wait(), 128 + SIGTERM);
}

TEST(LauncherTest, TheGraceDoesNotRunWhileAllAreSuspended) {
  const test::TemporaryFolder folder;
  constexpr int kGraceMs = 5'000;
  Shells shells(2, kGraceMs,
                "[ $PRECAST_RANK = 1 ] && exit 3; until [ -e $GO ]; do sleep 0.02; done; exit 0",
                {"GO=" + (folder / "go").string()});
  ASSERT_TRUE(shells.printed("told"));
  kill(shells.id(), SIGTSTP);
  int status = 0;
  ASSERT_EQ(waitpid(shells.id(), &status, WUNTRACED), shells.id());
  ASSERT_TRUE(WIFSTOPPED(status));
  const auto later = std::chrono::steady_clock::now() + std::chrono::milliseconds(kGraceMs);
  ASSERT_TRUE(eventually([&] { return std::chrono::steady_clock::now() > later; }));
  std::ofstream{folder / "go"};
  kill(shells.id(), SIGCONT);
  EXPECT_EQ(shells.wait(), 3);
  EXPECT_THAT(launcher_lines(shells.err), ElementsAre(Names("rank 1", 3)));
}

/// The ids of the processes in the output of launch_program's `watch`.
std::vector<pid_t> watcher_pids(const std::string& text) {
  std::vector<pid_t> ids;
  const std::regex line("watches true as pid ([0-9]+)");
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) {
    ids.push_back(std::stoi((*at)[1]));
  }
  return ids;
}

TEST(LauncherTest, ChildrenEndWhenTheLauncherIsKilled) {
  const test::Reaper reaper;
  test::Program launcher(launch_command(3, kLongGraceMs, {LAUNCH_PROGRAM, "watch"}));
  ASSERT_TRUE(launcher.printed("watches true", 3));
  kill(launcher.id(), SIGKILL);
  EXPECT_EQ(launcher.wait(), 128 + SIGKILL);
  const std::vector<pid_t> children = watcher_pids(launcher.out + launcher.err);
  ASSERT_EQ(children.size(), 3U);
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::peer_failed));
  }
}

TEST(LauncherTest, StoppedChildrenEndTooWhenTheLauncherIsKilled) {
  const test::Reaper reaper;
  // In a separate session, the launcher's death orphans the process group of the stopped child, so
  // the kernel sends it SIGHUP and SIGCONT.
  std::vector<std::string> command = launch_command(1, 0, {LAUNCH_PROGRAM, "watch"});
  command.insert(command.begin(), "/usr/bin/setsid");
  test::Program launcher(command);
  ASSERT_TRUE(launcher.printed("watches true"));
  const pid_t child = child_of(launcher.id());
  kill(child, SIGSTOP);
  ASSERT_TRUE(reaches_state(child, 'T'));
  kill(launcher.id(), SIGKILL);
  EXPECT_EQ(launcher.wait(), 128 + SIGKILL);
  const bool ended = eventually([&] { return waitpid(child, nullptr, WNOHANG) == child; });
  EXPECT_TRUE(ended);
  if (!ended) kill(child, SIGKILL);
}

TEST(LauncherTest, AProgramWithoutALauncherWatchesNone) {
  test::Program alone({LAUNCH_PROGRAM, "watch"});
  EXPECT_EQ(alone.wait(), 0);
  EXPECT_THAT(alone.err, HasSubstr("watches false"));
  test::Program with_invalid_pipe({LAUNCH_PROGRAM, "watch"}, {"PRECAST_LAUNCHER_PIPE=2"});
  EXPECT_EQ(with_invalid_pipe.wait(), 0);
  EXPECT_THAT(with_invalid_pipe.err, HasSubstr("watches false"));
}

TEST(LauncherTest, DoesNotWaitForWhatAChildLeavesBehind) {
  const test::Reaper reaper;
  Shells shells(1, kLongGraceMs, "sleep 100 & echo $!");
  EXPECT_EQ(shells.wait(), 0);
  const pid_t left = std::stoi(shells.out);
  int status = 0;
  ASSERT_EQ(waitpid(left, &status, 0), left);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(LauncherTest, AChildMayCloseItsOutputEarly) {
  Shells shells(2, kLongGraceMs,
                "trap 'exit 0' TERM; exec 1>&-; echo late >&2; exec 2>&-; "
                "while :; do sleep 0.02; done");
  ASSERT_TRUE(shells.printed("late\n", 2));
  kill(shells.id(), SIGTERM);
  EXPECT_EQ(shells.wait(), 0);
  EXPECT_EQ(test::occurrences(shells.err, "late\n"), 2) << shells.err;
  EXPECT_THAT(shells.err, HasSubstr("[rank 1] late\n"));
}

TEST(LauncherTest, ForwardsSignalsWhileNobodyReadsItsOutput) {
  const test::TemporaryFolder folder;
  const std::string fifo = folder / "fifo";
  const std::string mark = folder / "mark";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::string script =
      "[ $PRECAST_RANK = 0 ] && { trap '' TERM; exec head -c 3000000 /dev/zero; }; "
      "trap '> " +
      mark + "; exit 0' TERM; echo ready >&2; while :; do sleep 0.02; done";
  test::Program shells(
      {"/bin/sh", "-c", "exec \"$0\" 2 0 /bin/sh -c \"$1\" > " + fifo, LAUNCH_PROGRAM, script});
  const int reader = open(fifo.c_str(), O_RDONLY);
  ASSERT_TRUE(shells.printed("ready"));
  // Waits until the pipe is full. Up to two pages may remain free, because small writes do not fill
  // their pages.
  const int enough = fcntl(reader, F_GETPIPE_SZ) - 2 * static_cast<int>(sysconf(_SC_PAGESIZE));
  int bytes = 0;
  EXPECT_TRUE(eventually([&] { return ioctl(reader, FIONREAD, &bytes) == 0 && bytes > enough; }));
  kill(shells.id(), SIGTERM);
  EXPECT_TRUE(eventually([&] { return access(mark.c_str(), F_OK) == 0; }));
  std::vector<char> piece(65536);
  std::ptrdiff_t zeros = 0;
  for (ssize_t size = 1; size > 0; zeros += std::count(piece.begin(), piece.begin() + size, '\0')) {
    size = read(reader, piece.data(), piece.size());
  }
  close(reader);
  EXPECT_EQ(zeros, 3'000'000);
  EXPECT_EQ(shells.wait(), 0) << shells.err;
}

/// A terminal for a program that runs in its own session.
class Terminal {
 public:
  Terminal() {
    std::array<char, 64> name{};
    EXPECT_EQ(openpty(&screen_, &line_, name.data(), nullptr, nullptr), 0);
    name_ = name.data();
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    close(line_);
    close(screen_);
  }
  /// `command` in a new session, with this terminal as its controlling terminal, standard input and
  /// standard error.
  [[nodiscard]] std::vector<std::string> wrap(const std::vector<std::string>& command) const {
    std::vector<std::string> all{"/bin/sh", "-c",
                                 "exec setsid --ctty \"$@\" < " + name_ + " 2> " + name_, "sh"};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  void stop_background_writers() const {
    termios settings{};
    EXPECT_EQ(tcgetattr(line_, &settings), 0);
    settings.c_lflag |= TOSTOP;
    EXPECT_EQ(tcsetattr(line_, TCSANOW, &settings), 0);
  }
  void type(char key) const { EXPECT_EQ(write(screen_, &key, 1), 1); }
  /// Reads until `text` has appeared `times` times. @return false if nothing is printed for 30 s.
  bool wait_for_text(const std::string& text, int times) {
    std::array<char, 4096> piece{};
    while (test::occurrences(seen, text) < times) {
      pollfd wait{screen_, POLLIN, 0};
      if (poll(&wait, 1, 30'000) != 1) return false;
      const ssize_t size = read(screen_, piece.data(), piece.size());
      if (size <= 0) return false;
      seen.append(piece.data(), static_cast<std::size_t>(size));
    }
    return true;
  }

  std::string seen;

 private:
  int screen_ = -1;
  int line_ = -1;
  std::string name_;
};

TEST(LauncherTest, OnATerminalRank0DrawsItselfAndCtrlCReachesEachChildOnce) {
  Terminal terminal;
  test::Program shells(terminal.wrap(launch_command(
      2, kLongGraceMs,
      {"/bin/sh", "-c",
       "[ -t 2 ] && echo direct >&2 || echo piped >&2; trap 'echo int >&2' INT; "
       "trap 'echo last >&2; exit 85' TERM; echo ready >&2; while :; do sleep 0.02; done"})));
  ASSERT_TRUE(terminal.wait_for_text("ready\r\n", 2)) << terminal.seen;
  EXPECT_THAT(terminal.seen, HasSubstr("direct\r\n"));
  EXPECT_THAT(terminal.seen, HasSubstr("\r\033[K[rank 1] piped\r\n"));
  terminal.type('\x03');
  ASSERT_TRUE(terminal.wait_for_text("int\r\n", 2)) << terminal.seen;
  kill(shells.id(), SIGTERM);
  ASSERT_TRUE(terminal.wait_for_text("last\r\n", 2)) << terminal.seen;
  EXPECT_EQ(shells.wait(), 85);
  EXPECT_EQ(test::occurrences(terminal.seen, "int\r\n"), 2) << terminal.seen;
}

TEST(LauncherTest, ATerminalThatStopsBackgroundWritersDoesNotStopRank0) {
  Terminal terminal;
  terminal.stop_background_writers();
  test::Program launcher(terminal.wrap(launch_command(1, kLongGraceMs, {LAUNCH_PROGRAM, "watch"})));
  EXPECT_TRUE(terminal.wait_for_text("watches true", 1));
  kill(launcher.id(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 128 + SIGTERM);
}

class LaunchHereTest : public testing::Test {
 protected:
  static LaunchOptions options(const std::string& script) {
    LaunchOptions made;
    made.command = {"/bin/sh", "-c", script};
    made.processes = 2;
    return made;
  }
};

TEST_F(LaunchHereTest, LeavesNoZombie) {
  EXPECT_EQ(launch(options("exit 0")), 0);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(LaunchHereTest, RestoresTheSignalHandlers) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGTSTP, SIGCHLD}) {
    struct sigaction ours {};
    ours.sa_handler = [](int) {};
    struct sigaction before {};
    sigaction(signal, &ours, &before);
    EXPECT_EQ(launch(options("exit 0")), 0);
    struct sigaction after {};
    sigaction(signal, &before, &after);
    EXPECT_EQ(after.sa_handler, ours.sa_handler) << signal;
  }
}

TEST_F(LaunchHereTest, NamesAProgramThatCannotBeStarted) {
  LaunchOptions wrong = options("");
  wrong.command = {"/nowhere/precast-train"};
  EXPECT_THAT(
      [&] { (void)launch(wrong); },
      ThrowsMessage<IoError>(Names("launcher", "/nowhere/precast-train", std::strerror(ENOENT))));
}

TEST_F(LaunchHereTest, LeavesNothingBehindWhenTheCallbackThrows) {
  LaunchOptions made = options("[ $PRECAST_RANK = 1 ] && exit 3; exec sleep 100");
  made.on_failure = [](int, const std::string& cause) { throw std::runtime_error(cause); };
  EXPECT_THROW((void)launch(made), std::runtime_error);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace precast
