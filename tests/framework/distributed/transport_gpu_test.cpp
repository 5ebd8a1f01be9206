// Tests the transports on one GPU: NCCL with one rank, Gloo with one and two ranks.
#include "tests/framework/distributed/transport_test.h"

namespace precast::test {
namespace {

const at::Device kGpu(at::kCUDA, 0);

INSTANTIATE_TEST_SUITE_P(
    Gpu, TransportTest,
    ::testing::Values(
        Carrier{.name = "nccl", .device = kGpu, .ranks_may_share_a_device = false},
        Carrier{.name = "gloo", .device = kGpu, .transport = distributed::Transport::gloo}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace precast::test
