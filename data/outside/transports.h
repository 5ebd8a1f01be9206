#pragma once

#include <memory>
#include <string>

#include "data/outside/outside_batches.h"
#include "data/outside/zmq_address.h"

namespace precast::data {

/// Create the objects that receive batches from a ring and from ZMQ. @{
[[nodiscard]] std::unique_ptr<OutsideBatches> make_ring_batches(std::string name,
                                                                OutsideOptions options);
/// @throws DeviceError in a build without libzmq's header (no_zmq_batches.cpp).
[[nodiscard]] std::unique_ptr<OutsideBatches> make_zmq_batches(ZmqAddress address,
                                                               OutsideOptions options);
/// @}

}  // namespace precast::data
