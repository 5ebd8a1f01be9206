#pragma once

#include <string>
#include <string_view>

#include "framework/core/export.h"

namespace precast::data {

inline constexpr std::string_view kZmqScheme = "zmq://";

/// The address that ZMQ messages come from: zmq://HOST:PORT or zmq:///PATH, then `?` and options
/// joined with `&`: bind, hwm=N.
struct ZmqAddress {
  /// The address as it was given, for messages.
  std::string text;
  /// The address in libzmq's form: tcp://HOST:PORT or ipc:///PATH.
  std::string endpoint;
  /// Whether HOST is an IPv6 address, such as [::1].
  bool is_ipv6 = false;
  /// Whether this process binds the endpoint and producers connect to it; else the other way round.
  bool bind = false;
  /// ZMQ_RCVHWM: messages of one producer that wait on this side, 1 to 1000.
  int high_water_mark = 4;
};

/// @throws ConfigError naming what is wrong.
[[nodiscard]] PRECAST_API ZmqAddress parse_zmq_address(const std::string& text);

}  // namespace precast::data
