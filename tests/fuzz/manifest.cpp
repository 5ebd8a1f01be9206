#include "framework/core/archive/manifest.h"

#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {

void manifest(Input input) {
  const Manifest read = parse_manifest(input, "input");
  const std::string text = manifest_text(read);
  try {
    require(parse_manifest(std::as_bytes(std::span(text)), "round trip") == read,
            "a manifest survives a round trip");
  } catch (const Error& error) {
    require(false, error.what());
  }
}

}  // namespace precast::fuzz
