// Changes a manifest and, in 7 of 8 cases, corrects its digest. Random changes of bytes would
// almost never give a correct digest.
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "framework/core/archive/manifest.h"
#include "framework/core/error.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  const std::size_t changed = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 == 0) return changed;
  const std::span<std::uint8_t> text(data, changed);
  try {
    static_cast<void>(precast::parse_manifest(std::as_bytes(text), "input"));
  } catch (const precast::CheckpointError& error) {
    // The message for a wrong digest contains the expected and the actual digest.
    constexpr std::string_view kBefore = "input: xxh3_64: expected ", kBetween = ", got ";
    constexpr std::size_t kDigits = 16;
    const std::string_view message = error.what();
    const std::size_t found = kBefore.size() + kDigits + kBetween.size();
    if (message.starts_with(kBefore) && message.size() >= found + kDigits) {
      const std::string_view whole(reinterpret_cast<const char*>(data), changed);
      const std::size_t at = whole.rfind(message.substr(found, kDigits));
      if (at != std::string_view::npos) {
        std::memcpy(data + at, message.data() + kBefore.size(), kDigits);
      }
    }
  }
  return changed;
}
