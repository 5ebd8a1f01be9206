#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "data/outside/message.h"
#include "data/outside/producer_error.h"
#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

using namespace precast::data;

void parse(Input message) {
  const OutsideMessage parsed = parse_outside_message(message);
  if (parsed.end) touch(std::as_bytes(std::span(*parsed.end)));
  std::size_t bytes = 0;
  for (const HostTensor& field : parsed.fields) {
    const Input data(field.data, field.bytes());
    require(data.empty() || (data.data() >= message.data() &&
                             data.data() + data.size() <= message.data() + message.size()),
            "outputs are inside the message");
    require(field.shape.at(0) == parsed.fields[0].shape[0], "outputs have a row for each sample");
    touch(data);
    bytes += data.size();
  }
  require(bytes <= message.size(), "the outputs fit in the message");
  if (parsed.end) return;
  const OutsideMessage again = parse_outside_message(make_outside_message(parsed));
  require(again.position == parsed.position && again.fields.size() == parsed.fields.size(),
          "a message survives a round trip");
}

/// A message with the input's first line as its header, and the rest as its data.
std::vector<std::byte> with_header(Input input) {
  const auto line = std::ranges::find(input, std::byte{'\n'});
  const auto header_bytes = static_cast<std::uint32_t>(line - input.begin());
  std::vector<std::byte> message(16);
  const std::uint32_t numbers[] = {1, header_bytes};
  std::memcpy(message.data(), "PCSTBTCH", 8);
  std::memcpy(message.data() + 8, numbers, sizeof numbers);
  message.insert(message.end(), input.begin(), line);
  if (line != input.end()) message.insert(message.end(), line + 1, input.end());
  return message;
}

}  // namespace

/// Parses the input as a message, and also as a header with data: in a message, most changes of the
/// header make its stated size wrong.
void outside_message(Input input) {
  try {
    parse(input);
  } catch (const ProducerError&) {
    reached("no message");
  }
  parse(with_header(input));
}

}  // namespace precast::fuzz
