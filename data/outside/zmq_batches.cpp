#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "data/outside/libzmq.h"
#include "data/outside/message.h"
#include "data/outside/producer_error.h"
#include "data/outside/transports.h"
#include "data/outside/wait_limit.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Longest wait for a message before OutsideOptions::stopped is checked again.
constexpr long kPollIntervalMs = 100;

/// A PULL socket and its context.
class PullSocket {
 public:
  PullSocket(const ZmqAddress& address, std::uint64_t max_bytes) {
    context_ = zmq_.ctx_new();
    if (context_ != nullptr) socket_ = zmq_.socket(context_, ZMQ_PULL);
    if (socket_ == nullptr) fail("cannot create a socket", address);
    const auto limit = static_cast<std::int64_t>(
        std::min<std::uint64_t>(max_bytes, std::numeric_limits<std::int64_t>::max()));
    set(ZMQ_RCVHWM, address.high_water_mark);
    set(ZMQ_MAXMSGSIZE, limit);
    set(ZMQ_LINGER, 0);
    // Only for IPv6 addresses: with this option, localhost would mean only ::1.
    if (address.is_ipv6) set(ZMQ_IPV6, 1);
    const int code = address.bind ? zmq_.bind(socket_, address.endpoint.c_str())
                                  : zmq_.connect(socket_, address.endpoint.c_str());
    if (code != 0) fail(address.bind ? "cannot bind" : "cannot connect", address);
  }
  PullSocket(const PullSocket&) = delete;
  PullSocket& operator=(const PullSocket&) = delete;
  ~PullSocket() { close(); }

  /// Waits for at most kPollIntervalMs. @return whether there is a message; also false after a
  /// signal.
  [[nodiscard]] bool wait() {
    zmq_pollitem_t item{.socket = socket_, .fd = 0, .events = ZMQ_POLLIN, .revents = 0};
    return zmq_.poll(&item, 1, kPollIntervalMs) > 0;
  }
  /// @return whether a message was received.
  [[nodiscard]] bool receive(zmq_msg_t& message) {
    return zmq_.msg_recv(&message, socket_, ZMQ_DONTWAIT) >= 0;
  }

 private:
  template <typename Value>
  void set(int option, Value value) {
    require(zmq_.setsockopt(socket_, option, &value, sizeof value) == 0, "libzmq knows the option");
  }
  void close() {
    if (socket_ != nullptr) zmq_.close(std::exchange(socket_, nullptr));
    if (context_ != nullptr) zmq_.ctx_term(std::exchange(context_, nullptr));
  }
  [[noreturn]] void fail(std::string_view what, const ZmqAddress& address) {
    const int number = zmq_.error_number();
    const std::string text = fmt::format("{}: {}: {}", address.text, what, zmq_.error_text(number));
    close();
    if (number == EINVAL) throw ConfigError(text);
    throw IoError(text);
  }

  const LibZmq& zmq_ = libzmq();
  void* context_ = nullptr;
  void* socket_ = nullptr;
};

/// A received message; batches share it.
class Message {
 public:
  Message() { zmq_.msg_init(&message_); }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() { zmq_.msg_close(&message_); }

  [[nodiscard]] zmq_msg_t& get() { return message_; }
  [[nodiscard]] bool has_more_parts() const { return zmq_.msg_more(&message_) != 0; }
  [[nodiscard]] std::span<const std::byte> bytes() {
    return {static_cast<const std::byte*>(zmq_.msg_data(&message_)), zmq_.msg_size(&message_)};
  }

 private:
  const LibZmq& zmq_ = libzmq();
  zmq_msg_t message_{};
};

class ZmqBatches final : public OutsideBatches {
 public:
  ZmqBatches(ZmqAddress address, OutsideOptions options)
      : address_(std::move(address)),
        socket_(address_, options.max_message_bytes),
        limit_(address_.text, std::move(options)) {}

  void begin(std::optional<RingPosition> first) override { limit_.begin(first); }

  std::optional<OutsideBatch> next() override {
    if (!std::exchange(skipped_, false)) limit_.restart();
    const std::string name = fmt::format("{}: message {}", address_.text, number_ + 1);
    const auto message = std::make_shared<Message>();
    do {
      if (limit_.stopped()) return std::nullopt;
      limit_.throw_if_reached(fmt::format("message {}", number_ + 1));
    } while (!socket_.wait() || !socket_.receive(message->get()));
    ++number_;
    if (message->has_more_parts())
      throw ProducerError(
          fmt::format("{}: expected a message of one part, got several parts", name));
    OutsideMessage parsed = parse(message->bytes(), name);
    if (parsed.end)
      throw ProducerError(fmt::format("{}: expected another batch, got the end: {}", name,
                                      parsed.end->empty() ? "no reason given" : *parsed.end));
    return OutsideBatch{
        .host = {.fields = std::move(parsed.fields), .sample_ids = {}, .memory = message},
        .position = parsed.position,
        .name = name};
  }

  void skip(const RingPosition& at) override {
    limit_.skip(at);
    skipped_ = true;
  }

 private:
  static OutsideMessage parse(std::span<const std::byte> bytes, const std::string& name) {
    try {
      return parse_outside_message(bytes);
    } catch (const ProducerError& error) {
      throw ProducerError(fmt::format("{}: {}", name, error.what()));
    }
  }

  ZmqAddress address_;
  PullSocket socket_;
  WaitLimit limit_;
  /// Whether the last batch was skipped, so that the wait continues.
  bool skipped_ = false;
  std::uint64_t number_ = 0;
};

}  // namespace

std::unique_ptr<OutsideBatches> make_zmq_batches(ZmqAddress address, OutsideOptions options) {
  return std::make_unique<ZmqBatches>(std::move(address), std::move(options));
}

}  // namespace precast::data
