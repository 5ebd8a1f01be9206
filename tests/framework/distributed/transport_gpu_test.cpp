// Tests the transports on one GPU: NCCL with one rank, Gloo with one and two ranks.
#include "tests/framework/distributed/transport_test.h"

namespace precast::test {
namespace {

const at::Device kGpu(at::kCUDA, 0);

const Backend kGloo{.name = "gloo", .device = kGpu, .transport = distributed::Transport::gloo};
constexpr auto kName = [](const auto& test) { return test.param.name; };

INSTANTIATE_TEST_SUITE_P(Gpu, TransportTest,
                         ::testing::Values(Backend{.name = "nccl", .device = kGpu}, kGloo), kName);
INSTANTIATE_TEST_SUITE_P(Gpu, SharedDeviceTest, ::testing::Values(kGloo), kName);

}  // namespace
}  // namespace precast::test
