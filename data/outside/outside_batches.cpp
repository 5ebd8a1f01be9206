#include "data/outside/outside_batches.h"

#include <fmt/format.h>

#include <utility>

#include "data/outside/transports.h"
#include "data/outside/zmq_address.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::string_view kRingScheme = "ring://";

}  // namespace

OutsideBatches::~OutsideBatches() = default;

bool is_producer_address(std::string_view address) {
  return address.starts_with(kRingScheme) || address.starts_with(kZmqScheme);
}

void check_producer_address(const std::string& address) {
  if (address.starts_with(kZmqScheme)) static_cast<void>(parse_zmq_address(address));
}

std::unique_ptr<OutsideBatches> open_outside_batches(const std::string& address,
                                                     OutsideOptions options) {
  if (address.starts_with(kRingScheme))
    return make_ring_batches(address.substr(kRingScheme.size()), std::move(options));
  if (address.starts_with(kZmqScheme))
    return make_zmq_batches(parse_zmq_address(address), std::move(options));
  throw ConfigError(
      fmt::format("expected ring://NAME, zmq://HOST:PORT or zmq:///PATH, got '{}'", address));
}

}  // namespace precast::data
