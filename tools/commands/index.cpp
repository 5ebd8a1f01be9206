#include "tools/commands/index.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>
#include <span>

#include "data/beton/reader.h"
#include "data/jobs/index_dataset.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/format.h"
#include "framework/core/progress.h"
#include "framework/process/stop_signals.h"
#include "tools/cli/arguments.h"
#include "tools/cli/custom_fields.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stopwatch.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

std::size_t first_image(const data::BetonReader& reader) {
  const std::size_t field = reader.first_field(data::FieldType::image);
  if (field >= reader.fields().size())
    throw DataError(
        fmt::format("{}: expected an RGB image field, got none", reader.path().string()));
  return field;
}

nlohmann::ordered_json describe(const std::filesystem::path& path, std::size_t interval,
                                const data::IndexSummary& summary, double seconds) {
  auto damaged = nlohmann::ordered_json::array();
  for (const auto& [sample, error] : summary.damaged)
    damaged.push_back({{"sample", sample}, {"error", error}});
  return {{"index", path.string()},
          {"interval", interval},
          {"bytes", std::filesystem::file_size(path)},
          {"jpegs", summary.jpegs},
          {"without_checkpoints", summary.unindexed},
          {"damaged", damaged},
          {"seconds", seconds}};
}

void print(const std::filesystem::path& path, const data::IndexSummary& summary, double seconds) {
  fmt::print("{}: {}, {} in {}\n", path.string(),
             format_bytes(static_cast<double>(std::filesystem::file_size(path))),
             format_count(summary.jpegs, "JPEG"), format_duration(seconds));
  if (summary.unindexed > 0)
    fmt::print(
        "JPEGs left out of the index, because libjpeg decodes them or because they are damaged "
        "below the first rows: {}\n",
        summary.unindexed);
  const auto& damaged = summary.damaged;
  if (damaged.empty()) return;
  fmt::print("JPEGs left out of the index, because they are damaged: {}\n", damaged.size());
  constexpr std::size_t kMaxShown = 10;
  for (const auto& [sample, error] : std::span(damaged).first(std::min(damaged.size(), kMaxShown)))
    fmt::print("  sample {}: {}\n", sample, error);
  if (damaged.size() > kMaxShown)
    fmt::print("  ... and {} more; --json lists all\n", damaged.size() - kMaxShown);
}

/// Reads all images and writes the sidecar. @throws Error with the signal's exit code if a signal
/// arrives; IoError, before anything is read, if the sidecar cannot be written.
data::IndexSummary make_index(const data::BetonReader& reader, std::size_t interval, int workers) {
  const std::size_t field = first_image(reader);
  const auto path = data::jpeg_sidecar(reader.path());
  const StopSignals signals;
  static_cast<void>(AtomicFile(path));  // throws if it cannot be written
  Progress progress;
  const auto show = [&](std::uint64_t done) {
    if (progress.due())
      progress.show(fmt::format("index {}/{} samples, {}", done, reader.size(),
                                progress.rate(done, reader.size())));
  };
  data::IndexSummary summary;
  const auto index = data::index_dataset(
      reader, field, interval,
      {.workers = workers, .on_progress = show, .cancel = &StopSignals::requested()}, summary);
  progress.clear();
  if (summary.cancelled || !index->write(path, reader.fingerprint(), &StopSignals::requested()))
    throw Error(path.string() + ": stopped before the file was complete",
                static_cast<ExitCode>(StopSignals::exit_code()));
  return summary;
}

Arguments index_arguments() {
  Arguments arguments(
      "index FILE.beton [options]",
      "Writes the sidecar FILE.beton.jidx: the JPEG index of the first image field. With it, crops "
      "are decoded without the data before them. Loaders find the sidecar next to the dataset, and "
      "processes share it. Without it, each training run builds its own index in the first epoch, "
      "which its ranks on a host share. Damaged images are reported and left out.");
  arguments.positional("FILE.beton", "the dataset");
  arguments.options().add_options()("every", number(data::kDefaultCheckpointInterval), kEveryHelp)(
      "workers", number(0), kWorkersHelp)("json", po::bool_switch(), kJsonHelp);
  add_layout_option(arguments.options());
  arguments.example("precast index train.beton");
  arguments.exit_codes({3, 129, 130, 143});
  return arguments;
}

}  // namespace

int run_index(const std::vector<std::string>& args) {
  Arguments arguments = index_arguments();
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const auto interval =
      static_cast<std::size_t>(integer(arguments, "every", 1, data::kMaxCheckpointInterval));
  const int workers = worker_count(arguments);
  const data::BetonReader reader(arguments.text("FILE.beton"), data::BlobAccess::mapped,
                                 read_layouts(arguments));
  const Stopwatch watch;
  const auto summary = make_index(reader, interval, workers);
  const auto path = data::jpeg_sidecar(reader.path());
  if (arguments.get<bool>("json")) {
    const auto report = describe(path, interval, summary, watch.seconds());
    print_json(report);
  } else {
    print(path, summary, watch.seconds());
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
