#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "framework/distributed/process_group.h"

namespace precast::test {

/// A transport that carries tensors between the ranks of a test. The tests are in
/// transport_test.cpp; each test program lists the transports that it tests.
struct Backend {
  std::string name;
  at::Device device = at::kCPU;
  distributed::Transport transport = distributed::Transport::by_device;
  /// Prints the name of the transport in lists of tests.
  friend void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }
};

class TransportTest : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override;
};

/// Two ranks on one device. Not for NCCL, which allows one rank per GPU.
class SharedDeviceTest : public TransportTest {};

}  // namespace precast::test
