#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace precast::test {

/// The uncompressed bytes of tests/golden/beton/NAME.beton.gz, a file that FFCV wrote.
std::vector<std::byte> golden_beton(const std::string& name);
/// Writes the uncompressed NAME.beton to `folder`. @return its path.
std::string put_golden_beton(const std::filesystem::path& folder, const std::string& name);
/// The values that FFCV reads from NAME.beton (tests/golden/beton/expected.json).
nlohmann::json golden_beton_facts(const std::string& name);

void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes);
std::vector<std::byte> read_bytes(const std::filesystem::path& path);
std::uint32_t crc32_of(std::span<const std::byte> bytes);

}  // namespace precast::test
