#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "framework/distributed/process_group.h"

namespace precast::test {

/// A transport that carries tensors between the ranks of a test. The tests are in
/// transport_test.cpp; each test program lists the transports that it tests.
struct Carrier {
  std::string name;
  at::Device device = at::kCPU;
  distributed::Transport transport = distributed::Transport::by_device;
  /// Prints the name of the transport in lists of tests.
  friend void PrintTo(const Carrier& carrier, std::ostream* out) { *out << carrier.name; }
};

class TransportTest : public ::testing::TestWithParam<Carrier> {
 protected:
  void SetUp() override;
};

/// Two ranks on one device. Not for NCCL, which allows one rank per GPU.
class SharedDeviceTest : public TransportTest {};

}  // namespace precast::test
