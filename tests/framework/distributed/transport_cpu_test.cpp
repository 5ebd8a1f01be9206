#include "tests/framework/distributed/transport_test.h"

namespace precast::test {
namespace {

const Backend kGloo{.name = "gloo"};
constexpr auto kName = [](const auto& test) { return test.param.name; };

INSTANTIATE_TEST_SUITE_P(Cpu, TransportTest, ::testing::Values(kGloo), kName);
INSTANTIATE_TEST_SUITE_P(Cpu, SharedDeviceTest, ::testing::Values(kGloo), kName);

}  // namespace
}  // namespace precast::test
