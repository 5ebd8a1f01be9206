#include "framework/core/archive/weights_spec.h"

#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {

void weights_spec(Input input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  const WeightsSpec read = parse_weights_spec(text, "input");
  try {
    require(parse_weights_spec(weights_spec_text(read), "round trip") == read,
            "a spec survives a round trip");
  } catch (const Error& error) {
    require(false, error.what());
  }
}

}  // namespace precast::fuzz
