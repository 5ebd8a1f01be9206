#pragma once

#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/ring/messages.h"
#include "data/ring/producer.h"
#include "data/ring/ring_socket.h"
#include "data/ring/ring_writer.h"

namespace precast::data {

/// The producer's thread: accepts connections, admits consumers, and notices when they leave.
class RingProducer::Service {
 public:
  /// Borrows the writer. @param memfd is sent to consumers. @param listening the listening socket;
  /// may be empty.
  Service(RingWriter& writer, int memfd, OwnedDescriptor listening);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  /// Ends all consumers, with an error if end() was not called.
  ~Service();

  /// Adds a connection that does not come from the listening socket.
  void add(OwnedDescriptor connection);
  /// Sends `reply` to all consumers, including those that join later. Only the first call has an
  /// effect.
  void end(RingReply reply);

 private:
  struct Connection {
    OwnedDescriptor socket;
    std::optional<std::uint32_t> cell = {};
    bool open = true;
  };
  void run();
  void handle_wake();
  void accept_connection();
  void handle_readable(Connection& connection);
  void admit(Connection& connection);

  RingWriter& writer_;
  const int memfd_;
  const OwnedDescriptor listening_;
  const OwnedDescriptor wake_;
  /// Used only by the thread. @{
  std::vector<Connection> connections_;
  bool end_sent_ = false;
  bool is_accepting_ = true;
  /// @}
  /// Protects what follows.
  std::mutex mutex_;
  std::vector<OwnedDescriptor> added_;
  std::optional<RingReply> end_;
  bool stopping_ = false;
  std::jthread thread_;
};

}  // namespace precast::data
