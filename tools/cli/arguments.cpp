#include "tools/cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/any.hpp>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/parsers.hpp>
#include <nlohmann/json.hpp>
#include <typeinfo>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/suggest.h"
#include "framework/core/system.h"
#include "tools/cli/help_text.h"
#include "tools/cli/old_spellings.h"

namespace precast::tools {

namespace po = boost::program_options;

namespace {

std::string text_of(const boost::any& value) {
  if (const auto* text = boost::any_cast<std::string>(&value)) return *text;
  if (const auto* number = boost::any_cast<std::int64_t>(&value)) return fmt::to_string(*number);
  if (const auto* number = boost::any_cast<std::uint64_t>(&value)) return fmt::to_string(*number);
  if (const auto* number = boost::any_cast<int>(&value)) return fmt::to_string(*number);
  if (const auto* number = boost::any_cast<double>(&value)) return fmt::to_string(*number);
  if (const auto* choice = boost::any_cast<bool>(&value)) return *choice ? "true" : "false";
  if (const auto* list = boost::any_cast<std::vector<std::string>>(&value))
    return fmt::format("{}", fmt::join(*list, " "));
  require(false, "an option has one of the known types");
  return {};
}

/// The placeholder for the value in the help, if the option does not set one.
std::string type_word(const po::value_semantic& semantic) {
  const auto* typed = dynamic_cast<const po::typed_value_base*>(&semantic);
  if (typed == nullptr) return "TEXT";
  const std::type_info& type = typed->value_type();
  if (type == typeid(double)) return "NUMBER";
  const bool is_integer =
      type == typeid(int) || type == typeid(std::int64_t) || type == typeid(std::uint64_t);
  return is_integer ? "N" : "TEXT";
}

OptionHelp describe(const po::option_description& option) {
  const po::value_semantic& semantic = *option.semantic();
  OptionHelp help{option.long_name(), {}, {}, {}, option.description()};
  const std::string shown =
      option.canonical_display_name(po::command_line_style::allow_dash_for_short);
  if (shown.size() == 2 && shown[0] == '-') help.letter = shown.substr(1);
  if (semantic.is_required()) help.help += "; required";
  if (semantic.max_tokens() == 0) return help;
  // Boost's text is `NAME`, `NAME (=default)` or `[=NAME(=implicit)]`.
  const std::string name = semantic.name();
  help.value = name.substr(0, name.find_first_of(" [("));
  if (help.value.empty() || help.value == "arg") help.value = type_word(semantic);
  boost::any value;
  if (semantic.apply_default(value)) help.default_text = text_of(value);
  return help;
}

/// The lower-case words at the beginning of a usage text.
std::string command_name(const std::string& usage) {
  std::size_t end = 0;
  while (end < usage.size() && (usage[end] == ' ' || (usage[end] >= 'a' && usage[end] <= 'z')))
    ++end;
  while (end > 0 && usage[end - 1] == ' ') --end;
  return usage.substr(0, end);
}

std::string last_part(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

/// A hint that names the keys whose last part is `name`; empty if there are none, or more than
/// kFew.
std::string hint_keys(const std::string& name, const std::vector<RecipeKey>& keys) {
  constexpr std::size_t kFew = 4;
  std::vector<std::string> found;
  for (const RecipeKey& key : keys) {
    const std::string option = "--" + key.name;
    if (last_part(key.name) == name && std::ranges::count(found, option) == 0)
      found.push_back(option);
  }
  if (found.empty() || found.size() > kFew) return {};
  return fmt::format("Did you mean {}?", fmt::join(found, " or "));
}

}  // namespace

Arguments::Arguments(std::string usage, std::string about)
    : usage_(std::move(usage)), about_(std::move(about)) {
  options_.add_options()("help,h", "show this help");
}

void Arguments::positional(const std::string& name, const std::string& help) {
  positional_.push_back({.name = name, .help = help});
}

void Arguments::optional_positional(const std::string& name, const std::string& help) {
  positional_.push_back({.name = name, .help = help, .optional = true});
}

void Arguments::positional_list(const std::string& name, const std::string& help) {
  positional_.push_back({.name = name, .help = help, .list = true});
}

void Arguments::optional_list(const std::string& name, const std::string& help) {
  positional_.push_back({.name = name, .help = help, .optional = true, .list = true});
}

void Arguments::example(std::string command, std::string about) {
  examples_.push_back({std::move(command), std::move(about)});
}

void Arguments::exit_codes(const std::vector<int>& codes) {
  exit_codes_.insert(exit_codes_.end(), codes.begin(), codes.end());
  std::ranges::sort(exit_codes_);
  const auto twice = std::ranges::unique(exit_codes_);
  exit_codes_.erase(twice.begin(), twice.end());
}

void Arguments::take_keys(std::vector<RecipeKey> keys) {
  takes_keys_ = true;
  keys_ = std::move(keys);
}

CommandHelp Arguments::help() const {
  CommandHelp help{.name = command_name(usage_),
                   .usage = usage_,
                   .summary = {},
                   .about = about_,
                   .arguments = positional_,
                   .options = {},
                   .examples = examples_,
                   .exit_codes = exit_codes_,
                   .takes_keys = takes_keys_,
                   .keys = keys_};
  for (const auto& option : options_.options()) help.options.push_back(describe(*option));
  return help;
}

std::string Arguments::declared_spelling(std::string name) const {
  const auto known = [&] { return options_.find_nothrow(name, /*approx=*/false) != nullptr; };
  if (known()) return name;
  std::ranges::replace(name, '_', '-');
  if (known()) return name;
  std::ranges::replace(name, '-', '_');
  return known() ? name : "";
}

std::vector<std::string> Arguments::with_declared_spelling(std::vector<std::string> args) const {
  const std::string command = command_name(usage_);
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    std::string& arg = args[i];
    if (!arg.starts_with("--")) continue;
    const std::size_t end = std::min(arg.find('='), arg.size());
    std::string name = arg.substr(2, end - 2);
    if (const std::string own = declared_spelling(name); !own.empty()) name = own;
    std::string hyphens = name;
    std::ranges::replace(hyphens, '_', '-');
    std::string value = end < arg.size() ? arg.substr(end + 1) : "";
    if (end == arg.size() && i + 1 < args.size()) value = args[i + 1];
    if (const OldSpelling* old = find_old_spelling(command, hyphens, value)) {
      name = old->now;
      log_line(fmt::format("precast {}: --{} is now --{}", command, old->old, old->now));
    }
    arg.replace(2, end - 2, name);
  }
  return args;
}

std::string Arguments::hint(const std::string& option) const {
  const std::string see = fmt::format("See precast {} --help", command_name(usage_));
  std::vector<std::string> known;
  for (const auto& one : options_.options()) known.push_back("--" + one->long_name());
  if (!option.starts_with("--")) return see;
  std::string name = option.substr(2);
  std::ranges::replace(name, '-', '_');
  if (const std::string keys = hint_keys(name, keys_); !keys.empty()) return keys;
  const std::string_view did_you_mean = "Did you mean '";
  if (const std::string text = suggest(option, known); text.starts_with(did_you_mean)) return text;
  std::vector<std::string> parts;
  for (const RecipeKey& key : keys_) parts.push_back(last_part(key.name));
  const std::string part = suggest(name, parts);
  if (part.starts_with(did_you_mean)) {
    const std::string nearest =
        part.substr(did_you_mean.size(), part.rfind('\'') - did_you_mean.size());
    if (const std::string keys = hint_keys(nearest, keys_); !keys.empty()) return keys;
  }
  if (takes_keys_)
    return see + ". A key of a recipe is given with its section: --training.epochs=16";
  return see;
}

void Arguments::store(const std::vector<std::string>& args) {
  po::options_description all = options_;
  po::positional_options_description positionals;
  for (const ArgumentHelp& argument : positional_) {
    if (argument.list) {
      all.add_options()(argument.name.c_str(), po::value<std::vector<std::string>>());
    } else {
      all.add_options()(argument.name.c_str(), po::value<std::string>());
    }
    positionals.add(argument.name.c_str(), argument.list ? -1 : 1);
  }
  // Without `allow_guessing`, so that an option added later cannot change the meaning of a script.
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::store(po::command_line_parser(with_declared_spelling(args))
                .options(all)
                .positional(positionals)
                .style(style)
                .run(),
            values_);
}

bool Arguments::parse(const std::vector<std::string>& args) {
  if (args.size() == 1 && args[0] == "--help-json") {
    fmt::print("{}\n", help_json(help()).dump());
    return false;
  }
  try {
    store(args);
    // Comes before notify(), which enforces required options.
    if (has("help")) {
      fmt::print("{}", help_text(help(), help_width()));
      return false;
    }
    po::notify(values_);
  } catch (const po::unknown_option& error) {
    // The name that Boost returns includes the value.
    const std::string given = error.get_option_name();
    const std::string option = given.substr(0, given.find('='));
    throw ConfigError(fmt::format("unknown option '{}'. {}", option, hint(option)));
  } catch (const po::too_many_positional_options_error&) {
    throw ConfigError(fmt::format("too many arguments. usage: precast {}", usage_));
  } catch (const po::error& error) {
    throw ConfigError(fmt::format("{}. See precast {} --help", error.what(), command_name(usage_)));
  }
  check_positionals();
  return true;
}

void Arguments::check_positionals() const {
  for (const ArgumentHelp& argument : positional_) {
    if (argument.optional || has(argument.name)) continue;
    throw ConfigError(
        fmt::format("expected {}, but it is missing. usage: precast {}", argument.name, usage_));
  }
}

bool Arguments::given(const std::string& name) const {
  require(options_.find_nothrow(name, /*approx=*/false) != nullptr, "the option is declared");
  return has(name) && !values_[name].defaulted();
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
  throw ConfigError(fmt::format("--{}: expected one of {}, got '{}'{}", option,
                                fmt::join(known, ", "), name,
                                suggest_similar(name, {known.begin(), known.end()})));
}

std::vector<std::string> split_list(std::string_view option, std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    if (parts.back().empty())
      throw ConfigError(
          fmt::format("--{}: expected values separated by commas, got '{}'", option, text));
    begin = end + 1;
  }
  return parts;
}

}  // namespace precast::tools
