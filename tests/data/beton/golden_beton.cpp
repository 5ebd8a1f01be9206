#include "tests/data/beton/golden_beton.h"

#include <zlib.h>

#include <fstream>
#include <stdexcept>

#include "tests/support/paths.h"

namespace precast::test {
std::vector<std::byte> golden_beton(const std::string& name) {
  const std::string path = golden_dir() + "/beton/" + name + ".beton.gz";
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  std::vector<std::byte> bytes;
  std::size_t size = 0;
  int got = 1;
  while (got > 0) {
    bytes.resize(size + (1 << 20));
    got = gzread(file, bytes.data() + size, 1 << 20);
    size += static_cast<std::size_t>(std::max(got, 0));
  }
  gzclose(file);
  if (got < 0) throw std::runtime_error("cannot read " + path);
  bytes.resize(size);
  return bytes;
}

std::string put_golden_beton(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path path = folder / (name + ".beton");
  write_bytes(path, golden_beton(name));
  return path.string();
}

nlohmann::json golden_beton_facts(const std::string& name) {
  std::ifstream file(golden_dir() + "/beton/expected.json");
  return nlohmann::json::parse(file).at(name);
}

void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path.string());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

std::uint32_t crc32_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace precast::test
