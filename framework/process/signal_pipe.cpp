#include "framework/process/signal_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "framework/core/error.h"
#include "framework/process/spawn.h"

namespace precast {
namespace {

std::atomic<int> writer{-1};
std::atomic<bool> in_use{false};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void write_signal(int signal) {
  const int saved_errno = errno;
  const auto byte = static_cast<unsigned char>(signal);
  // The write may fail because the pipe is full; the reader then wakes up anyway.
  [[maybe_unused]] const ssize_t written = write(writer.load(), &byte, 1);
  errno = saved_errno;
}

/// The pipe is created once and never closed, because a handler may still be running in another
/// thread after it has been uninstalled.
Pipe& pipe_of_process() {
  static Pipe* pipe = [] {
    auto* created = new Pipe;
    fcntl(created->reader(), F_SETFL, O_NONBLOCK);
    fcntl(created->writer(), F_SETFL, O_NONBLOCK);
    writer.store(created->writer());
    return created;
  }();
  return *pipe;
}

}  // namespace

SignalPipe::SignalPipe(const std::vector<int>& signals) {
  require(!in_use.exchange(true), "only one SignalPipe exists at a time");
  pipe_of_process();
  (void)take();  // discards signals that the previous SignalPipe received but nobody read
  struct sigaction action {};
  action.sa_handler = write_signal;
  action.sa_flags = SA_RESTART | SA_NOCLDSTOP;
  handlers_.emplace(signals, action);
}

SignalPipe::~SignalPipe() {
  handlers_.reset();
  in_use.store(false);
}

int SignalPipe::fd() const {
  return pipe_of_process().reader();
}

std::vector<int> SignalPipe::take() {
  std::vector<int> signals;
  std::array<unsigned char, 64> bytes{};
  while (true) {
    const ssize_t size = read(fd(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return signals;
    signals.insert(signals.end(), bytes.begin(), bytes.begin() + size);
  }
}

}  // namespace precast
