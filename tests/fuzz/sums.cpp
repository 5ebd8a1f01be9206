#include "data/beton/sums.h"

#include "data/beton/file_info.h"
#include "data/beton/format.h"
#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

using namespace precast::data;

/// Encodes the input as hashes and as a text, as a writer would, and expects to read back the same.
void round_trip(Input input) {
  if (input.size() < 2) return;
  SumsTrailer trailer;
  trailer.samples = 1 + std::to_integer<std::uint64_t>(input[0]) % 16;
  trailer.value_fields = std::to_integer<std::uint64_t>(input[1]) % 4;
  std::vector<std::uint64_t> values(trailer.samples * trailer.value_fields);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = hash_of(input.first(i % input.size()));
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  const auto block = encode_sums(trailer, values, text);
  const FileSums sums(block, trailer.samples, trailer.value_fields, "round trip");
  require(sums.info() == text, "the text survives a round trip");
  for (std::size_t i = 0; i < values.size(); ++i)
    require(sums.value(i / trailer.value_fields, i % trailer.value_fields) == values[i],
            "hashes survive a round trip");
}

}  // namespace

void sums(Input input) {
  round_trip(input);
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  const FileInfo info = parse_file_info(text);
  const FileInfo again = parse_file_info(file_info_text(info));
  require(again.classes.size() == info.classes.size(),
          "the number of class lists survives a round trip");
  if (input.size() < kSumsTrailerBytes) return;
  const std::uint64_t bytes = sums_bytes_of(input.last(kSumsTrailerBytes));
  if (bytes == 0 || bytes > input.size()) return;
  const auto samples = load<std::uint64_t>(input.data());
  const FileSums sums(input.last(bytes), samples % 64, samples / 64 % 8, "input");
  touch(std::as_bytes(std::span(sums.info())));
}

}  // namespace precast::fuzz
