#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace precast::test {

/// The socket of a ring's producer (RING.md, Joining) that hangs: it neither accepts a connection
/// nor replies.
class SilentProducer {
 public:
  /// How many connections the kernel accepts in place of the producer.
  enum class Queue { one, many };

  explicit SilentProducer(const std::string& name, Queue queue = Queue::many) {
    const std::string path = "precast-ring/" + std::to_string(::geteuid()) + "/" + name;
    path.copy(address_.sun_path + 1, path.size());
    bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
    constexpr int kMany = 16;
    if (::bind(listening_, address(), bytes_) != 0 ||
        ::listen(listening_, queue == Queue::one ? 0 : kMany) != 0)
      throw std::runtime_error("the socket of a ring cannot be opened");
  }
  SilentProducer(const SilentProducer&) = delete;
  SilentProducer& operator=(const SilentProducer&) = delete;
  ~SilentProducer() {
    ::close(listening_);
    ::close(waiting_);
  }

  /// Fills the queue of connections if it is Queue::one.
  void fill_queue() {
    if (::connect(waiting_, address(), bytes_) != 0)
      throw std::runtime_error("the socket of a ring does not accept a connection");
  }

 private:
  static int new_socket() { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }
  [[nodiscard]] const sockaddr* address() const {
    return reinterpret_cast<const sockaddr*>(&address_);
  }

  sockaddr_un address_ = {.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t bytes_ = 0;
  const int listening_ = new_socket();
  const int waiting_ = new_socket();
};

}  // namespace precast::test
