#pragma once

#include <functional>

#include "framework/api/communicator.h"

namespace precast::test {

/// Runs `rank` in `world` threads that are each other's ranks, and returns when all have. Sums
/// only: no other collective is offered. Each thread does the backward passes that it starts
/// itself, also those of GPU tensors, where the ranks would otherwise wait for each other in one
/// thread of autograd's. @throws what the first thread threw.
void run_as_ranks(int world, const std::function<void(Communicator&)>& rank);

}  // namespace precast::test
