#include "tests/framework/distributed/transport_test.h"

namespace precast::test {

INSTANTIATE_TEST_SUITE_P(Cpu, TransportTest, ::testing::Values(Carrier{.name = "gloo"}),
                         [](const auto& test) { return test.param.name; });

}  // namespace precast::test
