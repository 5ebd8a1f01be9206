#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data/outside/outside_batches.h"
#include "data/outside/producer_error.h"
#include "tests/data/outside/test_message.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using namespace std::chrono_literals;
using test::Names;
using test::raw_message;
using test::TestBatch;
using ::testing::ThrowsMessage;

/// The socket of a producer, which binds or connects.
class PushSocket {
 public:
  explicit PushSocket(const std::string& endpoint, bool bind = true) {
    const int linger_ms = 30000, ipv6 = endpoint.starts_with("tcp://[") ? 1 : 0;
    zmq_setsockopt(socket_, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_setsockopt(socket_, ZMQ_IPV6, &ipv6, sizeof ipv6);
    const auto open = bind ? zmq_bind : zmq_connect;
    EXPECT_EQ(open(socket_, endpoint.c_str()), 0) << zmq_strerror(zmq_errno());
  }
  PushSocket(const PushSocket&) = delete;
  PushSocket& operator=(const PushSocket&) = delete;
  ~PushSocket() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  void send(const std::vector<std::byte>& message, int flags = 0) {
    EXPECT_EQ(zmq_send(socket_, message.data(), message.size(), flags),
              static_cast<int>(message.size()));
  }
  /// The port that the system has chosen for an endpoint with port *.
  [[nodiscard]] std::string port() const {
    char last[256] = {};
    std::size_t size = sizeof last;
    EXPECT_EQ(zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, last, &size), 0);
    const std::string text = last;
    return text.substr(text.rfind(':') + 1);
  }

 private:
  void* context_ = zmq_ctx_new();
  void* socket_ = zmq_socket(context_, ZMQ_PUSH);
};

/// Waits for a batch. @return false if the wait timed out, as it may on a busy machine, or if the
/// run was asked to stop.
bool try_receive(OutsideBatches& batches) {
  try {
    return batches.next().has_value();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::stalled) << error.what();
    return false;
  }
}

ExitCode code_of_next(OutsideBatches& batches) {
  try {
    static_cast<void>(batches.next());
  } catch (const Error& error) {
    return error.exit_code();
  }
  return ExitCode::done;
}

/// Calls `test` with longer and longer time limits until it returns true. On a busy machine, the
/// first message may not arrive within a short limit.
void with_growing_limits(const std::function<bool(std::chrono::milliseconds)>& test) {
  for (std::chrono::milliseconds limit = 300ms; limit < 5min; limit *= 4)
    if (test(limit)) return;
  ADD_FAILURE() << "no message arrived within any of the limits";
}

class ZmqBatchesTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return (folder_ / "s").string(); }
  [[nodiscard]] std::string endpoint() const { return "ipc://" + path(); }
  [[nodiscard]] std::unique_ptr<OutsideBatches> open(
      const std::string& options = "", OutsideOptions limits = {},
      std::optional<RingPosition> first = std::nullopt) const {
    auto batches = open_outside_batches("zmq://" + path() + options, std::move(limits));
    batches->begin(first);
    return batches;
  }

  test::TemporaryFolder folder_;
};

TEST_F(ZmqBatchesTest, ABatchArrivesAsItWasSentWhoeverBinds) {
  for (const bool producer_binds : {true, false}) {
    const TestBatch made(2, /*side=*/64);
    const auto batches = open(producer_binds ? "" : "?bind");
    PushSocket pushes(endpoint(), producer_binds);
    pushes.send(made.message(RingPosition{.epoch = 1, .batch = 5}));
    pushes.send(made.message());
    const auto first = batches->next();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->position, (RingPosition{.epoch = 1, .batch = 5}));
    EXPECT_THAT(first->name, Names(path(), 1));
    const HostTensor& image = first->host.fields.at(0);
    EXPECT_EQ(image.shape, made.fields[0].shape);
    EXPECT_TRUE(std::equal(made.pixels.begin(), made.pixels.end(), image.data));
    const auto second = batches->next();
    ASSERT_TRUE(second);
    EXPECT_FALSE(second->position);
    EXPECT_THAT(second->name, Names(2));
  }
}

