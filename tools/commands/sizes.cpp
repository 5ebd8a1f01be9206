#include "tools/commands/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/parse_number.h"
#include "framework/core/progress.h"
#include "framework/core/rng.h"
#include "framework/core/shell_word.h"
#include "framework/core/system.h"
#include "tools/cli/arguments.h"
#include "tools/cli/custom_fields.h"
#include "tools/cli/field_options.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"
#include "tools/commands/dataset_output.h"
#include "tools/commands/sizes_advice.h"
#include "tools/commands/sizes_measure.h"
#include "tools/commands/source_options.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr double kGigabyte = 1e9;
constexpr const char* kQuality = "image.quality";
constexpr const char* kResolution = "image.max_resolution";
constexpr const char* kJpegShare = "image.compress_probability";

/// Declares the options that determine what is measured. Those that `precast write` also has accept
/// lists of values.
void add_measure_options(po::options_description& options) {
  const data::FieldRegistry fields = data::make_fields();
  const auto list = [&](const char* name, const char* standard) {
    const std::string help =
        field_option_help(fields, name) + "; each value of the list is measured";
    options.add_options()(
        name, po::value<std::string>()->default_value(standard)->value_name("LIST"), help.c_str());
  };
  options.add_options()("images", number(0),
                        "number of images in the dataset; 0: the number in SOURCE")(
      "count", number(200), "number of samples drawn at random; these images are measured")(
      "seed", number(0), kSeedHelp);
  list(kQuality, "50,90,100");
  list(kResolution, "256,384,512,0");
  list(kJpegShare, "1,0.5,0.1,0");
  options.add_options()("image-size", number(224), kImageSizeHelp);
}

/// Declares the options with the requirements that the advice is based on.
void add_machine_options(po::options_description& options) {
  options.add_options()("ram", po::value<double>(), "memory of the machine that trains, in GB")(
      "cores", number(0), "CPU cores of the machine that trains; 0: those of this machine")(
      "target-img-s", po::value<double>(), "images per second that the loader must supply");
}

Arguments declare() {
  Arguments arguments(
      "sizes SOURCE [options]",
      "Estimates, for each storage mode, the size of SOURCE as a .beton file (with the standard "
      "error) and the number of training images per second that one core can load from it. Both "
      "are measured on some images of SOURCE, which are encoded and decoded in memory. "
      "--image.compress_probability 1 means the mode jpg, 0 means raw, and any other value means "
      "proportion. With --ram, --cores or --target-img-s, the command recommends options for "
      "`precast write`.");
  arguments.positional("SOURCE", "the dataset to read, as for precast write");
  add_source_options(arguments.options(), data::make_sources());
  add_layout_option(arguments.options());
  add_measure_options(arguments.options());
  add_machine_options(arguments.options());
  arguments.options().add_options()("workers", number(0), kWorkersHelp)("json", po::bool_switch(),
                                                                        kJsonHelp);
  arguments.example("precast sizes photos/train --ram 64 --cores 8 --target-img-s 3000");
  arguments.example("precast sizes photos.tar --image.quality 90 --image.max_resolution 256,0");
  arguments.exit_codes({3, 129, 130, 143});
  return arguments;
}

/// The numbers of a list. @throws ConfigError
template <typename T>
std::vector<T> numbers(const Arguments& arguments, const std::string& option, T low, T high) {
  std::vector<T> values;
  for (const std::string& part : split_list(option, arguments.text(option))) {
    const auto value = parse_number<T>(part);
    if (!value || !(*value >= low && *value <= high))
      throw ConfigError(
          fmt::format("--{}: expected numbers from {} to {}, got '{}'", option, low, high, part));
    values.push_back(*value);
  }
  return values;
}

/// @throws ConfigError
std::optional<double> positive(const Arguments& arguments, const std::string& option) {
  if (!arguments.has(option)) return std::nullopt;
  const auto value = arguments.get<double>(option);
  if (!(value > 0 && std::isfinite(value)))
    throw ConfigError(fmt::format("--{}: expected a number above 0, got {}", option, value));
  return value;
}

Machine machine_of(const Arguments& arguments) {
  Machine machine;
  machine.ram_bytes = positive(arguments, "ram");
  if (machine.ram_bytes) *machine.ram_bytes *= kGigabyte;
  machine.target_images_per_second = positive(arguments, "target-img-s");
  machine.cores = static_cast<int>(integer(arguments, "cores", 0, 1 << 20));
  if (machine.cores == 0) machine.cores = usable_cores();
  return machine;
}

MeasureOptions measure_options(const Arguments& arguments) {
  MeasureOptions options;
  options.qualities = numbers(arguments, kQuality, 1, 100);
  options.resolutions_px = numbers(arguments, kResolution, 0, 65535);
  options.jpeg_shares = numbers(arguments, kJpegShare, 0.0, 1.0);
  options.crop_px = static_cast<int>(integer(arguments, "image-size", 1, 8192));
  options.on_corrupt = data::corrupt_policy(arguments.text("on-corrupt"));
  options.workers = worker_count(arguments);
  return options;
}

std::size_t image_field(const data::Source& source, const std::string& name) {
  const auto found = std::ranges::find(source.fields(), "image", &data::SourceField::type);
  if (found == source.fields().end())
    throw DataError(fmt::format("{}: expected a source with an image field, got none", name));
  return static_cast<std::size_t>(found - source.fields().begin());
}

Json describe(const MeasuredSettings& measured, std::uint64_t images) {
  const auto count = static_cast<double>(images);
  return {{"mode", mode_text(measured.settings)},
          {"jpeg_share", measured.settings.jpeg_share},
          {"quality", measured.settings.quality},
          {"max_resolution", measured.settings.max_resolution_px},
          {"image_bytes", measured.bytes},
          {"gigabytes", measured.bytes * count / kGigabyte},
          {"gigabytes_error", measured.bytes_error * count / kGigabyte},
          {"images_per_core_second", measured.images_per_core_second}};
}

