#include "tools/commands/write.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/decode/jpeg_sidecar.h"
#include "data/jobs/field_plans.h"
#include "data/jobs/write_dataset.h"
#include "data/order/class_names.h"
#include "data/order/subset.h"
#include "data/sources/braces.h"
#include "data/sources/register.h"
#include "data/write/register.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/rng.h"
#include "tools/cli/arguments.h"
#include "tools/cli/custom_fields.h"
#include "tools/cli/field_options.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/version.h"
#include "tools/commands/chosen_fields.h"
#include "tools/commands/dataset_output.h"
#include "tools/commands/source_options.h"
#include "tools/plugins/plugins.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

constexpr const char* kPresetOption = "preset";

std::string source_help(const data::SourceRegistry& sources) {
  std::string text =
      "Writes the samples of SOURCE, which is one of these, recognised by its name and content or "
      "given by --source-kind:";
  for (const auto& kind : sources.entries()) {
    text += fmt::format("\n  {:<11} {}", kind.name, kind.help);
  }
  return text;
}

std::string subset_help() {
  return fmt::format("write only these samples, counted after shuffling: {}; 0: all",
                     data::kSubsetForms);
}

Arguments declare(const data::DataParts& parts) {
  Arguments arguments("write SOURCE OUT.beton [options]", source_help(parts.sources));
  arguments.positional("SOURCE", "the dataset to read");
  arguments.positional(
      "OUT.beton", "the file to write; an existing file is replaced when the new one is complete");
  add_source_options(arguments.options(), parts.sources);
  add_field_options(arguments.options(), parts.fields);
  arguments.options().add_options()(
      kPresetOption, po::value<std::string>()->value_name("NAME:VALUES"),
      "set several options together; ffcv-imagenet:RES,PROB,QUALITY sets the options of "
      "ffcv-imagenet's write_imagenet.sh: --image.mode proportion --image.max_resolution RES "
      "--image.compress_probability PROB --image.quality QUALITY")("workers", number(0),
                                                                   kWorkersHelp)(
      "page-size", number(static_cast<std::int64_t>(data::kDefaultPageBytes)),
      "page size in bytes; a power of two, 2 MiB to 2 GiB. Each sample must fit in one page")(
      "shuffle", po::bool_switch(), kShuffleHelp)(
      "field-kind", po::value<std::vector<std::string>>()->composing()->value_name("NAME=KIND"),
      "how to store a field; KIND is bytes, pixels, ragged or any other field type that `precast "
      "list fields` shows")("subset",
                            po::value<std::string>()->default_value("0")->value_name("SUBSET"),
                            subset_help().c_str())("seed", number(0), kSeedHelp)(
      "no-checksums", po::bool_switch(), kNoChecksumsHelp)(
      "index", po::bool_switch(),
      "write the JPEG index too; the sidecar OUT.beton.jidx, as `precast index` writes it")(
      "every", number(data::kDefaultCheckpointInterval), kEveryHelp)("json", po::bool_switch(),
                                                                     kJsonHelp);
  add_layout_option(arguments.options());
  add_plugin_option(arguments.options());
  arguments.example("precast write photos/train train.beton --image.max_resolution 256",
                    "a folder with a subfolder of images for each class");
  arguments.example(
      "precast write imagenet train.beton --preset ffcv-imagenet:500,0.50,90 --index");
  arguments.exit_codes({3, 129, 130, 143});
  return arguments;
}

/// Replaces `--preset ffcv-imagenet:RES,PROB,QUALITY` with the options that ffcv-imagenet's
/// write_imagenet.sh sets. @throws ConfigError
std::vector<std::string> expand_preset(std::vector<std::string> args) {
  const std::string option = std::string("--") + kPresetOption;
  const auto is_preset = [&](auto& arg) { return arg == option || arg.starts_with(option + "="); };
  const auto at = std::ranges::find_if(args, is_preset);
  if (at == args.end()) return args;
  const bool two = *at == option;
  if (two && at + 1 == args.end()) return args;  // Arguments::parse() reports this
  const std::string given = two ? *(at + 1) : at->substr(option.size() + 1);
  args.erase(at, at + (two ? 2 : 1));
  if (std::ranges::any_of(args, is_preset))
    throw ConfigError(option + ": expected one, got several");
  constexpr std::string_view kName = "ffcv-imagenet:";
  std::vector<std::string> values;
  if (given.starts_with(kName)) values = split_list(kPresetOption, given.substr(kName.size()));
  if (values.size() != 3)
    throw ConfigError(fmt::format(
        "{}: expected ffcv-imagenet:RES,PROB,QUALITY, such as ffcv-imagenet:500,0.50,90, got '{}'",
        option, given));
  args.insert(args.end(),
              {"--image.mode=proportion", "--image.max_resolution=" + values[0],
               "--image.compress_probability=" + values[1], "--image.quality=" + values[2]});
  return args;
}