TEST_F(ZmqBatchesTest, ABatchOutlivesItsSource) {
  const TestBatch made(2, /*side=*/64);
  auto batches = open();
  PushSocket pushes(endpoint());
  pushes.send(made.message());
  const auto batch = batches->next();
  ASSERT_TRUE(batch);
  batches.reset();
  EXPECT_TRUE(std::equal(made.pixels.begin(), made.pixels.end(), batch->host.fields.at(0).data));
}

TEST_F(ZmqBatchesTest, AnInvalidMessageIsAnErrorWithItsNumber) {
  const auto batches = open();
  PushSocket pushes(endpoint());
  pushes.send(TestBatch(1).message());
  ASSERT_TRUE(batches->next());
  pushes.send(raw_message("{}"));
  EXPECT_THAT([&] { static_cast<void>(batches->next()); },
              ThrowsMessage<ProducerError>(Names(path(), 2, "outputs")));
}

TEST_F(ZmqBatchesTest, AMessageOfSeveralPartsIsAnError) {
  const auto batches = open();
  PushSocket pushes(endpoint());
  pushes.send(TestBatch(1).message(), ZMQ_SNDMORE);
  pushes.send(TestBatch(1).message());
  EXPECT_THAT([&] { static_cast<void>(batches->next()); },
              ThrowsMessage<ProducerError>(Names(path(), 1)));
}

TEST_F(ZmqBatchesTest, TheReasonOfAnEndIsInTheError) {
  const auto batches = open();
  PushSocket pushes(endpoint());
  pushes.send(raw_message(R"({"end":"disk 7 is full"})"));
  EXPECT_THAT([&] { static_cast<void>(batches->next()); },
              ThrowsMessage<ProducerError>(Names(path(), 1, "disk 7")));
}

TEST_F(ZmqBatchesTest, AWaitEndsAtItsLimit) {
  const auto batches = open("", {.timeout = 300ms});
  try {
    static_cast<void>(batches->next());
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::stalled);
    EXPECT_THAT(error.what(), Names(path(), 1, "0.3", "data.producer_timeout_s"));
  }
}

TEST_F(ZmqBatchesTest, AWaitEndsWhenTheRunIsAskedToStop) {
  int looks = 0;
  const auto batches = open("", {.stopped = [&] { return ++looks == 3; }});
  EXPECT_FALSE(batches->next());
  EXPECT_GE(looks, 3);
}

TEST_F(ZmqBatchesTest, AMessageAboveTheLimitIsNotReceived) {
  constexpr std::size_t kLimit = 1000;
  const auto small = TestBatch(1).message();
  const auto large = TestBatch(1, /*side=*/64).message();
  ASSERT_LT(small.size(), kLimit);
  ASSERT_GT(large.size(), kLimit);
  with_growing_limits([&](std::chrono::milliseconds limit) {
    const auto batches = open("", {.timeout = limit, .max_message_bytes = kLimit});
    PushSocket pushes(endpoint());
    pushes.send(small);
    if (!try_receive(*batches)) return false;
    pushes.send(large);
    EXPECT_EQ(code_of_next(*batches), ExitCode::stalled);
    return true;
  });
}

TEST_F(ZmqBatchesTest, BatchesThatAreSkippedAreInTheErrorOfATimeout) {
  with_growing_limits([&](std::chrono::milliseconds limit) {
    const auto batches = open("", {.timeout = limit}, RingPosition{.epoch = 3, .batch = 20});
    PushSocket pushes(endpoint());
    testing::internal::CaptureStderr();
    bool complete = true;
    for (const std::int64_t batch : {5, 6, 7}) {
      const RingPosition at{.epoch = 2, .batch = batch};
      pushes.send(TestBatch(1).message(at));
      if (!try_receive(*batches)) {
        complete = false;
        break;
      }
      batches->skip(at);
    }
    const std::string logged = testing::internal::GetCapturedStderr();
    if (!complete) return false;
    EXPECT_EQ(test::occurrences(logged, path()), 1) << logged;
    EXPECT_THAT(logged, Names("epoch 2 batch 5", "epoch 3 batch 20"));
    try {
      static_cast<void>(batches->next());
      ADD_FAILURE() << "expected an error";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::stalled);
      EXPECT_THAT(error.what(), Names(path(), "epoch 3 batch 20", 3, "epoch 2 batch 5",
                                      "epoch 2 batch 7", "data.producer_timeout_s"));
    }
    return true;
  });
}

