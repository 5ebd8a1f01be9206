#pragma once

#include <functional>

#include "framework/api/communicator.h"

namespace precast::test {

/// Runs `rank` in `world` threads, which act as ranks of one group, and returns when all have
/// returned. Supports only all_reduce_sum() and all_gather(). Each thread runs the backward passes
/// that it starts, including those of GPU tensors; otherwise the ranks would wait for each other in
/// autograd's one thread per GPU. @throws the first exception of a thread.
void run_as_ranks(int world, const std::function<void(Communicator&)>& rank);

}  // namespace precast::test
