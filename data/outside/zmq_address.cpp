#include "data/outside/zmq_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "framework/core/error.h"
#include "framework/core/parse_number.h"

namespace precast::data {
namespace {

constexpr int kMaxPort = 65535;
constexpr int kMaxMessages = 1000;
/// The size of sun_path without the zero at its end.
constexpr std::size_t kMaxPathBytes = 107;

[[noreturn]] void refuse_address(const std::string& text, std::string_view expected) {
  throw ConfigError(
      fmt::format("expected {} in zmq://HOST:PORT or zmq:///PATH, optionally followed by ?bind, "
                  "?hwm=N or ?bind&hwm=N, got '{}'",
                  expected, text));
}

/// Parses a number in [1, max_value]. Returns 0 for any other string.
int positive_number(std::string_view digits, int max_value) {
  const int number = parse_number<int>(digits).value_or(0);
  return number <= max_value ? std::max(number, 0) : 0;
}

void read_option(std::string_view option, ZmqAddress& address) {
  constexpr std::string_view kMark = "hwm=";
  if (option == "bind") {
    address.bind = true;
  } else if (option.starts_with(kMark)) {
    address.high_water_mark = positive_number(option.substr(kMark.size()), kMaxMessages);
    if (address.high_water_mark == 0) refuse_address(address.text, "hwm of 1 to 1000");
  } else {
    refuse_address(address.text, "only the options bind and hwm");
  }
}

/// Reads options such as `bind&hwm=8`.
void read_options(std::string_view options, ZmqAddress& address) {
  std::set<std::string_view> given;
  while (true) {
    const std::size_t end = options.find('&');
    const std::string_view option = options.substr(0, end);
    if (!given.insert(option.substr(0, option.find('='))).second)
      refuse_address(address.text, "each option once");
    read_option(option, address);
    if (end == std::string_view::npos) return;
    options.remove_prefix(end + 1);
  }
}

/// Whether `host` has only characters of a name, an IPv4 address, `*`, or an IPv6 address in
/// brackets.
bool is_host(std::string_view host) {
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  const std::string_view others = bracketed ? ".:%-_" : ".-_%*";
  return !host.empty() && std::ranges::all_of(host, [&](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || others.find(c) != std::string_view::npos;
  });
}

/// Sets endpoint and is_ipv6. @param location the text between the scheme and the options.
void parse_location(std::string_view location, ZmqAddress& address) {
  if (location.starts_with('/')) {
    if (location.size() > kMaxPathBytes)
      refuse_address(address.text, "a path of at most 107 bytes");
    if (location.find('\0') != std::string_view::npos)
      refuse_address(address.text, "a path without zero bytes");
    address.endpoint = fmt::format("ipc://{}", location);
    return;
  }
  const std::size_t colon = location.rfind(':');
  if (colon == std::string_view::npos || positive_number(location.substr(colon + 1), kMaxPort) == 0)
    refuse_address(address.text, "a port of 1 to 65535");
  const std::string_view host = location.substr(0, colon);
  if (!is_host(host)) refuse_address(address.text, "a host (IPv6 addresses in brackets)");
  if (host == "*" && !address.bind) refuse_address(address.text, "the option bind with the host *");
  address.endpoint = fmt::format("tcp://{}", location);
  address.is_ipv6 = host.find(':') != std::string_view::npos;
}

}  // namespace

ZmqAddress parse_zmq_address(const std::string& text) {
  ZmqAddress address{.text = text, .endpoint = {}};
  if (!text.starts_with(kZmqScheme)) refuse_address(text, "zmq://");
  const std::string_view rest = std::string_view(text).substr(kZmqScheme.size());
  const std::size_t mark = rest.find('?');
  if (mark != std::string_view::npos) read_options(rest.substr(mark + 1), address);
  parse_location(rest.substr(0, mark), address);
  return address;
}

}  // namespace precast::data
