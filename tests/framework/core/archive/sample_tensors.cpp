#include "tests/framework/core/archive/sample_tensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "framework/core/archive/zip_file.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/bytes.h"
#include "tests/support/paths.h"

namespace precast::test {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

std::string line(std::string_view name, std::string_view dtype, std::span<const std::int64_t> shape,
                 std::string_view bytes) {
  return fmt::format("{} {} {} {}\n", name, dtype, shape_text(shape), bytes);
}

/// The result of `parse` for `file`, or nothing if it throws a CheckpointError. Parses a copy in a
/// heap block of exactly the file's size, so that the address sanitizer detects every read past the
/// end.
std::optional<std::string> outcome(
    const std::vector<std::byte>& file,
    const std::function<std::string(std::span<const std::byte>)>& parse) {
  const auto exact = std::make_unique<std::byte[]>(file.size());
  std::ranges::copy(file, exact.get());
  try {
    return parse({exact.get(), file.size()});
  } catch (const CheckpointError&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<TensorRecord> sample_tensors() {
  static const auto* const pattern = [] {
    auto* bytes = new std::vector<std::byte>(4096);
    for (std::size_t i = 0; i < bytes->size(); ++i) {
      (*bytes)[i] = static_cast<std::byte>((i * 167 + i / 256) & 0xFF);
    }
    return bytes;
  }();
  static const auto* const truth = new std::vector<std::byte>{std::byte{1}, std::byte{0}};
  std::vector<TensorRecord> records;
  std::size_t offset = 0;
  const auto add = [&](std::string name, DType dtype, std::vector<std::int64_t> shape) {
    const auto bytes =
        std::span<const std::byte>(*pattern).subspan(offset, byte_count(dtype, shape).value());
    offset += 8;
    records.push_back({std::move(name), dtype, std::move(shape), bytes});
  };
  add("layer1.0.conv1.weight", DType::f32, {4, 3, 3, 3});
  add("flags", DType::u8, {3});
  add("bn1.num_batches_tracked", DType::i64, {});
  add("double", DType::f64, {2, 1});
  add("half", DType::f16, {5});
  add("brain", DType::bf16, {2, 3});
  add("int", DType::i32, {1});
  add("short", DType::i16, {3});
  add("char", DType::i8, {7});
  add("empty", DType::f32, {0, 3});
  records.push_back({"n\xC3\xA4me \"quoted\"\n", DType::boolean, {2}, *truth});
  return records;
}

std::string dump(std::span<const TensorRecord> records) {
  std::string text;
  for (const TensorRecord& record : records) {
    text += line(record.name, dtype_info(record.dtype).name, record.shape, hex(record.bytes));
  }
  return text;
}

std::string golden_dump(const std::string& name) {
  return described(test::golden_dir() + "/torch/" + name + ".json");
}

std::string described(const std::filesystem::path& json) {
  std::ifstream file(json);
  std::string text;
  const nlohmann::json document = nlohmann::json::parse(file);
  for (const auto& tensor : document.at("tensors")) {
    text += line(tensor.at("name").get<std::string>(), tensor.at("dtype").get<std::string>(),
                 tensor.at("shape").get<std::vector<std::int64_t>>(),
                 tensor.at("bytes").get<std::string>());
  }
  return text;
}

std::vector<std::byte> golden_file(const std::string& name) {
  return read_file(test::golden_dir() + "/torch/" + name + ".pt");
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::golden_dir() + "/torch")) {
    if (entry.path().extension() == ".pt") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

void write_training_checkpoint(const std::filesystem::path& path,
                               const std::vector<std::string>& keys) {
  using namespace std::string_literals;
  std::string pickle = "\x80\x02}";
  ZipWriter zip(path);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    pickle += "U"s + static_cast<char>(keys[i].size()) + keys[i] +
              "}U\x01wctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\n" +
              "U\x01" + std::to_string(i) + "U\x03" + "cpuK\1tQK\0(K\1t(K\1t\x89"s +
              "ccollections\nOrderedDict\n)RtRss";
    const std::string number(sizeof(float), static_cast<char>('a' + i));
    zip.add(fmt::format("archive/data/{}", i), bytes_of(number));
  }
  pickle += ".";
  zip.add("archive/data.pkl", bytes_of(pickle));
  zip.finish();
}

void expect_refused_at_every_cut(
    std::span<const std::byte> file,
    const std::function<std::string(std::span<const std::byte>)>& parse) {
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::vector<std::byte> cut(file.begin(),
                                     file.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_FALSE(outcome(cut, parse).has_value()) << "cut at byte " << size;
  }
}

void expect_refused_or_intact(std::span<const std::byte> file, const std::string& intact,
                              const std::function<std::string(std::span<const std::byte>)>& parse) {
  std::vector<std::byte> damaged(file.begin(), file.end());
  std::size_t refused = 0;
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    const std::byte good = damaged[i];
    for (const int change : {0x01, 0x02, 0x04, 0x10, 0x20, 0x80, 0xFF, 0x100, 0x101}) {
      damaged[i] = change < 0x100 ? good ^ static_cast<std::byte>(change)
                                  : static_cast<std::byte>(change == 0x100 ? 0x00 : 0x7F);
      const auto result = outcome(damaged, parse);
      if (!result) ++refused;
      if (result && !intact.empty()) {
        ASSERT_EQ(*result, intact) << "byte " << i << " change " << change;
      }
    }
    damaged[i] = good;
  }
  EXPECT_GT(refused, 0U) << "no damaged copy was refused";
}

}  // namespace precast::test
