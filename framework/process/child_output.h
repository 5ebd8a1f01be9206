#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "framework/process/spawn.h"

namespace precast {

/// A queue of lines for standard output and standard error, in order of arrival. Lines are never
/// interleaved. A slow reader (a pager, a paused terminal) blocks the caller only in flush();
/// output for a reader that has exited is dropped. Not thread-safe.
class PRECAST_API OutputQueue {
 public:
  /// @param text without the newline.
  void line(int fd, std::string_view prefix, std::string_view text);
  /// The descriptor to which write_some() writes next; -1 if no output is waiting.
  [[nodiscard]] int waiting_fd() const;
  /// Writes a piece that is small enough not to block. Call it when poll() reports that
  /// waiting_fd() is writable.
  void write_some();
  /// Writes all waiting output; blocks until everything is written.
  void flush();
  /// Whether so much output is waiting that the caller should stop reading for now.
  [[nodiscard]] bool full() const { return bytes_ >= kMaxBytes; }

 private:
  static constexpr std::size_t kMaxBytes = 1'000'000;
  struct Piece {
    int fd;
    std::string text;
    std::size_t written = 0;
  };
  std::deque<Piece> pieces_;
  std::size_t bytes_ = 0;
};

/// Splits what a child writes to one pipe into lines.
class PRECAST_API ChildStream {
 public:
  /// @param fd the descriptor to which `output` writes the lines. @param prefix text before each
  /// line.
  ChildStream(OutputQueue& output, int fd, std::string prefix);

  [[nodiscard]] Pipe& pipe() { return pipe_; }
  [[nodiscard]] bool open() const { return open_; }
  /// Reads once and queues the complete lines. Call it when the pipe is readable.
  void read_some();
  /// Reads what is left in the pipe and ends the last line; open() then returns false. Call it when
  /// the child has ended, even if other processes still have the pipe open.
  void finish();

 private:
  /// @return false if nothing more can be read now.
  bool read_once();

  OutputQueue& output_;
  int fd_;
  std::string prefix_;
  Pipe pipe_;
  bool open_ = true;
  std::string line_;
};

}  // namespace precast