TEST_F(ZmqBatchesTest, ABatchThatIsSkippedDoesNotExtendTheWait) {
  constexpr auto kLimit = 500ms;
  const auto batches = open("", {.timeout = kLimit}, RingPosition{.epoch = 1, .batch = 0});
  PushSocket pushes(endpoint());
  for (std::int64_t batch = 0; batch < 3; ++batch)
    pushes.send(TestBatch(1).message(RingPosition{.epoch = 0, .batch = batch}));
  if (try_receive(*batches)) batches->skip({});
  std::this_thread::sleep_for(kLimit);
  EXPECT_EQ(code_of_next(*batches), ExitCode::stalled);
}

TEST_F(ZmqBatchesTest, ARunThatSkipsCanBeAskedToStop) {
  bool stopped = false;
  const auto batches =
      open("", {.stopped = [&] { return stopped; }}, RingPosition{.epoch = 1, .batch = 0});
  PushSocket pushes(endpoint());
  for (std::int64_t batch = 0; batch < 3; ++batch)
    pushes.send(TestBatch(1).message(RingPosition{.epoch = 0, .batch = batch}));
  ASSERT_TRUE(try_receive(*batches));
  batches->skip({});
  stopped = true;
  EXPECT_FALSE(try_receive(*batches));
}

TEST_F(ZmqBatchesTest, AnAddressMayBeIpv6) {
  const int probe = ::socket(AF_INET6, SOCK_STREAM, 0);
  const sockaddr_in6 loopback{.sin6_family = AF_INET6,
                              .sin6_port = 0,
                              .sin6_flowinfo = 0,
                              .sin6_addr = in6addr_loopback,
                              .sin6_scope_id = 0};
  const bool has_ipv6 = probe >= 0 && ::bind(probe, reinterpret_cast<const sockaddr*>(&loopback),
                                             sizeof loopback) == 0;
  if (probe >= 0) ::close(probe);
  if (!has_ipv6) GTEST_SKIP() << "this host has no IPv6";
  PushSocket pushes("tcp://[::1]:*");
  const auto batches = open_outside_batches("zmq://[::1]:" + pushes.port(), {.timeout = 30s});
  batches->begin(std::nullopt);
  pushes.send(TestBatch(1).message());
  EXPECT_TRUE(try_receive(*batches));
}

TEST_F(ZmqBatchesTest, AnAddressThatCannotBeBoundIsAnErrorThatNamesIt) {
  // 192.0.2.1 is not an address of this host.
  for (const char* address : {"zmq://192.0.2.1:1?bind"}) {
    EXPECT_THAT([&] { static_cast<void>(open_outside_batches(address, {})); },
                ThrowsMessage<IoError>(Names(address)));
  }
  int port = 20000 + ::getpid() % 20000;
  const auto address = [&] { return "zmq://127.0.0.1:" + std::to_string(port) + "?bind"; };
  std::unique_ptr<OutsideBatches> first;
  while (!first) {
    try {
      first = open_outside_batches(address(), {});
    } catch (const IoError&) {
      ++port;
    }
  }
  EXPECT_THAT([&] { static_cast<void>(open_outside_batches(address(), {})); },
              ThrowsMessage<IoError>(Names(port, std::strerror(EADDRINUSE))));
}

TEST(OutsideBatchesTest, OnlyAddressesOfProducersAreOpened) {
  EXPECT_TRUE(is_producer_address("zmq://a:1"));
  EXPECT_TRUE(is_producer_address("ring://a"));
  EXPECT_FALSE(is_producer_address("a.beton"));
  EXPECT_THROW(static_cast<void>(open_outside_batches("a.beton", {})), ConfigError);
}

}  // namespace
}  // namespace precast::data