/// The unit of a table: the largest of GB, MB and kB in which the largest cell is at least 1.
struct Unit {
  const char* name;
  double bytes;
};
Unit unit_of(double max_bytes) {
  if (max_bytes >= kGigabyte) return {"GB", kGigabyte};
  return max_bytes >= 1e6 ? Unit{"MB", 1e6} : Unit{"kB", 1e3};
}

/// The estimated size and the loading rate.
/// @param scale converts bytes per image to the unit of the table
std::string cell_text(const MeasuredSettings& settings, double scale) {
  return fmt::format("{:.1f} +- {:.1f}, {:.0f}/s", settings.bytes * scale,
                     settings.bytes_error * scale, settings.images_per_core_second);
}

void print_table(const std::vector<MeasuredSettings>& candidates, std::uint64_t images,
                 const std::vector<int>& sides) {
  const double most = std::ranges::max(candidates, {}, &MeasuredSettings::bytes).bytes;
  const Unit unit = unit_of(most * static_cast<double>(images));
  const double scale = static_cast<double>(images) / unit.bytes;
  fmt::print("{} for {} (+- standard error), images/s per core\n", unit.name,
             format_count(images, "image"));
  fmt::print("{:<15} {:>7}", "mode", "quality");
  for (const int side : sides)
    fmt::print(" {:>24}", side == 0 ? std::string("full") : fmt::format("{} px", side));
  fmt::print("\n");
  // The candidates are ordered by resolution. Each row of the table is one mode and quality.
  const std::size_t rows = candidates.size() / sides.size();
  for (std::size_t row = 0; row < rows; ++row) {
    const StorageSettings& settings = candidates[row].settings;
    fmt::print("{:<15} {:>7}", mode_text(settings),
               settings.quality == 0 ? std::string("-") : fmt::to_string(settings.quality));
    for (std::size_t side = 0; side < sides.size(); ++side)
      fmt::print(" {:>24}", cell_text(candidates[side * rows + row], scale));
    fmt::print("\n");
  }
}

Measurement measure(const data::Source& source, const std::string& name, MeasureOptions& options) {
  Progress progress;
  const StopSignals signals;
  options.cancel = &StopSignals::requested();
  options.on_progress = [&](std::uint64_t done) {
    if (progress.due())
      progress.show(fmt::format("sizes {}/{} images", done, options.samples.size()));
  };
  try {
    return measure_settings(source, image_field(source, name), options);
  } catch (const data::Cancelled&) {
    progress.clear();
    throw Error(name + ": stopped", static_cast<ExitCode>(StopSignals::exit_code()));
  }
}

/// The `precast write` command for `settings`, with the options for the source that were given.
std::string advised_command(const Arguments& arguments, const StorageSettings& settings) {
  std::string command = fmt::format("precast write {} OUT.beton {}",
                                    shell_word(arguments.text("SOURCE")), write_options(settings));
  command += given_source_options(arguments, data::make_sources());
  if (!arguments.has("field-layout")) return command;
  for (const std::string& field : arguments.get<std::vector<std::string>>("field-layout"))
    command += " --field-layout " + shell_word(field);
  return command;
}

/// Indices of the samples to measure, drawn at random.
std::vector<std::uint64_t> draw(std::uint64_t images, std::uint64_t sample, std::uint64_t seed) {
  auto drawn = random_permutation(images, seed, 0, RandomUse::split);
  drawn.resize(std::min(sample, images));
  return drawn;
}

Json advice_json(const Advice& advice, const std::string& command) {
  return {{"command", command},
          {"fits", advice.fits},
          {"keeps_up", advice.keeps_up},
          {"why", advice.why}};
}

void print_advice(const Advice& advice, const std::string& command) {
  fmt::print(
      "{}{}\n  {}\n",
      advice.fits && advice.keeps_up ? "advice: " : "no mode meets all requirements; the closest: ",
      advice.why, command);
}

}  // namespace

int run_sizes(const std::vector<std::string>& args) {
  Arguments arguments = declare();
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  MeasureOptions options = measure_options(arguments);
  const Machine machine = machine_of(arguments);
  const auto sample = static_cast<std::uint64_t>(integer(arguments, "count", 1, INT64_MAX));
  const auto seed = static_cast<std::uint64_t>(integer(arguments, "seed", 0, INT64_MAX));
  auto images = static_cast<std::uint64_t>(integer(arguments, "images", 0, INT64_MAX));
  const std::string name = arguments.text("SOURCE");
  const auto source = open_chosen_source(arguments, data::make_sources(), read_layouts(arguments));
  if (images == 0) images = source->size();
  options.samples = draw(source->size(), sample, seed);

  const auto [candidates, skipped] = measure(*source, name, options);
  print_skipped(skipped);
  const Advice advice = advise(candidates, images, machine);
  const std::string command = advised_command(arguments, advice.settings.settings);
  const bool shows_advice =
      machine.ram_bytes || machine.target_images_per_second || arguments.given("cores");
  if (!arguments.get<bool>("json")) {
    print_table(candidates, images, options.resolutions_px);
    if (shows_advice) print_advice(advice, command);
    return static_cast<int>(ExitCode::done);
  }
  Json report = {{"source", name},
                 {"images", images},
                 {"measured", options.samples.size() - skipped.size()},
                 {"skipped", skipped_json(skipped)}};
  for (const MeasuredSettings& settings : candidates)
    report["ways"].push_back(describe(settings, images));
  if (shows_advice) report["advice"] = advice_json(advice, command);
  print_json(report);
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
