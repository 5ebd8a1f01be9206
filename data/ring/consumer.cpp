#include "data/ring/consumer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "data/ring/messages.h"
#include "data/ring/ring_error.h"
#include "data/ring/ring_reader.h"
#include "data/ring/ring_socket.h"
#include "data/ring/segment.h"

namespace precast::data {
namespace {

/// Pause between two calls of RingConsumerOptions::stopped.
constexpr std::chrono::milliseconds kStopInterval{100};

struct Welcome {
  RingReply reply;
  std::unique_ptr<RingSegment> segment;
};

template <typename ErrorType = RingError>
[[noreturn]] void fail_with(const RingReply& end) {
  // A producer in another language may wrongly send `done`: an error must not have exit code 0.
  throw ErrorType(
      fmt::format("ring: the producer closed the connection: {}", without_ring_prefix(end.text)),
      end.exit_code == ExitCode::done ? ExitCode::peer_failed : end.exit_code);
}

/// Sends `join`, receives the reply, and maps the segment. @param pid receives the producer's
/// process id. @param stopped see RingConsumerOptions::stopped.
Welcome join_ring(int connection, const RingJoin& join, int& pid,
                  const std::function<bool()>& stopped) {
  if (!is_same_user(connection, pid))
    throw RingError(
        "ring: expected a producer of this user, got a producer of another user. Start both as the "
        "same user");
  OwnedDescriptor memfd;
  // If this fails because the producer has closed the connection, its end message may still be
  // readable.
  send_message(connection, ring_message(join));
  std::vector<std::byte> message;
  if (wait_for_message(connection, stopped)) message = receive_message(connection, memfd);
  if (message.empty())
    throw RingError(
        "ring: expected a response from the producer, got none. The producer has exited or hangs",
        ExitCode::peer_failed);
  Welcome welcome{.reply = parse_ring_reply(message), .segment = nullptr};
  if (welcome.reply.kind == RingReply::Kind::end) {
    if (welcome.reply.exit_code == ExitCode::loader) fail_with<RingRefusal>(welcome.reply);
    fail_with(welcome.reply);
  }
  if (memfd.get() < 0) {
    const OwnedDescriptor probe(::fcntl(connection, F_DUPFD_CLOEXEC, 0));
    if (probe.get() < 0)
      throw IoError("ring: cannot receive", "the descriptor of the ring's memory", errno);
  }
  welcome.segment = std::make_unique<RingSegment>(std::move(memfd));
  return welcome;
}

}  // namespace

/// The connection, the mapping and the thread. The consumer and its batches share this object.
class RingConsumer::Attachment {
 public:
  Attachment(OwnedDescriptor connection, const RingJoin& join, RingConsumerOptions options)
      : connection_(std::move(connection)),
        stopped_(std::move(options.stopped)),
        on_skipped_(std::move(options.on_skipped)) {
    Welcome welcome = join_ring(connection_.get(), join, producer_pid_, stopped_);
    segment_ = std::move(welcome.segment);
    description_ = read_ring_description(segment_->memory(), segment_->header());
    if (options.on_mapped) mapping_guard_ = options.on_mapped(segment_->memory());
    reader_.emplace(segment_->memory(), segment_->header(), segment_->control(), welcome.reply.cell,
                    welcome.reply.sequence);
    thread_ = std::jthread([this] { wait_for_end(); });
  }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  ~Attachment() { ::shutdown(connection_.get(), SHUT_RDWR); }

  [[nodiscard]] RingReader& reader() { return *reader_; }
  [[nodiscard]] const std::string& description() const { return description_; }
  /// Waits for an item or the end of the ring. Interrupts the reader if `stopped_` returns true.
  void wait() {
    while (stopped_ && !reader_->wait_for(kStopInterval))
      if (stopped_()) reader_->interrupt();
  }
  /// Reports an item that is skipped. Calls `stopped_` as well, because wait() does not call it
  /// while items are ready.
  void skip(const RingItem& item) {
    if (on_skipped_ && item.kind == RingKind::batch) on_skipped_(item.position);
    if (stopped_ && stopped_()) reader_->interrupt();
  }
  /// @throws RingError if the ring has ended with an error.
  void check_end() {
    const std::scoped_lock lock(mutex_);
    if (end_.exit_code != ExitCode::done) fail_with(end_);
  }

 private:
  void wait_for_end() {
    RingReply end;
    try {
      OwnedDescriptor ignored;
      const std::vector<std::byte> message = receive_message(connection_.get(), ignored);
      if (message.empty()) {
        // The id is 0 if the producer is in a PID namespace that this process does not see.
        const std::string who =
            producer_pid_ == 0 ? "its process" : fmt::format("process {}", producer_pid_);
        end = {.exit_code = ExitCode::peer_failed, .text = who + " was killed or crashed"};
      } else {
        end = parse_ring_reply(message);
        if (end.kind != RingReply::Kind::end)
          throw RingError("ring: expected an end message, got a second welcome message");
      }
    } catch (const Error& error) {
      end = {.exit_code = error.exit_code(), .text = error.what()};
    }
    {
      const std::scoped_lock lock(mutex_);
      end_ = std::move(end);
    }
    reader_->end();
  }

