#include "tests/fuzz/targets.h"

#include <cstdint>

#include "framework/core/error.h"

namespace precast::fuzz {
namespace {

constexpr std::size_t kMessages = 1024;
/// libFuzzer treats each byte of the section __libfuzzer_extra_counters as the counter of a branch.
[[gnu::section("__libfuzzer_extra_counters")]] std::uint8_t message_counters[kMessages];

/// Prevents the compiler from removing reads whose results are not used.
volatile unsigned touched;

}  // namespace

const std::map<std::string, std::function<void(Input)>, std::less<>>& targets() {
  static const std::map<std::string, std::function<void(Input)>, std::less<>> all = {
      {"safetensors", safetensors},
      {"pickle", pickle},
      {"torch_zip", torch_zip},
      {"npy", npy},
      {"manifest", manifest},
      {"recipe", recipe},
      {"ring", ring},
      {"outside_message", outside_message},
      {"beton", beton},
      {"jpeg", jpeg},
      {"jpeg_lanes", jpeg_lanes},
      {"jpeg_sidecar", jpeg_sidecar},
      {"sums", sums},
      {"delimited", delimited},
      {"source", source},
      {"tar", tar},
      {"image_file", image_file},
      {"filter", filter},
      {"sample_list", sample_list},
      {"weights_spec", weights_spec},
  };
  return all;
}

void run(const std::function<void(Input)>& target, Input input) {
  try {
    target(input);
  } catch (const Error&) {
    // The parser rejected the input with an exception that it may throw.
  }
}

void reached(std::string_view message) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char letter : message) {
    if (letter >= '0' && letter <= '9') continue;
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  }
  message_counters[hash % kMessages] = 1;
}

void touch(Input bytes) {
  unsigned sum = 0;
  for (const std::byte byte : bytes) sum += std::to_integer<unsigned>(byte);
  touched = sum;
}

}  // namespace precast::fuzz
