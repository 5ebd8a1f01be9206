#pragma once

#include <chrono>
#include <exception>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "framework/core/error.h"
#include "framework/distributed/process_group.h"

namespace precast::distributed {

// Only the sources of this folder include this header, because c10d's interfaces change between
// releases.

/// Connects to the store; with `serve`, also serves it. @throws DeviceError naming host and port
[[nodiscard]] c10::intrusive_ptr<c10d::Store> open_store(const GroupOptions& options, bool serve,
                                                         std::chrono::milliseconds timeout);

/// Opens the store and waits until all ranks have connected; rank 0 logs from time to time which
/// ranks are missing. With `options.store_is_reused`, first appends rank 0's number to
/// `options.prefix`.
/// @return the store; its keys begin with `options.prefix`
/// @throws the errors of ProcessGroup's constructor, except those of NCCL
[[nodiscard]] c10::intrusive_ptr<c10d::Store> rendezvous(GroupOptions& options);

/// The error of ranks that cannot connect to each other.
[[nodiscard]] DeviceError connection_error(const GroupOptions& options,
                                           const std::exception& cause);

}  // namespace precast::distributed
