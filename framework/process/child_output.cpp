#include "framework/process/child_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

namespace precast {
namespace {

/// Longer lines are split.
constexpr std::size_t kMaxLineBytes = 1'000'000;
/// The largest capacity that Linux gives a pipe, unless root has raised the limit.
constexpr std::size_t kPipeBytes = 1'048'576;

}  // namespace

void OutputQueue::line(int fd, std::string_view prefix, std::string_view text) {
  std::string whole;
  // Erases rank zero's progress line from the terminal; rank zero redraws it.
  if (isatty(fd) == 1) whole = "\r\033[K";
  whole += prefix;
  whole += text;
  whole += '\n';
  bytes_ += whole.size();
  // Joins short lines into one piece of at most PIPE_BUF bytes, which a pipe accepts as a whole.
  if (!pieces_.empty() && pieces_.back().fd == fd && pieces_.back().written == 0 &&
      pieces_.back().text.size() + whole.size() <= PIPE_BUF) {
    pieces_.back().text += whole;
  } else {
    pieces_.push_back({fd, std::move(whole)});
  }
}

int OutputQueue::waiting_fd() const {
  return pieces_.empty() ? -1 : pieces_.front().fd;
}

void OutputQueue::write_some() {
  if (pieces_.empty()) return;
  Piece& piece = pieces_.front();
  const std::size_t size = std::min<std::size_t>(piece.text.size() - piece.written, PIPE_BUF);
  const ssize_t written = write(piece.fd, piece.text.data() + piece.written, size);
  if (written < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // The reader has exited (EPIPE, EIO): drops the piece, so that the children can continue.
  piece.written =
      written < 0 ? piece.text.size() : piece.written + static_cast<std::size_t>(written);
  if (piece.written < piece.text.size()) return;
  bytes_ -= piece.text.size();
  pieces_.pop_front();
}

void OutputQueue::flush() {
  while (!pieces_.empty()) {
    pollfd wait{waiting_fd(), POLLOUT, 0};
    poll(&wait, 1, -1);
    write_some();
  }
}

ChildStream::ChildStream(OutputQueue& output, int fd, std::string prefix)
    : output_(output), fd_(fd), prefix_(std::move(prefix)) {
  fcntl(pipe_.reader(), F_SETFL, O_NONBLOCK);
}

bool ChildStream::read_once() {
  std::array<char, 65536> buffer;
  const ssize_t size = read(pipe_.reader(), buffer.data(), buffer.size());
  if (size < 0 && errno == EINTR) return true;
  if (size <= 0) {
    open_ = size < 0 && errno == EAGAIN;
    return false;
  }
  std::string_view text(buffer.data(), static_cast<std::size_t>(size));
  while (true) {
    const std::size_t end = text.find('\n');
    line_ += text.substr(0, end);
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
    output_.line(fd_, prefix_, line_);
    line_.clear();
  }
  if (line_.size() >= kMaxLineBytes) {
    output_.line(fd_, prefix_, line_);
    line_.clear();
  }
  return true;
}

void ChildStream::read_some() {
  read_once();
  if (!open_) finish();
}

void ChildStream::finish() {
  for (std::size_t i = 0; open_ && i < kPipeBytes / PIPE_BUF && read_once(); ++i) {
  }
  open_ = false;
  if (!line_.empty()) output_.line(fd_, prefix_, line_);
  line_.clear();
}

}  // namespace precast
