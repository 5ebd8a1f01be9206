#include "tools/bench/loader_setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options/value_semantic.hpp>
#include <climits>
#include <functional>
#include <span>
#include <string_view>

#include "data/jobs/index_dataset.h"
#include "data/order/order.h"
#include "data/order/pages.h"
#include "framework/core/error.h"
#include "framework/core/parse_number.h"
#include "framework/core/system.h"
#include "tools/cli/arguments.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

constexpr std::array kFormats = {data::ElementType::u8, data::ElementType::f32,
                                 data::ElementType::f16, data::ElementType::bf16};

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const data::ElementType format : kFormats) names.push_back(data::element_type_name(format));
  return names;
}

std::vector<std::string_view> order_names() {
  static const data::OrderRegistry registry = [] {
    data::OrderRegistry made("order");
    data::register_orders(made);
    return made;
  }();
  std::vector<std::string_view> names;
  for (const auto& entry : registry.entries()) names.push_back(entry.name);
  return names;
}

std::int64_t read_number(std::string_view option, const std::string& text, std::int64_t low,
                         std::int64_t high) {
  const auto value = parse_number<std::int64_t>(text);
  if (!value)
    throw ConfigError(
        fmt::format("--{}: expected whole numbers separated by commas, got '{}'", option, text));
  check_range(option, *value, low, high);
  return *value;
}

using SetAxis = std::function<void(LoaderSetting& setting, const std::string& value)>;

/// An option that accepts several values, and the function that stores one value in a setting.
struct Axis {
  const char* option;
  std::string standard;
  const char* help;
  SetAxis set;
};

template <typename Member>
SetAxis number_axis(const char* option, std::int64_t low, std::int64_t high, Member member) {
  return [=](LoaderSetting& setting, const std::string& text) {
    using Value = std::remove_reference_t<decltype(setting.*member)>;
    setting.*member = static_cast<Value>(read_number(option, text, low, high));
  };
}

SetAxis name_axis(const char* option, const std::vector<std::string_view>& names,
                  std::string LoaderSetting::*member) {
  return [=](LoaderSetting& setting, const std::string& text) {
    setting.*member = names[find_name(option, names, text)];
  };
}

/// 0 means one per core, as in all commands.
void set_workers(LoaderSetting& setting, const std::string& text) {
  const auto workers = read_number("workers", text, 0, INT_MAX);
  setting.workers = workers == 0 ? usable_cores() : static_cast<int>(workers);
}

std::vector<Axis> axes() {
  return {
      {"processes", "1", "processes that load the file at the same time; as the ranks of a host do",
       number_axis("processes", 1, 1024, &LoaderSetting::processes)},
      {"workers", "0", "number of threads; per process; 0: one per core", set_workers},
      {"batch-size", "256", "samples per batch",
       number_axis("batch-size", 1, INT_MAX, &LoaderSetting::batch_size)},
      {"image-size", "176", kImageSizeHelp,
       number_axis("image-size", 1, 8192, &LoaderSetting::image_size_px)},
      {"order", "random",
       "order of the samples in an epoch; random, sequential, quasi_random or another order that "
       "`precast list orders` prints",
       name_axis("order", order_names(), &LoaderSetting::order)},
      {"format", "u8", "type of the images' values; u8, or normalised: f32, f16, bf16",
       name_axis("format", format_names(), &LoaderSetting::format)},
      {"layout", "nhwc", "memory layout of the images; nhwc (channels last) or nchw",
       name_axis("layout", {"nhwc", "nchw"}, &LoaderSetting::layout)},
      {"in-memory", "1",
       "how the file is read; 1: through the page cache; 0: through a cache of --cache-mb",
       number_axis("in-memory", 0, 1, &LoaderSetting::in_memory)},
      {"cache-mb", "256", "cache for dataset pages in MiB per process; with --in-memory 0",
       number_axis("cache-mb", 1, INT_MAX, &LoaderSetting::cache_mb)},
      {"jpeg-index", "on",
       "whether to use the JPEG index; on: from the sidecar, or built in the first pass; off",
       name_axis("jpeg-index", {"on", "off"}, &LoaderSetting::jpeg_index)},
  };
}

}  // namespace

data::BlobAccess LoaderSetting::access() const {
  return in_memory != 0 ? data::BlobAccess::mapped : data::BlobAccess::on_disk;
}

data::LoaderOptions LoaderSetting::loader_options(const data::BetonReader& reader) const {
  data::LoaderOptions options;
  options.workers = workers;
  options.batch_size = batch_size;
  options.order = data::make_order(
      reader, {.name = order,
               .window_pages = data::window_pages("auto", batch_size, reader.header().page_bytes,
                                                  memory_limit_bytes())});
  options.cache_bytes = static_cast<std::uint64_t>(cache_mb) << 20;
  if (jpeg_index == "on") options.jpeg_index = data::open_jpeg_index(reader, UINT64_MAX);
  return options;
}

data::Pipeline LoaderSetting::pipeline(bool val) const {
  return formatted(val ? data::standard_val_pipeline() : data::standard_train_pipeline());
}

data::Pipeline LoaderSetting::formatted(data::Pipeline recipe) const {
  const auto set = [&](data::ImagePipeline& image) {
    if (image.type) return;
    image.type = *std::ranges::find(kFormats, format, data::element_type_name);
    image.channels_first = image.channels_first || layout == "nchw";
    image.normalized = image.type != data::ElementType::u8;
  };
  set(recipe.images);
  for (data::OutputSpec& output : recipe.outputs)
    if (!output.type) set(output.image);
  return recipe;
}

std::vector<std::pair<std::string, std::string>> LoaderSetting::values() const {
  return {{"processes", std::to_string(processes)},
          {"workers", std::to_string(workers)},
          {"batch_size", std::to_string(batch_size)},
          {"image_size", std::to_string(image_size_px)},
          {"order", order},
          {"format", format},
          {"layout", layout},
          {"in_memory", std::to_string(in_memory)},
          {"cache_mb", std::to_string(cache_mb)},
          {"jpeg_index", jpeg_index}};
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
