#include "framework/core/archive/weights_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "framework/core/utf8.h"

namespace precast {
namespace {

using nlohmann::json;

constexpr std::uint64_t kSpecVersion = 1;
constexpr std::size_t kMaxShownBytes = 100;
constexpr std::int64_t kMaxClasses = 1'000'000'000;
constexpr std::int64_t kMaxImagePx = 1'000'000;
constexpr std::int64_t kMaxChannels = 1'000'000;

/// Receives JSON as a stream of events and stores each value in its member. Parsing stops at the
/// first value that does not belong at its position.
class SpecReader {
 public:
  WeightsSpec spec;
  std::optional<std::uint64_t> version;
  std::string problem;

  bool null() { return fail("null"); }
  bool binary(json::binary_t& /*value*/) { return fail("binary data"); }
  bool boolean(bool value) {
    if (depth_ != 1 || field_ != "blurpool") return fail("true or false");
    spec.blurpool = value;
    return true;
  }
  bool number_integer(std::int64_t value) { return real(static_cast<double>(value)); }
  bool number_float(double value, const std::string& /*text*/) { return real(value); }
  bool number_unsigned(std::uint64_t value) {
    if (depth_ == 1 && field_ == "version") {
      version = value;
      return true;
    }
    if (depth_ == 1 && field_ == "num_classes") return set_integer(spec.num_classes, value);
    if (depth_ == 1 && field_ == "in_channels") return set_integer(spec.in_channels, value);
    if (depth_ == 1 && field_ == "resolution") return set_integer(spec.resolution_px, value);
    if (depth_ == 2 && field_ == "blurred") {
      std::int64_t channels = 0;
      return set_integer(channels, value) &&
             (spec.blurred.emplace(entry_, channels).second || fail("repeated name"));
    }
    return real(static_cast<double>(value));
  }
  bool string(std::string& value) {
    if (depth_ == 1 && field_ == "arch") {
      spec.arch = std::move(value);
      return true;
    }
    if (depth_ == 2 && field_ == "params")
      return spec.params.emplace(entry_, std::move(value)).second || fail("repeated name");
    if (depth_ != 2 || field_ != "class_names") return fail("text");
    spec.class_names.push_back(std::move(value));
    return true;
  }

  bool start_object(std::size_t /*size*/) {
    const bool legal = depth_ == 0 || (depth_ == 1 && (field_ == "params" || field_ == "blurred"));
    if (!legal) return fail("map");
    ++depth_;
    return true;
  }
  bool start_array(std::size_t /*size*/) {
    const bool legal =
        depth_ == 1 && (field_ == "class_names" || field_ == "mean" || field_ == "std");
    if (!legal) return fail("list");
    ++depth_;
    return true;
  }
  bool end_object() { return leave(); }
  bool end_array() { return leave(); }
  bool key(std::string& name) {
    if (depth_ == 2) {
      entry_ = std::move(name);
      return true;
    }
    static const std::set<std::string, std::less<>> kFields = {
        "version",     "arch", "params", "blurpool",   "blurred",    "num_classes",
        "class_names", "mean", "std",    "resolution", "in_channels"};
    field_ = std::move(name);
    if (!kFields.contains(field_)) return fail("key");
    return seen_.insert(field_).second || fail("repeated key");
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception&) {
    problem = fmt::format("expected JSON, got a syntax error at byte {}", position);
    return false;
  }

 private:
  bool fail(std::string_view what) {
    problem = fmt::format("unexpected {} at '{}'", what, utf8_prefix(field_, kMaxShownBytes));
    return false;
  }
  bool leave() {
    --depth_;
    return true;
  }
  bool set_integer(std::int64_t& target, std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return fail(fmt::format("{}", value));
    target = static_cast<std::int64_t>(value);
    return true;
  }
  bool real(double value) {
    if (depth_ != 2 || (field_ != "mean" && field_ != "std")) return fail("number");
    (field_ == "mean" ? spec.mean : spec.std).push_back(value);
    return true;
  }

