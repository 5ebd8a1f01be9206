#pragma once

#include <functional>

#include "framework/api/communicator.h"

namespace precast::test {

/// Runs `rank` in `world` threads, which act as ranks of one group, and returns when all have
/// returned. Offers sums only, and no other collective. Each thread does the backward passes that
/// it starts itself, also those of GPU tensors, where the ranks would otherwise wait for each other
/// in one thread of autograd's. @throws what the first thread threw.
void run_as_ranks(int world, const std::function<void(Communicator&)>& rank);

}  // namespace precast::test
