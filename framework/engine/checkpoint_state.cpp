#include "framework/engine/checkpoint_state.h"

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "framework/core/archive/checkpoint_files.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace precast::engine {

using nlohmann::ordered_json;

ordered_json read_state(const std::filesystem::path& checkpoint) {
  const std::filesystem::path path = checkpoint / kStateFile;
  const std::vector<std::byte> bytes = read_file(path, kMaxStateBytes);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  ordered_json state =
      ordered_json::parse(text, text + bytes.size(), nullptr, /*allow_exceptions=*/false);
  if (!state.is_object() || state.value("format", ordered_json()) != ordered_json(kStateFormat)) {
    throw CheckpointError(fmt::format(
        "{}: expected a JSON object with format {}, got a damaged file or another format",
        path.string(), kStateFormat));
  }
  return state;
}

std::map<std::string, std::int64_t> counters_of(const ordered_json& state,
                                                const std::filesystem::path& checkpoint,
                                                const std::string& part) {
  try {
    return state.at("counters").at(part).get<std::map<std::string, std::int64_t>>();
  } catch (const ordered_json::exception& error) {
    throw CheckpointError(fmt::format("{}: expected the counters of {}, got: {}",
                                      (checkpoint / kStateFile).string(), part, error.what()));
  }
}

}  // namespace precast::engine
