#include "data/ring/ring_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "data/ring/layout.h"
#include "data/ring/ring_error.h"

namespace precast::data {
namespace {

constexpr std::size_t kMaxRingName = 64;
constexpr int kListenBacklog = 128;
/// The longest wait for a producer that hangs: in connect() if its queue of connections is full, or
/// for its reply. Normally, the producer's thread replies within milliseconds.
constexpr std::chrono::seconds kMaxWait{30};
/// Pause between two calls of `stopped`.
constexpr int kStopIntervalMs = 100;

struct Address {
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t bytes = 0;
};

Address address_of(const std::string& name) {
  const bool valid = !name.empty() && name.size() <= kMaxRingName &&
                     name.find_first_not_of(
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                         "0123456789._-") == std::string::npos;
  if (!valid)
    throw ConfigError(
        fmt::format("ring: expected a name of 1 to {} letters, digits, '.', '_' and '-', got '{}'",
                    kMaxRingName, name));
  Address result;
  // The first byte stays 0: an abstract name, which has no file.
  const std::string path = fmt::format("precast-ring/{}/{}", ::geteuid(), name);
  path.copy(result.address.sun_path + 1, path.size());
  result.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  return result;
}

/// Limits the wait for a producer.
class ReplyDeadline {
 public:
  explicit ReplyDeadline(const std::function<bool()>& stopped) : stopped_(stopped) {}
  /// Whether the wait may continue. @throws RingError if `stopped` returns true
  [[nodiscard]] bool may_wait() const {
    if (stopped_ && stopped_())
      throw RingError("ring: expected a response from the producer, got a request to stop");
    return std::chrono::steady_clock::now() < end_;
  }

 private:
  const std::function<bool()>& stopped_;
  const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kMaxWait;
};

OwnedDescriptor new_socket() {
  OwnedDescriptor result(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (result.get() < 0) throw IoError("ring: cannot create", "a Unix socket", errno);
  return result;
}

}  // namespace

OwnedDescriptor::~OwnedDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

OwnedDescriptor listen_for_consumers(const std::string& name) {
  const Address at = address_of(name);
  OwnedDescriptor result = new_socket();
  if (::bind(result.get(), reinterpret_cast<const sockaddr*>(&at.address), at.bytes) != 0) {
    if (errno == EADDRINUSE)
      throw IoError(
          fmt::format("ring: expected a name that no other producer of this user has, got "
                      "'{}'. Choose another name, or end that producer",
                      name));
    throw IoError("ring: cannot bind the socket of", name, errno);
  }
  if (::listen(result.get(), kListenBacklog) != 0)
    throw IoError("ring: cannot listen as", name, errno);
  return result;
}

OwnedDescriptor connect_to_producer(const std::string& name, const std::function<bool()>& stopped) {
  const Address at = address_of(name);
  OwnedDescriptor result = new_socket();
  // connect() fails with EAGAIN after this time, and with EINTR after a signal.
  constexpr timeval kInterval{.tv_sec = 0, .tv_usec = kStopIntervalMs * 1000};
  ::setsockopt(result.get(), SOL_SOCKET, SO_SNDTIMEO, &kInterval, sizeof kInterval);
  const ReplyDeadline deadline(stopped);
  while (::connect(result.get(), reinterpret_cast<const sockaddr*>(&at.address), at.bytes) != 0) {
    const int error = errno;
    if ((error == EAGAIN || error == EINTR) && deadline.may_wait()) continue;
    if (error == ECONNREFUSED)
      throw IoError(
          fmt::format("ring: expected a producer of this user with the name '{}' on this "
                      "host, got none. Start it first",
                      name));
    throw IoError("ring: cannot connect to", name, error);
  }
  return result;
}

bool wait_for_message(int connection, const std::function<bool()>& stopped) {
  const ReplyDeadline deadline(stopped);
  pollfd wait{.fd = connection, .events = POLLIN, .revents = 0};
  // If poll() fails, for example with EINTR, the wait continues.
  while (::poll(&wait, 1, kStopIntervalMs) <= 0)
    if (!deadline.may_wait()) return false;
  return true;
}

std::pair<OwnedDescriptor, OwnedDescriptor> connected_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw IoError("ring: cannot create", "a pair of Unix sockets", errno);
  return {OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1])};
}

bool is_same_user(int connection, int& pid) {
  ucred other{};
  socklen_t bytes = sizeof other;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &bytes) != 0) return false;
  pid = other.pid;
  return other.uid == ::geteuid();
}

bool send_message(int connection, std::span<const std::byte> message, int passed_fd) {
  iovec part{.iov_base = const_cast<std::byte*>(message.data()), .iov_len = message.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (passed_fd >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &passed_fd, sizeof passed_fd);
  }
  return ::sendmsg(connection, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

std::vector<std::byte> receive_message(int connection, OwnedDescriptor& passed_fd, int flags) {
  // One byte more than the longest valid message, so that a longer message does not look valid
  // after it was truncated.
  std::vector<std::byte> message(kMaxRingMessageBytes + 1);
  iovec part{.iov_base = message.data(), .iov_len = message.size()};
  // Room for one descriptor; the kernel closes any others.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t bytes = 0;
  do {
    bytes = ::recvmsg(connection, &header, flags | MSG_CMSG_CLOEXEC);
  } while (bytes < 0 && errno == EINTR);
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); bytes >= 0 && c != nullptr;
       c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len < CMSG_LEN(sizeof(int)))
      continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
    passed_fd = OwnedDescriptor(fd);
  }
  message.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  return message;
}

}  // namespace precast::data