/// The options under the names used in files (with underscores), except those that describe the
/// source or do not change the file's contents.
std::map<std::string, std::string> written_options(
    const std::map<std::string, std::string>& options) {
  constexpr std::string_view kNotRecorded[] = {
      "SOURCE", "source-kind", "labels", "class-names", "class-column", "texts", "documents",
      "floats", "OUT.beton",   "plugin", "workers",     "index",        "every", "json"};
  std::map<std::string, std::string> written;
  for (const auto& [option, value] : options) {
    if (std::ranges::find(kNotRecorded, option) != std::end(kNotRecorded)) continue;
    std::string name = option;
    // Both options were once called --field, and files still use this name.
    if (name == "field-kind" || name == "field-layout") name = "field";
    std::ranges::replace(name, '-', '_');
    std::string& text = written[name];
    text += (text.empty() ? "" : " ") + value;
  }
  return written;
}

/// The description to store in the file. It contains no paths, and nothing else that would differ
/// on another machine.
/// @param class_field class_field_of().
data::FileInfo describe_file(const Arguments& arguments, const data::Source& source,
                             const std::string& class_field) {
  data::FileInfo info{.classes = source.other_class_names(), .written = {}};
  if (!class_field.empty()) info.classes[class_field] = source.class_names();
  info.written = written_options(arguments.texts());
  info.written["subset"] =
      data::subset_identity(arguments.text("subset"), source.size(), arguments.text("SOURCE"));
  info.written["precast"] = kVersion;
  return info;
}

/// The indices of the source's samples to write, in this order.
std::vector<std::uint64_t> choose_samples(const Arguments& arguments, std::uint64_t available) {
  const auto seed = static_cast<std::uint64_t>(integer(arguments, "seed", 0, INT64_MAX));
  std::vector<std::uint64_t> order(available);
  std::iota(order.begin(), order.end(), 0);
  if (arguments.get<bool>("shuffle")) {
    order = random_permutation(available, seed, 0, RandomUse::shuffle_on_write);
  }
  const std::string subset = arguments.text("subset");
  if (subset == "0") return order;
  try {
    const data::SampleSet chosen = data::choose_subset(subset, available, arguments.text("SOURCE"));
    std::vector<std::uint64_t> kept;
    for (std::uint64_t i = 0; i < chosen.size(); ++i) kept.push_back(order[chosen[i]]);
    return kept;
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("--") + error.what());
  }
}

/// The labels of the source's classes that no written sample has. @param class_field
/// class_field_of().
std::vector<std::int64_t> absent_classes(const std::string& out, const data::Source& source,
                                         const std::string& class_field) {
  if (class_field.empty()) return {};
  const data::BetonReader written(out);
  const auto present =
      data::labels_of(written, written.field(class_field), data::SampleSet(0, written.size()));
  std::vector<std::int64_t> absent;
  for (std::int64_t label = 0; std::cmp_less(label, source.class_names().size()); ++label)
    if (!present.contains(label)) absent.push_back(label);
  return absent;
}

/// What `write` reports.
struct Written {
  std::string out;
  const data::Source& source;
  const std::vector<data::SourceField>& fields;
  std::string class_field;
  data::WriteSummary summary;
  std::vector<std::int64_t> absent_classes;
};

data::Tally counts_of(const Written& written) {
  data::Tally counts = written.summary.tally;
  for (const auto& [note, count] : written.source.notes()) counts[note] += count;
  if (!written.summary.skipped.empty()) counts["skipped_samples"] = written.summary.skipped.size();
  return counts;
}

double rate_of(const data::WriteSummary& summary) {
  return static_cast<double>(summary.samples) / std::max(summary.seconds, 1e-9);
}

nlohmann::ordered_json written_as_json(const Written& written) {
  const data::Source& source = written.source;
  auto skipped_files = nlohmann::ordered_json::array();
  for (const auto& [reason, files] : source.skipped_files().by_reason())
    skipped_files.push_back({{"reason", reason}, {"count", files.count}, {"first", files.first}});
  return {{"file", written.out},
          {"samples", written.summary.samples},
          {"skipped", skipped_json(written.summary.skipped)},
          {"skipped_files", skipped_files},
          {"classes", source.class_names()},
          {"class_field", written.class_field},
          {"absent_classes", written.absent_classes},
          {"pages", written.summary.pages},
          {"bytes", written.summary.file_bytes},
          {"index_bytes", written.summary.index_bytes},
          {"seconds", written.summary.seconds},
          {"images_per_second", rate_of(written.summary)},
          {"counts", counts_of(written)}};
}

/// Prints the counts of written samples, then those of the source, then the skipped samples and
/// files.
void print_counts(const Written& written) {
  if (!written.summary.tally.empty()) fmt::print("counts: {}\n", tally_text(written.summary.tally));
  data::Tally notes = written.source.notes();
  const auto& skipped_files = written.source.skipped_files().by_reason();
  // The lines below report these files by reason.
  if (!skipped_files.empty()) notes.erase("skipped_files");
  if (!notes.empty()) fmt::print("source: {}\n", tally_text(notes));
  if (!written.summary.skipped.empty())
    fmt::print("skipped samples: {}\n", written.summary.skipped.size());
  for (const auto& [reason, files] : skipped_files) {
    fmt::print("skipped files: {} {} ({}{})\n", files.count, reason, fmt::join(files.first, ", "),
               files.count > files.first.size() ? " ..." : "");
  }
}

