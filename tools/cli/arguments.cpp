#include "tools/cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/parsers.hpp>
#include <sstream>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/suggest.h"
#include "framework/core/system.h"

namespace precast::tools {

namespace po = boost::program_options;

namespace {

std::string text_of(const boost::any& value) {
  if (const auto* text = boost::any_cast<std::string>(&value)) return *text;
  if (const auto* number = boost::any_cast<std::int64_t>(&value)) return fmt::to_string(*number);
  if (const auto* number = boost::any_cast<double>(&value)) return fmt::to_string(*number);
  if (const auto* choice = boost::any_cast<bool>(&value)) return *choice ? "true" : "false";
  if (const auto* list = boost::any_cast<std::vector<std::string>>(&value))
    return fmt::format("{}", fmt::join(*list, " "));
  require(false, "an option has one of the known types");
  return {};
}

}  // namespace

Arguments::Arguments(std::string usage, std::string about)
    : usage_(std::move(usage)), about_(std::move(about)), options_("options", 100) {
  options_.add_options()("help,h", "show this");
}

void Arguments::positional(const std::string& name, const std::string& help) {
  positional_.push_back({name, help});
}

void Arguments::optional_positional(const std::string& name, const std::string& help) {
  positional_.push_back({name, help, true});
}

void Arguments::positional_list(const std::string& name, const std::string& help) {
  positional_.push_back({.name = name, .help = help, .list = true});
}

void Arguments::optional_list(const std::string& name, const std::string& help) {
  positional_.push_back({.name = name, .help = help, .optional = true, .list = true});
}

void Arguments::print_help() const {
  fmt::print("usage: precast {}\n", usage_);
  if (!about_.empty()) fmt::print("\n{}\n", about_);
  fmt::print("\n");
  for (const Positional& place : positional_) fmt::print("  {:<36} {}\n", place.name, place.help);
  std::ostringstream options;
  options << options_;
  fmt::print("\n{}", options.str());
}

std::vector<std::string> Arguments::in_own_spelling(std::vector<std::string> args) const {
  for (std::string& arg : args) {
    if (arg == "--") break;
    if (!arg.starts_with("--")) continue;
    const std::size_t end = std::min(arg.find('='), arg.size());
    std::string name = arg.substr(2, end - 2);
    if (options_.find_nothrow(name, /*approx=*/false) != nullptr) continue;
    std::ranges::replace(name, '-', '_');
    if (options_.find_nothrow(name, /*approx=*/false) != nullptr) arg.replace(2, end - 2, name);
  }
  return args;
}

std::vector<std::string> Arguments::known() const {
  std::vector<std::string> names;
  for (const auto& option : options_.options()) names.push_back("--" + option->long_name());
  return names;
}

void Arguments::store(const std::vector<std::string>& args) {
  po::options_description all = options_;
  po::positional_options_description places;
  for (const Positional& place : positional_) {
    if (place.list) {
      all.add_options()(place.name.c_str(), po::value<std::vector<std::string>>());
    } else {
      all.add_options()(place.name.c_str(), po::value<std::string>());
    }
    places.add(place.name.c_str(), place.list ? -1 : 1);
  }
  // Without `allow_guessing`: an option added later must not change the meaning of a script.
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::store(po::command_line_parser(in_own_spelling(args))
                .options(all)
                .positional(places)
                .style(style)
                .run(),
            values_);
}

bool Arguments::parse(const std::vector<std::string>& args) {
  try {
    store(args);
    // Before notify(), which enforces required options.
    if (has("help")) {
      print_help();
      return false;
    }
    po::notify(values_);
  } catch (const po::unknown_option& error) {
    throw ConfigError(fmt::format("unknown option '{}'. {}", error.get_option_name(),
                                  suggest(error.get_option_name(), known())));
  } catch (const po::too_many_positional_options_error&) {
    throw ConfigError(fmt::format("too many arguments. usage: precast {}", usage_));
  } catch (const po::error& error) {
    throw ConfigError(fmt::format("{}. See --help", error.what()));
  }
  check_positionals();
  return true;
}

void Arguments::check_positionals() const {
  for (const Positional& place : positional_) {
    if (place.optional || has(place.name)) continue;
    throw ConfigError(fmt::format("expected {}. usage: precast {}", place.name, usage_));
  }
}

std::map<std::string, std::string> Arguments::texts() const {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : values_)
    if (!value.empty()) texts[name] = text_of(value.value());
  return texts;
}

void check_range(std::string_view option, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return;
  throw ConfigError(fmt::format("--{}: expected {} to {}, got {}", option, low, high, value));
}

std::int64_t integer(const Arguments& arguments, const std::string& name, std::int64_t low,
                     std::int64_t high) {
  const auto value = arguments.get<std::int64_t>(name);
  check_range(name, value, low, high);
  return value;
}

po::typed_value<std::int64_t>* number(std::int64_t value) {
  return po::value<std::int64_t>()->default_value(value);
}

int worker_count(const Arguments& arguments) {
  const std::int64_t workers = integer(arguments, "workers", 0, 1024);
  return workers == 0 ? usable_cores() : static_cast<int>(workers);
}

std::size_t find_name(std::string_view option, const std::vector<std::string_view>& known,
                      std::string_view name) {
  const auto found = std::ranges::find(known, name);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  throw ConfigError(fmt::format("--{}: expected one of {}, got '{}'. {}", option,
                                fmt::join(known, ", "), name,
                                suggest(std::string(name), {known.begin(), known.end()})));
}

std::vector<std::string> split_list(std::string_view option, std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    if (parts.back().empty())
      throw ConfigError(
          fmt::format("--{}: expected values with commas between, got '{}'", option, text));
    begin = end + 1;
  }
  return parts;
}

}  // namespace precast::tools
