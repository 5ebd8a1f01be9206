#include "data/order/sample_list.h"

#include <string>
#include <string_view>

#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {

void sample_list(Input input) {
  constexpr std::uint64_t kSamples = 4096;
  const auto parse = [](std::string_view text) {
    return data::parse_sample_list(text, "list", kSamples, "samples");
  };
  const data::SampleSet chosen = parse({reinterpret_cast<const char*>(input.data()), input.size()});
  std::string text;
  for (std::uint64_t i = 0; i < chosen.size(); ++i) {
    require(chosen[i] < kSamples && (i == 0 || chosen[i - 1] < chosen[i]),
            "samples are in the dataset, ascend and occur once");
    text += std::to_string(chosen[i]) + "\n";
  }
  const data::SampleSet again = parse(text);
  require(again.size() == chosen.size(), "a list of the samples gives the same samples");
  for (std::uint64_t i = 0; i < chosen.size(); ++i)
    require(again[i] == chosen[i], "a list of the samples gives the same samples");
}

}  // namespace precast::fuzz
