#include "tools/commands/select.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "data/beton/file_info.h"
#include "data/jobs/copy_dataset.h"
#include "data/jobs/field_plans.h"
#include "data/order/split.h"
#include "data/sources/beton.h"
#include "data/write/register.h"
#include "framework/core/error.h"
#include "framework/core/parse_number.h"
#include "framework/core/rng.h"
#include "tools/cli/custom_fields.h"
#include "tools/cli/field_options.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"
#include "tools/commands/dataset_output.h"
#include "tools/commands/sample_choice.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using Ids = std::vector<std::uint64_t>;

Arguments declare() {
  Arguments arguments(
      "select IN.beton OUT.beton... [options]",
      "Writes some samples of a .beton file, in the file's order unless --shuffle is given. With "
      "--split, it divides them among several files. Values are copied unchanged. With an option "
      "--image.*, however, images are encoded again, as by `precast write`; without "
      "--image.mode, JPEGs are stored as JPEG and pixels as pixels.");
  arguments.positional("IN.beton", "the file to read");
  arguments.positional_list("OUT.beton", "the file to write; with --split, one file for each part");
  add_choice_options(arguments);
  arguments.options().add_options()("fraction", po::value<double>(),
                                    "fraction of the samples drawn at random; 0.1 is a tenth")(
      "count", po::value<std::int64_t>(), "number of samples drawn at random")(
      "split", po::value<std::string>()->value_name("SHARES"),
      "fraction of the samples for each file to write; 0.9,0.1: nine tenths of the samples, drawn "
      "at random, for the first file, and the remaining samples for the second")(
      "stratify", po::bool_switch(),
      "keep the proportions of the classes in each file; with --count, --fraction or --split")(
      "shuffle", po::bool_switch(), kShuffleHelp)("seed", number(0), kSeedHelp)(
      "workers", number(0), kWorkersHelp)(
      "page-size", number(0),
      "page size in bytes; 0: as in IN.beton, but at least 8 MiB if an option --image.* is given")(
      "no-checksums", po::bool_switch(), kNoChecksumsHelp)("json", po::bool_switch(), kJsonHelp);
  add_layout_option(arguments.options());
  add_field_options(arguments.options(), data::make_fields(), "keep");
  arguments.example("precast select train.beton small.beton --fraction 0.1 --stratify");
  arguments.example("precast select all.beton train.beton val.beton --split 0.9,0.1 --seed 1");
  arguments.exit_codes({3, 129, 130, 143});
  return arguments;
}

std::uint64_t seed_of(const Arguments& arguments) {
  return static_cast<std::uint64_t>(integer(arguments, "seed", 0, INT64_MAX));
}

