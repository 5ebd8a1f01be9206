#pragma once

#include <string>
#include <string_view>

#include "framework/core/export.h"

namespace precast::data {

inline constexpr std::string_view kZmqScheme = "zmq://";

/// The address from which ZMQ messages come: zmq://HOST:PORT or zmq:///PATH, optionally followed by
/// `?` and options, joined with `&`: bind, hwm=N.
struct ZmqAddress {
  /// The address as it was given, for messages.
  std::string text;
  /// The address in libzmq's form: tcp://HOST:PORT or ipc:///PATH.
  std::string endpoint;
  /// Whether HOST is an IPv6 address, such as [::1].
  bool is_ipv6 = false;
  /// true: this process binds the endpoint, and producers connect to it; false: a producer binds
  /// the endpoint, and this process connects to it.
  bool bind = false;
  /// ZMQ_RCVHWM: the maximum number of messages from each producer that wait in this process, 1 to
  /// 1000.
  int high_water_mark = 4;
};

/// @throws ConfigError stating what was expected.
[[nodiscard]] PRECAST_API ZmqAddress parse_zmq_address(const std::string& text);

}  // namespace precast::data
