#include "tools/app/ring_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "data/ring/consumer.h"
#include "framework/core/error.h"
#include "framework/core/log.h"

namespace precast::tools {
namespace {

constexpr std::string_view kRingScheme = "ring://";
constexpr std::chrono::seconds kMaxStartupTime{10};

/// The files that a ring's description lists: none if the description is empty or a JSON object
/// without `datasets`. @return nullopt if the description is invalid.
std::optional<std::vector<std::string>> files_of(const std::string& description) {
  std::vector<std::string> files;
  if (description.empty()) return files;
  const auto json = nlohmann::ordered_json::parse(description, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  if (!json.contains("datasets")) return files;
  if (!json.at("datasets").is_array()) return std::nullopt;
  for (const auto& file : json.at("datasets")) {
    if (!file.is_string()) return std::nullopt;
    files.push_back(file);
  }
  return files;
}

/// Reads the ring's description. Waits for a producer that was started at the same time as this
/// process.
std::string description_of(const std::string& ring) {
  const auto until = std::chrono::steady_clock::now() + kMaxStartupTime;
  for (bool logged = false;; logged = true) {
    try {
      return data::read_ring_description(ring);
    } catch (const IoError&) {
      if (std::chrono::steady_clock::now() >= until) throw;
    }
    if (!logged) log_info("=> waiting for ring '{}'", ring);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace

RingDataset find_ring_dataset(const std::vector<std::string>& files, const Origin& origin) {
  const auto named = std::ranges::find_if(
      files, [](const std::string& file) { return file.starts_with(kRingScheme); });
  if (named == files.end()) return {};
  const std::string location = fmt::format("{}: data.train_dataset", origin.text());
  if (files.size() > 1)
    throw ConfigError(fmt::format("{}: expected files, or a single ring, got {} and other datasets",
                                  location, *named));
  RingDataset ring{.name = named->substr(kRingScheme.size()), .description = {}, .files = {}};
  try {
    ring.description = description_of(ring.name);
  } catch (const IoError& error) {
    throw IoError(fmt::format("{}: {}", location, error.what()));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", location, error.what()));
  }
  auto described = files_of(ring.description);
  if (!described)
    throw ConfigError(
        fmt::format("{}: expected a ring whose description is empty or a JSON object in which "
                    "`datasets`, if present, is a list of files, got {} with another description",
                    location, *named));
  ring.files = std::move(*described);
  return ring;
}

}  // namespace precast::tools
