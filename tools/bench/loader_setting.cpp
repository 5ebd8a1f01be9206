#include "tools/bench/loader_setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options/value_semantic.hpp>
#include <charconv>
#include <climits>
#include <functional>
#include <span>
#include <string_view>

#include "framework/core/error.h"
#include "framework/core/system.h"
#include "tools/arguments.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

/// A value that an option knows by name, and what it asks of a loader: a new one is a line here.
struct NamedValue {
  std::string_view name;
  void (*apply)(data::LoaderOptions& options);
};
constexpr std::array kOrders = {
    NamedValue{"sequential", [](auto& options) { options.order = data::OrderKind::sequential; }},
    NamedValue{"random", [](auto& options) { options.order = data::OrderKind::random; }}};
constexpr std::array kFormats = {
    NamedValue{"u8", [](auto& options) { options.normalize = false; }},
    NamedValue{"f32", [](auto& options) { options.normalize = true; }}};

const NamedValue& find_value(std::span<const NamedValue> all, std::string_view option,
                             std::string_view name) {
  std::vector<std::string_view> names;
  for (const NamedValue& value : all) names.push_back(value.name);
  return all[find_name(option, names, name)];
}

std::int64_t read_number(std::string_view option, const std::string& text, std::int64_t low,
                         std::int64_t high) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end)
    throw ConfigError(
        fmt::format("--{}: expected whole numbers with commas between, got '{}'", option, text));
  check_range(option, value, low, high);
  return value;
}

/// An option that may hold several values, and how one of them gets into a setting.
struct Axis {
  const char* option;
  std::string standard;
  const char* help;
  std::function<void(LoaderSetting& setting, const std::string& value)> set;
};

std::vector<Axis> axes() {
  const auto number = [](const char* option, std::int64_t low, std::int64_t high, auto member) {
    return [=](LoaderSetting& setting, const std::string& text) {
      using Value = std::remove_reference_t<decltype(setting.*member)>;
      setting.*member = static_cast<Value>(read_number(option, text, low, high));
    };
  };
  const auto name = [](const char* option, std::span<const NamedValue> all, auto member) {
    return [=](LoaderSetting& setting, const std::string& text) {
      setting.*member = find_value(all, option, text).name;
    };
  };
  return {
      {"processes", "1", "processes that load the file at once, as the ranks of a node do",
       number("processes", 1, 1024, &LoaderSetting::processes)},
      {"workers", std::to_string(usable_cores()), "loader threads of a process",
       number("workers", 1, INT_MAX, &LoaderSetting::workers)},
      {"batch_size", "256", "samples a batch",
       number("batch_size", 1, INT_MAX, &LoaderSetting::batch_size)},
      {"image_size", "176", "side of the images, px",
       number("image_size", 1, 8192, &LoaderSetting::image_size_px)},
      {"order", "random", "sequential, random", name("order", kOrders, &LoaderSetting::order)},
      {"format", "u8", "u8, or normalised: f32", name("format", kFormats, &LoaderSetting::format)},
  };
}

}  // namespace

data::LoaderOptions LoaderSetting::loader_options() const {
  data::LoaderOptions options;
  options.workers = workers;
  options.batch_size = batch_size;
  find_value(kOrders, "order", order).apply(options);
  find_value(kFormats, "format", format).apply(options);
  return options;
}

std::vector<std::pair<std::string, std::string>> LoaderSetting::values() const {
  return {{"processes", std::to_string(processes)},
          {"workers", std::to_string(workers)},
          {"batch_size", std::to_string(batch_size)},
          {"image_size", std::to_string(image_size_px)},
          {"order", order},
          {"format", format}};
}

void add_sweep_options(po::options_description& options) {
  for (const Axis& axis : axes())
    options.add_options()(axis.option, po::value<std::string>()->default_value(axis.standard),
                          axis.help);
}

std::vector<LoaderSetting> read_sweep(const Arguments& arguments) {
  std::vector<LoaderSetting> sweep(1);
  for (const Axis& axis : axes()) {
    std::vector<LoaderSetting> wider;
    for (const LoaderSetting& setting : sweep) {
      for (const std::string& value : split_list(axis.option, arguments.text(axis.option))) {
        wider.push_back(setting);
        axis.set(wider.back(), value);
      }
    }
    sweep = std::move(wider);
  }
  return sweep;
}

}  // namespace precast::tools
