// The entry point that libFuzzer calls, for the target that the build names.
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  precast::fuzz::run(precast::fuzz::PRECAST_FUZZ_TARGET, std::as_bytes(std::span(data, size)));
  return 0;
}