  OwnedDescriptor connection_;
  int producer_pid_ = 0;
  std::function<bool()> stopped_;
  std::function<void(const RingPosition&)> on_skipped_;
  std::unique_ptr<RingSegment> segment_;
  /// The value that RingConsumerOptions::on_mapped returned.
  std::shared_ptr<void> mapping_guard_;
  std::string description_;
  std::optional<RingReader> reader_;
  std::mutex mutex_;
  RingReply end_;
  std::jthread thread_;
};

/// An item that is released on destruction.
struct RingConsumer::HeldItem {
  HeldItem(std::shared_ptr<Attachment> from, RingReader::Taken taken)
      : attachment(std::move(from)), sequence(taken.sequence), item(std::move(taken.item)) {}
  HeldItem(const HeldItem&) = delete;
  HeldItem& operator=(const HeldItem&) = delete;
  ~HeldItem() { attachment->reader().release(sequence); }

  std::shared_ptr<Attachment> attachment;
  std::uint64_t sequence;
  RingItem item;
};

std::string read_ring_description(const std::string& name) {
  const OwnedDescriptor connection = connect_to_producer(name);
  int pid = 0;
  const Welcome welcome = join_ring(
      connection.get(), {.mode = RingJoin::Mode::description_only, .position = {}}, pid, {});
  return read_ring_description(welcome.segment->memory(), welcome.segment->header());
}

RingConsumer::RingConsumer(const std::string& name, const RingJoin& join,
                           RingConsumerOptions options)
    // Braces, because `options` must be moved last.
    : RingConsumer{connect_to_producer(name, options.stopped).release(), join, std::move(options)} {
}

RingConsumer::RingConsumer(int connection, const RingJoin& join, RingConsumerOptions options)
    : attachment_(
          std::make_shared<Attachment>(OwnedDescriptor(connection), join, std::move(options))),
      join_(join) {}

RingConsumer::~RingConsumer() = default;

const std::string& RingConsumer::description() const {
  return attachment_->description();
}

bool RingConsumer::ready() {
  return !in_pass_ || pending_ || attachment_->reader().wait_for({});
}

std::unique_ptr<RingConsumer::HeldItem> RingConsumer::take() {
  attachment_->wait();
  std::optional<RingReader::Taken> taken = attachment_->reader().take();
  if (taken) return std::make_unique<HeldItem>(attachment_, std::move(*taken));
  attachment_->check_end();
  return nullptr;
}

std::optional<RingPosition> RingConsumer::begin_pass() {
  while (in_pass_) static_cast<void>(next());
  const bool by_position = joining_ && join_.mode == RingJoin::Mode::position;
  while (auto item = take()) {
    const RingPosition at = item->item.position;
    if (joining_ && (at < join_.position || (!by_position && at.batch != 0))) {
      attachment_->skip(item->item);
      continue;
    }
    if ((by_position && at != join_.position) || (!joining_ && at.epoch <= next_.epoch))
      throw RingError(fmt::format("ring: expected {}{}, got {}", joining_ ? "" : "a pass after ",
                                  text_of(by_position ? join_.position : next_), text_of(at)));
    joining_ = false;
    in_pass_ = true;
    next_ = at;
    pending_ = std::move(item);
    return at;
  }
  return std::nullopt;
}

std::optional<HostBatch> RingConsumer::next() {
  if (!in_pass_) return std::nullopt;
  in_pass_ = false;
  std::shared_ptr<HeldItem> item = pending_ ? std::move(pending_) : take();
  if (!item) {
    if (attachment_->reader().interrupted()) return std::nullopt;
    throw RingError(fmt::format("ring: expected {}, got the end of the ring", text_of(next_)));
  }
  const RingPosition at = item->item.position;
  if (at != next_)
    throw RingError(
        fmt::format("ring: expected {}, got {}. The producer must publish the batches of an epoch "
                    "without gaps",
                    text_of(next_), text_of(at)));
  if (item->item.kind == RingKind::end_of_pass) return std::nullopt;
  in_pass_ = true;
  ++next_.batch;
  HostBatch batch{.fields = std::move(item->item.fields),
                  .sample_ids = std::move(item->item.sample_ids),
                  .memory = nullptr};
  batch.memory = std::move(item);
  return batch;
}

void RingConsumer::interrupt() {
  attachment_->reader().interrupt();
}

}  // namespace precast::data