  /// The nesting depth: 1 in the top-level map, 2 in a list or a map inside it.
  int depth_ = 0;
  std::string field_, entry_;
  std::set<std::string, std::less<>> seen_;
};

/// A message about the first wrong value, with the expected value; empty if all values are valid.
std::string find_problem(const SpecReader& reader) {
  const WeightsSpec& spec = reader.spec;
  const auto range = [](const char* key, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value >= low && value <= high) return std::string();
    return fmt::format("{}: expected a number from {} to {}, got {}", key, low, high, value);
  };
  if (reader.version != kSpecVersion) {
    return fmt::format("version: expected {}, got {}", kSpecVersion,
                       reader.version ? fmt::format("{}. A newer precast may have written the file",
                                                    *reader.version)
                                      : "none");
  }
  if (spec.arch.empty()) return "arch: expected the name of an architecture, got none";
  if (!spec.blurpool && !spec.blurred.empty())
    return fmt::format("blurred: expected no layers without blurpool, got {}", spec.blurred.size());
  for (const auto& [layer, channels] : spec.blurred) {
    if (channels < 1) return "blurred: expected at least 1 channel, got 0";
  }
  if (std::string wrong = range("num_classes", spec.num_classes, 1, kMaxClasses); !wrong.empty())
    return wrong;
  if (std::string wrong = range("in_channels", spec.in_channels, 1, kMaxChannels); !wrong.empty())
    return wrong;
  if (std::string wrong = range("resolution", spec.resolution_px, 0, kMaxImagePx); !wrong.empty())
    return wrong;
  if (spec.mean.size() != spec.std.size())
    return fmt::format("std: expected {} numbers, as many as in mean, got {}", spec.mean.size(),
                       spec.std.size());
  const auto finite = [](double value) { return std::isfinite(value); };
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (!std::ranges::all_of(spec.mean, finite) || !std::ranges::all_of(spec.std, positive))
    return "mean, std: expected finite numbers, and only numbers above 0 in std, got others";
  return "";
}

}  // namespace

std::string weights_spec_text(const WeightsSpec& spec) {
  nlohmann::ordered_json text = {{"version", kSpecVersion},
                                 {"arch", spec.arch},
                                 {"params", json::object()},
                                 {"blurpool", spec.blurpool},
                                 {"blurred", json::object()},
                                 {"num_classes", spec.num_classes},
                                 {"class_names", spec.class_names},
                                 {"mean", spec.mean},
                                 {"std", spec.std},
                                 {"resolution", spec.resolution_px}};
  // Older versions of precast do not have this key, support only 3 channels, and reject unknown
  // keys.
  if (spec.in_channels != 3) text["in_channels"] = spec.in_channels;
  for (const auto& [name, value] : spec.params) text["params"][name] = value;
  for (const auto& [layer, channels] : spec.blurred) text["blurred"][layer] = channels;
  return dump_json(text);
}

WeightsSpec parse_weights_spec(std::string_view text, const std::string& source) {
  const auto fail = [&](std::string_view problem) {
    throw CheckpointError(fmt::format("{}: {}: {}", source, kWeightsSpecKey, problem));
  };
  if (text.size() > kMaxWeightsSpecBytes)
    fail(fmt::format("expected at most {} bytes, got {}", kMaxWeightsSpecBytes, text.size()));
  SpecReader reader;
  if (!json::sax_parse(text.begin(), text.end(), &reader)) fail(reader.problem);
  if (const std::string problem = find_problem(reader); !problem.empty()) fail(problem);
  return std::move(reader.spec);
}

bool drop_long_class_names(WeightsSpec& spec) {
  if (spec.class_names.empty() || weights_spec_text(spec).size() <= kMaxWeightsSpecBytes)
    return false;
  spec.class_names.clear();
  return true;
}

std::map<std::string, std::string> weights_metadata(const WeightsSpec& spec) {
  WeightsSpec stored = spec;
  static_cast<void>(drop_long_class_names(stored));
  return {{"format", "pt"}, {std::string(kWeightsSpecKey), weights_spec_text(stored)}};
}

std::optional<WeightsSpec> spec_of(const WeightsFile& file) {
  const auto found = file.metadata().find(std::string(kWeightsSpecKey));
  if (found == file.metadata().end()) return std::nullopt;
  return parse_weights_spec(found->second, file.path().string());
}

std::optional<WeightsSpec> read_weights_spec(const std::filesystem::path& path) {
  return spec_of(load_weights(path));
}

}  // namespace precast
