#include "data/outside/zmq_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr int kLargestPort = 65535;
constexpr int kMostMessages = 1000;
/// The size of sun_path without the zero at its end.
constexpr std::size_t kLongestPath = 107;

[[noreturn]] void refuse_address(const std::string& text, std::string_view expected) {
  throw ConfigError(
      fmt::format("expected {} in zmq://HOST:PORT or zmq:///PATH, optionally followed by ?bind, "
                  "?hwm=N or ?bind&hwm=N, got '{}'",
                  expected, text));
}

/// Parses a number in [1, most]. Returns 0 for any other text.
int number_in(std::string_view digits, int most) {
  int number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  return error == std::errc() && stop == end && number <= most ? std::max(number, 0) : 0;
}

void read_option(std::string_view option, ZmqAddress& address) {
  constexpr std::string_view kMark = "hwm=";
  if (option == "bind") {
    address.bind = true;
  } else if (option.starts_with(kMark)) {
    address.high_water_mark = number_in(option.substr(kMark.size()), kMostMessages);
    if (address.high_water_mark == 0) refuse_address(address.text, "hwm of 1 to 1000");
  } else {
    refuse_address(address.text, "only the options bind and hwm");
  }
}

/// Reads `bind&hwm=8`.
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

/// Sets endpoint and is_ipv6. @param place the text between the scheme and the options.
void read_place(std::string_view place, ZmqAddress& address) {
  if (place.starts_with('/')) {
    if (place.size() > kLongestPath) refuse_address(address.text, "a path of at most 107 bytes");
    if (place.find('\0') != std::string_view::npos)
      refuse_address(address.text, "a path without zeros");
    address.endpoint = fmt::format("ipc://{}", place);
    return;
  }
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || number_in(place.substr(colon + 1), kLargestPort) == 0)
    refuse_address(address.text, "a port of 1 to 65535");
  const std::string_view host = place.substr(0, colon);
  if (!is_host(host)) refuse_address(address.text, "a host (IPv6 addresses in brackets)");
  if (host == "*" && !address.bind) refuse_address(address.text, "the option bind with the host *");
  address.endpoint = fmt::format("tcp://{}", place);
  address.is_ipv6 = host.find(':') != std::string_view::npos;
}

}  // namespace

ZmqAddress parse_zmq_address(const std::string& text) {
  ZmqAddress address{.text = text, .endpoint = {}};
  if (!text.starts_with(kZmqScheme)) refuse_address(text, "zmq://");
  const std::string_view rest = std::string_view(text).substr(kZmqScheme.size());
  const std::size_t mark = rest.find('?');
  if (mark != std::string_view::npos) read_options(rest.substr(mark + 1), address);
  read_place(rest.substr(0, mark), address);
  return address;
}

}  // namespace precast::data
