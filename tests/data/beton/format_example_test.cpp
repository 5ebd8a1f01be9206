// Checks that the worked example in data/FORMAT.md has the bytes that the writer writes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>

#include "data/beton/reader.h"
#include "data/write/writer.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

template <typename T>
void append(std::vector<std::byte>& to, T number) {
  to.resize(to.size() + sizeof number);
  store(to.data() + to.size() - sizeof number, number);
}

EncodedValue raw_image(std::uint16_t width, std::uint16_t height,
                       const std::vector<std::uint8_t>& pixels) {
  EncodedValue value;
  append(value.metadata, static_cast<std::uint8_t>(ImageMode::raw));
  append(value.metadata, width);
  append(value.metadata, height);
  append(value.metadata, std::uint64_t{0});
  for (const std::uint8_t part : pixels) value.blob.push_back(static_cast<std::byte>(part));
  return value;
}

EncodedValue number(std::int64_t label) {
  EncodedValue value;
  append(value.metadata, label);
  return value;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes)
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<int>(byte));
  return text;
}

TEST(FormatDocument, ItsExampleIsWhatTheWriterWrites) {
  const test::TemporaryFolder folder;
  BetonWriter writer(folder / "example.beton",
                     {{"image", FieldType::image}, {"label", FieldType::integer}}, 2,
                     {.page_bytes = kMinPageBytes});
  writer.add(std::vector<EncodedValue>{raw_image(2, 1, {255, 0, 0, 0, 255, 0}), number(7)});
  writer.add(std::vector<EncodedValue>{raw_image(1, 1, {0, 0, 255}), number(-1)});
  writer.finish();
  const std::vector<std::byte> file = test::read_bytes(folder / "example.beton");

  std::ifstream document(test::source_dir() + "/data/FORMAT.md");
  const std::regex row(R"(\| (\d+) \| `([0-9a-f]{2}(?: [0-9a-f]{2})*)` \|.*)");
  int rows = 0;
  std::smatch parts;
  for (std::string line; std::getline(document, line);) {
    if (!std::regex_match(line, parts, row)) continue;
    const std::size_t at = std::stoull(parts[1]);
    const std::size_t size = (parts[2].str().size() + 1) / 3;
    ASSERT_LE(at + size, file.size()) << line;
    EXPECT_EQ(hex(std::span(file).subspan(at, size)), parts[2].str()) << "at " << at;
    ++rows;
  }
  EXPECT_GE(rows, 15);
  EXPECT_NE(file.size(), 0U);
}

}  // namespace
}  // namespace precast::data
