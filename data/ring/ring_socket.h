#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace precast::data {

/// A file descriptor that this object closes.
class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int fd = -1) : fd_(fd) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedDescriptor();
  [[nodiscard]] int get() const { return fd_; }
  /// Returns the descriptor, which the caller must now close. @{
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  /// @}

 private:
  int fd_;
};

/// Returns the socket on which a ring's producer waits for consumers (RING.md, Joining). @throws
/// ConfigError for an invalid name; IoError if another producer has the name
[[nodiscard]] OwnedDescriptor listen_for_consumers(const std::string& name);
/// Connects a consumer to the producer of a ring. @param stopped called several times a second
/// while the producer does not accept the connection. @throws ConfigError for an invalid name;
/// IoError if no producer has the name, or if it does not accept the connection within 30 s;
/// RingError if `stopped` returns true
[[nodiscard]] OwnedDescriptor connect_to_producer(const std::string& name,
                                                  const std::function<bool()>& stopped = {});

/// Waits until a message can be received, or the other end has closed the connection. @param
/// stopped as in connect_to_producer(). @return false if neither happens within 30 s. @throws
/// RingError if `stopped` returns true
[[nodiscard]] bool wait_for_message(int connection, const std::function<bool()>& stopped);

/// Returns two connected sockets (SOCK_SEQPACKET). @throws IoError
[[nodiscard]] std::pair<OwnedDescriptor, OwnedDescriptor> connected_pair();

/// Whether the other end belongs to the user of this process. @param pid receives the process id
/// of the other end; 0 if it is not visible in this PID namespace.
[[nodiscard]] bool is_same_user(int connection, int& pid);

/// Sends one message without waiting. @param passed_fd a descriptor that is sent with the message,
/// or -1. @return false on failure.
bool send_message(int connection, std::span<const std::byte> message, int passed_fd = -1);

/// Receives one message, and the descriptor that was sent with it. @param flags for recvmsg().
/// @return an empty vector if the other end has closed the connection, or on failure (errno is
/// set). The kernel discards the descriptor if this process has too many open files.
[[nodiscard]] std::vector<std::byte> receive_message(int connection, OwnedDescriptor& passed_fd,
                                                     int flags = 0);

}  // namespace precast::data