void print_summary(const Written& written) {
  const data::WriteSummary& summary = written.summary;
  const std::vector<std::string>& names = written.source.class_names();
  // Numeric labels have no names, and their classes are not counted.
  fmt::print("{}: {}, {}{} in {}\n", written.out, format_count(summary.samples, "sample"),
             names.empty() ? "" : format_count(names.size(), "class") + ", ",
             format_bytes(static_cast<double>(summary.file_bytes)),
             format_count(summary.pages, "page"));
  if (summary.index_bytes > 0)
    fmt::print("{}: {}\n", data::jpeg_sidecar(written.out).string(),
               format_bytes(static_cast<double>(summary.index_bytes)));
  print_chosen_fields(written.source, written.fields);
  fmt::print("time: {}, {:.0f} images/s\n", format_duration(summary.seconds), rate_of(summary));
  print_counts(written);
  if (!written.absent_classes.empty()) {
    fmt::print(stderr, "note: {} of {} have no samples: {}\n", written.absent_classes.size(),
               format_count(names.size(), "class"),
               data::class_list_text(written.absent_classes, names));
  }
}

/// @throws ConfigError
std::size_t index_interval(const Arguments& arguments) {
  const auto interval = integer(arguments, "every", 1, data::kMaxCheckpointInterval);
  if (arguments.get<bool>("index")) return static_cast<std::size_t>(interval);
  if (arguments.given("every"))
    throw ConfigError("--every: expected --index as well, because no index is written without it");
  return 0;
}

data::WriteOptions write_options(const Arguments& arguments) {
  data::WriteOptions options;
  options.index_interval = index_interval(arguments);
  options.layout.page_bytes =
      static_cast<std::uint64_t>(integer(arguments, "page-size", 0, INT64_MAX));
  options.layout.checksums = !arguments.get<bool>("no-checksums");
  options.workers = worker_count(arguments);
  options.on_corrupt = data::corrupt_policy(arguments.text("on-corrupt"));
  return options;
}

/// @param order the indices of the samples in the source. @throws the errors of
/// data::write_dataset()
data::WriteSummary write_samples(const std::string& out, const std::vector<data::FieldPlan>& fields,
                                 const data::Source& source,
                                 const std::vector<std::uint64_t>& order,
                                 const data::WriteOptions& options) {
  try {
    return data::write_dataset(
        out, fields, order.size(), [&](std::uint64_t i) { return source.sample(order[i]); },
        options);
  } catch (const data::DamagedSample& error) {
    throw Error(fmt::format("{}. --on-corrupt skip leaves out damaged samples", error.what()),
                error.exit_code());
  }
}

/// @throws ConfigError if the output file is an input file.
void check_files(const Arguments& arguments) {
  std::vector<std::filesystem::path> inputs = data::source_paths(arguments.text("SOURCE"));
  for (const char* list : {"labels", "class-names"}) inputs.emplace_back(arguments.text(list));
  check_output(arguments.text("OUT.beton"), inputs);
}

}  // namespace

int run_write(const std::vector<std::string>& given) {
  data::DataParts parts = make_data_parts();
  const std::vector<std::string> args = expand_preset(given);
  // Plug-ins are loaded before the options are declared, because their fields add options.
  add_data_plugins(open_plugins(args), parts);
  Arguments arguments = declare(parts);
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const data::FieldOptions options = field_options(arguments, parts.fields);
  data::WriteOptions write = write_options(arguments);
  std::vector<std::string> choices;
  if (arguments.has("field-kind")) choices = arguments.get<std::vector<std::string>>("field-kind");
  const data::BetonOptions layouts = read_layouts(arguments);
  check_files(arguments);
  const auto source = open_chosen_source(arguments, parts.sources, layouts, kept_columns(choices));
  const std::vector<std::uint64_t> order = choose_samples(arguments, source->size());
  const auto chosen = choose_fields(choices, source->fields(), parts.fields);
  check_field_options(arguments, parts.fields, chosen);
  const std::uint64_t first =
      write.on_corrupt == data::CorruptPolicy::skip
          ? find_usable_sample(chosen, *source, order, options, parts.fields)
          : order[0];
  const auto fields = plan_fields(chosen, *source, first, options, parts.fields);
  check_kinds(fields, chosen, *source, first, options, parts.fields);
  const std::string class_field = class_field_of(*source, chosen);
  write.layout.info = data::file_info_text(describe_file(arguments, *source, class_field));

  const std::string out = arguments.text("OUT.beton");
  data::WriteSummary summary =
      MonitoredWrite("write").run(out, order.size(), write, [&](const data::WriteOptions& watched) {
        return write_samples(out, fields, *source, order, watched);
      });
  // Reports identify skipped samples by their position in the source.
  for (data::SkippedSample& sample : summary.skipped) sample.index = order[sample.index];
  print_skipped(summary.skipped);
  const Written written{out,
                        *source,
                        chosen,
                        class_field,
                        std::move(summary),
                        absent_classes(out, *source, class_field)};
  arguments.get<bool>("json") ? print_json(written_as_json(written)) : print_summary(written);
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
