#include "tools/index.h"

#include <fmt/core.h>

#include <boost/program_options.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "data/decode/index_dataset.h"
#include "framework/core/error.h"
#include "framework/core/progress.h"
#include "framework/core/system.h"
#include "tools/arguments.h"
#include "tools/custom_fields.h"

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

void print(const std::filesystem::path& path, const data::IndexSummary& summary, double seconds,
           bool json) {
  const auto bytes = std::filesystem::file_size(path);
  if (json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"index", path.string()},
                                              {"bytes", bytes},
                                              {"jpegs", summary.jpegs},
                                              {"without_checkpoints", summary.without},
                                              {"seconds", seconds}}
                           .dump(2));
    return;
  }
  fmt::print("{}: {}, {} JPEGs in {}\n", path.string(), format_bytes(static_cast<double>(bytes)),
             summary.jpegs, format_duration(seconds));
  if (summary.without > 0)
    fmt::print("{} of them are of a kind that libjpeg decodes, without the index\n",
               summary.without);
}

}  // namespace

int run_index(const std::vector<std::string>& args) {
  Arguments arguments(
      "index FILE.beton [options]",
      "Writes FILE.beton.jidx: places from which crops of the first image field's JPEGs can be\n"
      "decoded alone. Loaders\n"
      "find it beside the dataset, and processes share it. Without it each process finds the "
      "places\n"
      "anew in its first epoch.");
  arguments.positional("FILE.beton", "the dataset");
  arguments.options().add_options()(
      "interval", po::value<std::int64_t>()->default_value(data::JpegIndex::kDefaultInterval),
      "MCUs (16 x 16 px in most files) from one place to the next")(
      "workers", po::value<std::int64_t>()->default_value(usable_cores()), "threads")(
      "json", "print the result as JSON");
  add_layout_option(arguments.options());
  if (!arguments.parse(args)) return 0;
  const auto interval = arguments.get<std::int64_t>("interval");
  const auto workers = arguments.get<std::int64_t>("workers");
  check_range("interval", interval, 1, data::JpegIndex::kMaxInterval);
  check_range("workers", workers, 1, 1024);
  const data::BetonReader reader(arguments.text("FILE.beton"), data::BlobAccess::mapped,
                                 read_layouts(arguments));
  const std::size_t field = first_image(reader);

  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Progress progress;
  data::IndexSummary summary;
  const auto index = data::index_dataset(
      reader, field, static_cast<std::size_t>(interval), static_cast<int>(workers),
      [&](std::uint64_t done) {
        if (!progress.due()) return;
        const double rate = static_cast<double>(done) / seconds();
        progress.show(
            fmt::format("index {}/{} samples, {:.0f} img/s, {} left", done, reader.size(), rate,
                        format_duration(static_cast<double>(reader.size() - done) / rate)));
      },
      summary);
  progress.clear();
  const auto path = data::JpegIndex::sidecar(reader.path());
  index->write(path, reader.fingerprint());
  print(path, summary, seconds(), arguments.has("json"));
  return 0;
}

}  // namespace precast::tools
