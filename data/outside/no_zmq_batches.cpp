#include <fmt/format.h>

#include "data/outside/transports.h"
#include "framework/core/error.h"

namespace precast::data {

std::unique_ptr<OutsideBatches> make_zmq_batches(ZmqAddress address, OutsideOptions /*options*/) {
  throw DeviceError(
      fmt::format("{}: expected a build with ZMQ, got a build without ZMQ. Install the package "
                  "libzmq3-dev and build again",
                  address.text));
}

}  // namespace precast::data
