#pragma once

#include <sys/types.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// A pipe. A program that is started later inherits an end only as an InheritedFile. The destructor
/// closes the ends that are still open.
class PRECAST_API Pipe {
 public:
  /// @throws IoError
  Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe();
  void close_writer();
  [[nodiscard]] int reader() const { return ends_[0]; }
  /// -1 once closed.
  [[nodiscard]] int writer() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// A descriptor that a program inherits: `parent_fd` in this process, `child_fd` in the program.
struct InheritedFile {
  int parent_fd = -1;
  int child_fd = -1;
};

/// The environment of this process, one `NAME=value` for each variable.
[[nodiscard]] PRECAST_API std::vector<std::string> current_environment();

/// Pointers to the strings, followed by a null pointer, as exec expects arguments and environments.
/// Valid as long as the strings exist.
[[nodiscard]] PRECAST_API std::vector<char*> null_terminated(const std::vector<std::string>& texts);

/// Starts the program `arguments[0]` (a path; no shell, no search in PATH) with /dev/null as its
/// standard input. Uses posix_spawn() instead of fork(), so it is safe in a process with threads.
/// @param own_group whether the program leads a new process group. The terminal's signals (Ctrl-C,
/// Ctrl-Z) then do not reach it, and SIGTTOU is blocked, so that it can still write to a terminal
/// that stops background writers (`stty tostop`).
/// @return 0, with the process id in `child`, or an errno value.
[[nodiscard]] PRECAST_API int spawn(const std::vector<std::string>& arguments,
                                    const std::vector<std::string>& environment,
                                    std::span<const InheritedFile> files, bool own_group,
                                    pid_t& child);

}  // namespace precast
