#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

using data::FieldType;

/// Reads one field of one sample and returns where its bytes are in the file.
Input read(const data::BetonReader& reader, std::uint64_t sample, std::size_t field) {
  switch (reader.fields()[field].type) {
    case FieldType::integer:
      static_cast<void>(reader.integer(sample, field));
      return {};
    case FieldType::floating:
      static_cast<void>(reader.floating(sample, field));
      return {};
    case FieldType::image: {
      const data::ImageRecord image = reader.image(sample, field);
      require(image.width > 0 && image.height > 0, "an image has pixels");
      const auto pixels =
          static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
      require(image.mode == data::ImageMode::jpg || image.bytes.size() == 3 * pixels,
              "a raw image has the bytes of its pixels");
      return image.bytes;
    }
    default:
      return reader.blob(sample, field);
  }
}

/// Checks the checksum of a value. A changed value may be rejected; the next value is read anyway.
void check(const data::BetonReader& reader, std::uint64_t sample, std::size_t field, Input bytes) {
  try {
    reader.check_value(sample, field, bytes);
  } catch (const DataError&) {
    return;
  }
}

}  // namespace

void beton(Input input) {
  // FFCV's smallest page is larger than a useful input of a fuzzer.
  const data::BetonReader reader(input, "input", {.min_page_bytes = 64});
  const bool hashed = !reader.sums().empty();
  std::size_t read_bytes = 0;
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    for (std::size_t field = 0; field < reader.fields().size(); ++field) {
      const Input bytes = read(reader, sample, field);
      touch(bytes);
      if (hashed && !bytes.empty()) check(reader, sample, field, bytes);
      read_bytes += bytes.size();
    }
  }
  // Two samples must not share bytes. Fields of one sample may.
  require(read_bytes <= input.size() * reader.fields().size(), "the values fit in the file");
}

}  // namespace precast::fuzz
