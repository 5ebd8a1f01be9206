#include "tools/bench/loader_setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options/value_semantic.hpp>
#include <charconv>
#include <climits>
#include <functional>
#include <string_view>

#include "data/order/order.h"
#include "framework/core/error.h"
#include "framework/core/system.h"
#include "tools/arguments.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

/// What pixels come out as: a new one is a line here.
struct NamedFormat {
  std::string_view name;
  data::ElementType type;
};
constexpr std::array kFormats = {
    NamedFormat{"u8", data::ElementType::u8}, NamedFormat{"f32", data::ElementType::f32},
    NamedFormat{"f16", data::ElementType::f16}, NamedFormat{"bf16", data::ElementType::bf16}};
const std::vector<std::string_view> kLayouts = {"nhwc", "nchw"};
const std::vector<std::string_view> kSwitch = {"0", "1"};

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const NamedFormat& format : kFormats) names.push_back(format.name);
  return names;
}

/// @throws ConfigError naming the orders there are.
void check_order(const std::string& name) {
  data::OrderRegistry orders("order");
  data::register_orders(orders);
  const std::vector<std::string> names = orders.names();
  static_cast<void>(find_name("order", {names.begin(), names.end()}, name));
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
  const auto choice = [](const char* option, std::vector<std::string_view> known, auto member) {
    return [=](LoaderSetting& setting, const std::string& text) {
      setting.*member = known[find_name(option, known, text)];
    };
  };
  const auto toggle = [](const char* option, bool LoaderSetting::*member) {
    return [=](LoaderSetting& setting, const std::string& text) {
      setting.*member = find_name(option, kSwitch, text) == 1;
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
      {"order", "random", "sequential, random, quasi_random ...",
       [](LoaderSetting& setting, const std::string& text) {
         check_order(text);
         setting.order = text;
       }},
      {"format", "u8", "u8, or normalised: f32, f16, bf16",
       choice("format", format_names(), &LoaderSetting::format)},
      {"layout", "nhwc", "nhwc (channels last) or nchw",
       choice("layout", kLayouts, &LoaderSetting::layout)},
      {"in_memory", "1", "1: map the file; 0: read pages into --cache_mb",
       toggle("in_memory", &LoaderSetting::in_memory)},
      {"jpeg_index", "0", "1: keep where in JPEGs crops can begin, found while warming up",
       toggle("jpeg_index", &LoaderSetting::jpeg_index)},
  };
}

}  // namespace

data::ImagePipeline LoaderSetting::with_pixels(data::ImagePipeline pipeline) const {
  pipeline.type = std::ranges::find(kFormats, format, &NamedFormat::name)->type;
  pipeline.normalized = format != "u8";
  pipeline.channels_first = layout == "nchw";
  return pipeline;
}

std::vector<std::pair<std::string, std::string>> LoaderSetting::values() const {
  return {{"processes", std::to_string(processes)},
          {"workers", std::to_string(workers)},
          {"batch_size", std::to_string(batch_size)},
          {"image_size", std::to_string(image_size_px)},
          {"order", order},
          {"format", format},
          {"layout", layout},
          {"in_memory", in_memory ? "1" : "0"},
          {"jpeg_index", jpeg_index ? "1" : "0"}};
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