/// The fractions of --split, one for each file. @throws ConfigError
std::vector<double> parse_shares(const std::string& text, std::size_t files) {
  std::vector<double> shares;
  for (const std::string& part : split_list("split", text)) {
    const auto share = parse_number<double>(part);
    if (!share || !(*share > 0))
      throw ConfigError(fmt::format("--split: expected fractions such as 0.9,0.1, got '{}'", text));
    shares.push_back(*share);
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (std::abs(sum - 1) > 1e-6)
    throw ConfigError(fmt::format("--split: expected fractions that add up to 1, got {}", text));
  if (shares.size() != files)
    throw ConfigError(
        fmt::format("--split: expected {} files to write, got {}. usage: precast "
                    "select IN.beton A.beton B.beton --split 0.9,0.1",
                    shares.size(), files));
  return shares;
}

/// The number of samples that --count or --fraction requests. @throws ConfigError
std::uint64_t drawn_count(const Arguments& arguments, std::uint64_t available) {
  if (arguments.has("count"))
    return static_cast<std::uint64_t>(
        integer(arguments, "count", 1, static_cast<std::int64_t>(available)));
  const auto fraction = arguments.get<double>("fraction");
  if (!(fraction > 0 && fraction <= 1))
    throw ConfigError(fmt::format("--fraction: expected a number in (0, 1], got {}", fraction));
  const auto count =
      static_cast<std::uint64_t>(std::llround(fraction * static_cast<double>(available)));
  if (count == 0)
    throw ConfigError(fmt::format(
        "--fraction: expected a fraction that selects at least one sample, got {} of {} samples",
        fraction, available));
  return count;
}

/// Distributes samples at random over files of the given sizes; with --stratify, each class
/// separately.
std::vector<Ids> split(const Arguments& arguments, const data::BetonReader& reader,
                       const Ids& samples, const std::vector<std::uint64_t>& sizes) {
  std::vector<std::int64_t> classes(samples.size(), 0);
  if (arguments.get<bool>("stratify")) {
    const std::size_t field = chosen_label_field(arguments, reader);
    std::ranges::transform(samples, classes.begin(),
                           [&](std::uint64_t sample) { return reader.integer(sample, field); });
  }
  std::vector<Ids> parts = data::split_stratified(classes, sizes, seed_of(arguments));
  for (Ids& part : parts)
    std::ranges::transform(part, part.begin(), [&](auto i) { return samples[i]; });
  return parts;
}

/// For each file to write, its samples in the order in which they are written.
std::vector<Ids> choose(const Arguments& arguments, const data::BetonReader& reader,
                        std::size_t files) {
  Ids samples = choose_samples_or_all(arguments, reader);
  if (arguments.has("count") || arguments.has("fraction")) {
    const std::uint64_t count = drawn_count(arguments, samples.size());
    samples = std::move(split(arguments, reader, samples, {count, samples.size() - count})[0]);
  }
  std::vector<Ids> parts = {std::move(samples)};
  if (arguments.has("split")) {
    const auto shares = parse_shares(arguments.text("split"), files);
    const auto sizes = data::part_sizes(shares, parts[0].size());
    if (std::ranges::find(sizes, 0U) != sizes.end())
      throw ConfigError(
          fmt::format("--split: expected at least one sample for each file, got {} samples in all",
                      parts[0].size()));
    parts = split(arguments, reader, parts[0], sizes);
  }
  if (!arguments.get<bool>("shuffle")) return parts;
  for (Ids& part : parts) {
    const Ids order =
        random_permutation(part.size(), seed_of(arguments), 0, RandomUse::shuffle_on_write);
    Ids shuffled(part.size());
    std::ranges::transform(order, shuffled.begin(), [&](auto i) { return part[i]; });
    part = std::move(shuffled);
  }
  return parts;
}

/// Writes samples of a file, either byte for byte or with images encoded again.
class PartWriter {
 public:
  PartWriter(const Arguments& arguments, const data::BetonReader& reader)
      : reader_(reader), reencodes_(!given_field_option(arguments, registry_).empty()) {
    options_.workers = worker_count(arguments);
    data::BetonLayout& layout = options_.layout;
    layout.checksums = !arguments.get<bool>("no-checksums");
    layout.info = reader.sums().info();
    layout.page_bytes = static_cast<std::uint64_t>(integer(arguments, "page-size", 0, INT64_MAX));
    if (layout.page_bytes == 0) {
      layout.page_bytes = data::copy_page_bytes({&reader});
      // Images that are encoded again can become larger: a JPEG may become pixels.
      if (reencodes_) layout.page_bytes = std::max(layout.page_bytes, data::kDefaultPageBytes);
    }
    if (!reencodes_) return;
    fields_ = field_options(arguments, registry_);
    source_ = data::open_beton(reader);
    check_field_options(arguments, registry_, source_->fields());
    data::FileInfo info = data::file_info_of(reader);
    for (const auto& [name, text] : arguments.texts())
      if (name.starts_with("image.") || name == "seed") info.written[name] = text;
    layout.info = data::file_info_text(info);
  }

  /// @param out the name that the user gave. @param write_path the path under which it is written
  data::WriteSummary write(const MonitoredWrite& watched, const std::string& out,
                           const std::string& write_path, const Ids& ids) const {
    return watched.run(out, ids.size(), options_, [&](const data::WriteOptions& options) {
      return reencodes_ ? reencode(write_path, ids, options) : copy(write_path, ids, options);
    });
  }

 private:
  [[nodiscard]] data::WriteSummary copy(const std::string& out, const Ids& ids,
                                        const data::WriteOptions& options) const {
    return data::copy_dataset(out,
                              {.files = {&reader_},
                               .num_samples = ids.size(),
                               .sample =
                                   [&](std::uint64_t i) {
                                     return data::CopiedSample{0, ids[i]};
                                   },
                               .relabel = {}},
                              options);
  }
  [[nodiscard]] data::WriteSummary reencode(const std::string& out, const Ids& ids,
                                            const data::WriteOptions& options) const {
    const auto plans = plan_fields(source_->fields(), *source_, ids[0], fields_, registry_);
    return data::write_dataset(
        out, plans, ids.size(), [&](std::uint64_t i) { return source_->sample(ids[i]); }, options);
  }

  const data::BetonReader& reader_;
  data::WriteOptions options_;
  data::FieldRegistry registry_ = data::make_fields();
  bool reencodes_;
  data::FieldOptions fields_;
  std::unique_ptr<data::Source> source_;
};

/// Checks the options. @return the files to write. @throws ConfigError for options that contradict
/// each other.
std::vector<std::string> check(const Arguments& arguments) {
  if (arguments.has("count") && arguments.has("fraction"))
    throw ConfigError("expected --count or --fraction, got both");
  const bool draws = arguments.has("count") || arguments.has("fraction") || arguments.has("split");
  if (arguments.get<bool>("stratify") && !draws)
    throw ConfigError(
        "--stratify: expected --count, --fraction or --split as well, got none of them");
  if (arguments.given("label-field") && !arguments.has("classes") &&
      !arguments.get<bool>("stratify"))
    throw ConfigError(
        "--label-field: expected --classes or --stratify as well, which read the labels, got "
        "neither");
  const auto& outs = arguments.get<std::vector<std::string>>("OUT.beton");
  for (const std::string& out : outs) check_output(out, {arguments.text("IN.beton")});
  if (outs.size() > 1 && !arguments.has("split"))
    throw ConfigError(
        fmt::format("expected one file to write, or --split, got {} files", outs.size()));
  return outs;
}

}  // namespace

int run_select(const std::vector<std::string>& args) {
  Arguments arguments = declare();
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const std::vector<std::string> outs = check(arguments);
  OutputFiles outputs(outs);
  const data::BetonReader reader(arguments.text("IN.beton"), data::BlobAccess::mapped,
                                 read_layouts(arguments));
  const std::vector<Ids> parts = choose(arguments, reader, outs.size());
  const PartWriter writer(arguments, reader);
  const MonitoredWrite watched("select");
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  std::vector<data::WriteSummary> summaries;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    summaries.push_back(writer.write(watched, outs[i], outputs.write_path(i), parts[i]));
    files.push_back(written_json(outs[i], summaries.back()));
  }
  outputs.publish();
  if (arguments.get<bool>("json")) {
    print_json(nlohmann::ordered_json{{"from", arguments.text("IN.beton")}, {"files", files}});
  } else {
    for (std::size_t i = 0; i < outs.size(); ++i) print_written(outs[i], summaries[i]);
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
