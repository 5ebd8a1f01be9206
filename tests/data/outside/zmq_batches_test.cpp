#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "data/outside/outside_batches.h"
#include "data/outside/producer_error.h"
#include "tests/data/outside/made_message.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using namespace std::chrono_literals;
using test::MadeBatch;
using test::Names;
using test::raw_message;
using ::testing::ThrowsMessage;

/// A producer that binds or connects.
class Pushes {
 public:
  explicit Pushes(const std::string& endpoint, bool bind = true) {
    const int linger_ms = 30000;
    zmq_setsockopt(socket_, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    const auto open = bind ? zmq_bind : zmq_connect;
    EXPECT_EQ(open(socket_, endpoint.c_str()), 0) << zmq_strerror(zmq_errno());
  }
  Pushes(const Pushes&) = delete;
  Pushes& operator=(const Pushes&) = delete;
  ~Pushes() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  void send(const std::vector<std::byte>& message, int flags = 0) {
    EXPECT_EQ(zmq_send(socket_, message.data(), message.size(), flags),
              static_cast<int>(message.size()));
  }

 private:
  void* context_ = zmq_ctx_new();
  void* socket_ = zmq_socket(context_, ZMQ_PUSH);
};

class ZmqBatchesTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return (folder_ / "s").string(); }
  [[nodiscard]] std::string endpoint() const { return "ipc://" + path(); }
  [[nodiscard]] std::unique_ptr<OutsideBatches> open(const std::string& options = "",
                                                     OutsideOptions limits = {}) const {
    auto batches = open_outside_batches("zmq://" + path() + options, std::move(limits));
    batches->begin(std::nullopt);
    return batches;
  }

  test::TemporaryFolder folder_;
};

TEST_F(ZmqBatchesTest, ABatchArrivesAsItWasSentWhoeverBinds) {
  for (const bool producer_binds : {true, false}) {
    const MadeBatch made(2, /*side=*/64);
    const auto batches = open(producer_binds ? "" : "?bind");
    Pushes pushes(endpoint(), producer_binds);
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
  const MadeBatch made(2, /*side=*/64);
  auto batches = open();
  Pushes pushes(endpoint());
  pushes.send(made.message());
  const auto batch = batches->next();
  ASSERT_TRUE(batch);
  batches.reset();
  EXPECT_TRUE(std::equal(made.pixels.begin(), made.pixels.end(), batch->host.fields.at(0).data));
}

TEST_F(ZmqBatchesTest, AnInvalidMessageIsAnErrorWithItsNumber) {
  const auto batches = open();
  Pushes pushes(endpoint());
  pushes.send(MadeBatch(1).message());
  ASSERT_TRUE(batches->next());
  pushes.send(raw_message("{}"));
  EXPECT_THAT([&] { static_cast<void>(batches->next()); },
              ThrowsMessage<ProducerError>(Names(path(), 2, "outputs")));
}

TEST_F(ZmqBatchesTest, AMessageOfSeveralPartsIsAnError) {
  const auto batches = open();
  Pushes pushes(endpoint());
  pushes.send(MadeBatch(1).message(), ZMQ_SNDMORE);
  pushes.send(MadeBatch(1).message());
  EXPECT_THAT([&] { static_cast<void>(batches->next()); },
              ThrowsMessage<ProducerError>(Names(path(), 1)));
}

TEST_F(ZmqBatchesTest, TheReasonOfAnEndIsInTheError) {
  const auto batches = open();
  Pushes pushes(endpoint());
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
  const auto batches = open("", {.timeout = 1000ms, .max_message_bytes = 1000});
  Pushes pushes(endpoint());
  pushes.send(MadeBatch(1, /*side=*/64).message());
  EXPECT_THROW(static_cast<void>(batches->next()), Error);
}

TEST_F(ZmqBatchesTest, AnAddressThatCannotBeBoundIsAnErrorThatNamesIt) {
  // Port 1 of an address that is not one of this host.
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
