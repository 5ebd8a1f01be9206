#include "tools/cli/custom_fields.h"

#include <fmt/core.h>

#include <algorithm>

#include "data/beton/layout.h"
#include "framework/core/error.h"
#include "framework/process/stop_signals.h"

namespace precast::tools {
namespace {

constexpr const char* kOption = "field-layout";

}  // namespace

bool is_field_layout(std::string_view value) {
  const std::size_t equals = value.find('=');
  return equals != std::string_view::npos && equals + 1 < value.size() &&
         value[equals + 1] >= '0' && value[equals + 1] <= '9';
}

data::BetonOptions take_layouts(std::vector<std::string>& values, const std::string& setting) {
  data::BetonOptions options;
  for (const std::string& value : values) {
    if (is_field_layout(value)) data::add_field_layout(value, setting, options.layouts);
  }
  std::erase_if(values, is_field_layout);
  return options;
}

data::BetonOptions read_layouts(std::vector<std::string> values, const std::string& setting) {
  data::BetonOptions options = take_layouts(values, setting);
  if (values.empty()) return options;
  throw ConfigError(fmt::format(
      "{}: expected the layout of a custom field as NAME=BYTES:ALIGNMENT[:POINTER], got '{}'",
      setting, values[0]));
}

void add_layout_option(boost::program_options::options_description& options) {
  options.add_options()(
      kOption,
      boost::program_options::value<std::vector<std::string>>()->composing()->value_name(
          "NAME=LAYOUT"),
      kCustomFieldHelp);
}

data::BetonOptions read_layouts(const Arguments& arguments) {
  data::BetonOptions options;
  if (arguments.has(kOption)) {
    options =
        read_layouts(arguments.get<std::vector<std::string>>(kOption), std::string("--") + kOption);
  }
  options.remote.http.cancel = &StopSignals::requested();
  return options;
}

}  // namespace precast::tools
