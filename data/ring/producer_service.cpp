#include "data/ring/producer_service.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "data/ring/layout.h"

namespace precast::data {
namespace {

/// Maximum number of connections, including those that have not joined yet.
constexpr std::size_t kMaxConnections = std::size_t{2} * kMaxRingConsumers;
/// Pause before the next accept() if the process has no descriptors or memory for another
/// connection.
constexpr int kAcceptRetryMs = 100;

OwnedDescriptor make_wake() {
  OwnedDescriptor result(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (result.get() < 0) throw IoError("ring: cannot create", "an eventfd", errno);
  return result;
}

void notify(int eventfd) {
  const std::uint64_t one = 1;
  static_cast<void>(::write(eventfd, &one, sizeof one));
}

}  // namespace

RingProducer::Service::Service(RingWriter& writer, int memfd, OwnedDescriptor listening)
    : writer_(writer), memfd_(memfd), listening_(std::move(listening)), wake_(make_wake()) {
  thread_ = std::jthread([this] { run(); });
}

RingProducer::Service::~Service() {
  end({.exit_code = ExitCode::peer_failed, .text = "the producer stopped before its last batch"});
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  notify(wake_.get());
}

void RingProducer::Service::add(OwnedDescriptor connection) {
  {
    const std::scoped_lock lock(mutex_);
    added_.push_back(std::move(connection));
  }
  notify(wake_.get());
}

void RingProducer::Service::end(RingReply reply) {
  {
    const std::scoped_lock lock(mutex_);
    if (!end_) end_ = std::move(reply);
  }
  notify(wake_.get());
}

void RingProducer::Service::run() {
  for (;;) {
    std::vector<pollfd> waits = {
        {.fd = wake_.get(), .events = POLLIN, .revents = 0},
        {.fd = is_accepting_ ? listening_.get() : -1, .events = POLLIN, .revents = 0}};
    for (const Connection& connection : connections_)
      waits.push_back({.fd = connection.socket.get(), .events = POLLIN, .revents = 0});
    const int ready = ::poll(waits.data(), waits.size(), is_accepting_ ? -1 : kAcceptRetryMs);
    is_accepting_ = true;
    if (ready <= 0) continue;
    for (std::size_t i = 0; i < connections_.size(); ++i)
      if (waits[i + 2].revents != 0) handle_readable(connections_[i]);
    std::erase_if(connections_, [](const Connection& connection) { return !connection.open; });
    if (waits[1].revents != 0) accept_connection();
    if (waits[0].revents != 0) handle_wake();
    const std::scoped_lock lock(mutex_);
    if (stopping_ && end_sent_) return;
  }
}

void RingProducer::Service::handle_wake() {
  std::uint64_t count = 0;
  static_cast<void>(::read(wake_.get(), &count, sizeof count));
  const std::scoped_lock lock(mutex_);
  for (OwnedDescriptor& socket : added_) connections_.push_back({.socket = std::move(socket)});
  added_.clear();
  if (!end_ || end_sent_) return;
  const std::vector<std::byte> message = ring_message(*end_);
  // After an end without an error, a process that is connected but has not joined yet can still
  // join and read the published items. It receives the end message after its welcome.
  for (const Connection& connection : connections_)
    if (connection.cell || end_->exit_code != ExitCode::done)
      send_message(connection.socket.get(), message);
  end_sent_ = true;
}

void RingProducer::Service::accept_connection() {
  OwnedDescriptor socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  int pid = 0;
  if (socket.get() < 0) {
    is_accepting_ = errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
  } else if (is_same_user(socket.get(), pid) && connections_.size() < kMaxConnections) {
    connections_.push_back({.socket = std::move(socket)});
  }
}

/// Handles a connection that is readable. A consumer sends only one message, the join; afterwards,
/// readable means that the consumer has left.
void RingProducer::Service::handle_readable(Connection& connection) {
  if (!connection.cell) {
    try {
      admit(connection);
    } catch (const Error& error) {
      send_message(connection.socket.get(),
                   ring_message({.exit_code = error.exit_code(), .text = error.what()}));
      connection.open = false;
    }
    return;
  }
  writer_.leave(*connection.cell);
  connection.open = false;
}

void RingProducer::Service::admit(Connection& connection) {
  OwnedDescriptor ignored;
  const std::vector<std::byte> message =
      receive_message(connection.socket.get(), ignored, MSG_DONTWAIT);
  if (message.empty()) {
    connection.open = false;
    return;
  }
  const RingJoin join = parse_ring_join(message);
  RingWriter::Admission admission;
  connection.open = join.mode != RingJoin::Mode::description_only;
  if (connection.open) {
    admission = writer_.admit(join);
    connection.cell = admission.cell;
  }
  send_message(connection.socket.get(),
               ring_message({.kind = RingReply::Kind::welcome,
                             .cell = admission.cell,
                             .sequence = admission.sequence}),
               memfd_);
  if (!connection.open) return;
  const std::scoped_lock lock(mutex_);
  if (end_sent_) send_message(connection.socket.get(), ring_message(*end_));
}

}  // namespace precast::data
