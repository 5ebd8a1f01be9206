#include "data/outside/zmq_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"

namespace precast::data {
namespace {

using test::Names;
using ::testing::ThrowsMessage;

TEST(ZmqAddressTest, AHostConnectsUnlessBindIsGiven) {
  const ZmqAddress address = parse_zmq_address("zmq://localhost:5555");
  EXPECT_EQ(address.endpoint, "tcp://localhost:5555");
  EXPECT_FALSE(address.bind);
  EXPECT_EQ(address.high_water_mark, 4);
  const ZmqAddress bound = parse_zmq_address("zmq://*:1?bind&hwm=1000");
  EXPECT_EQ(bound.endpoint, "tcp://*:1");
  EXPECT_TRUE(bound.bind);
  EXPECT_EQ(bound.high_water_mark, 1000);
  EXPECT_FALSE(bound.is_ipv6);
  const ZmqAddress ipv6 = parse_zmq_address("zmq://[::1]:65535");
  EXPECT_EQ(ipv6.endpoint, "tcp://[::1]:65535");
  EXPECT_TRUE(ipv6.is_ipv6);
  EXPECT_TRUE(parse_zmq_address("zmq://[fe80::1%eth0]:1?hwm=2&bind").bind);
}

TEST(ZmqAddressTest, APathIsASocketOfThisHost) {
  EXPECT_EQ(parse_zmq_address("zmq:///tmp/a b?hwm=2").endpoint, "ipc:///tmp/a b");
}

TEST(ZmqAddressTest, OtherAddressesAreErrorsThatNameThem) {
  for (const std::string text : {"zmq://",
                                 "zmq://localhost",
                                 "zmq://localhost:",
                                 "zmq://localhost:0",
                                 "zmq://localhost:65536",
                                 "zmq://localhost:1a",
                                 "zmq://:1",
                                 "zmq://*:1",
                                 "zmq://a b:1",
                                 "zmq://a/b:1",
                                 "zmq://a:1?",
                                 "zmq://a:1?hwm=0",
                                 "zmq://a:1?hwm=1001",
                                 "zmq://a:1?hwm=",
                                 "zmq://a:1?hwm=-1",
                                 "zmq://a:1?connect",
                                 "zmq://a:1?bind&",
                                 "zmq://a:1?&bind",
                                 "zmq://a:1?bind&bind",
                                 "zmq://a:1?hwm=2&bind&hwm=2",
                                 "zmq://::1:5555",
                                 "zmq://a:b:1",
                                 "zmq://[]:1",
                                 "zmq://[:1",
                                 "zmq://[::1:1",
                                 "zmq://a[b]:1",
                                 "zmq://[*]:1",
                                 "tcp://a:1"}) {
    EXPECT_THAT([&] { static_cast<void>(parse_zmq_address(text)); },
                ThrowsMessage<ConfigError>(::testing::HasSubstr("'" + text + "'")))
        << text;
  }
  EXPECT_THROW(static_cast<void>(parse_zmq_address("zmq:///" + std::string(107, 'p'))),
               ConfigError);
}

}  // namespace
}  // namespace precast::data
