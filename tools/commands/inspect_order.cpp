#include "tools/commands/inspect_order.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "data/order/labels.h"
#include "data/order/mixing.h"
#include "data/order/order.h"
#include "data/order/pages.h"
#include "framework/core/error.h"
#include "framework/core/system.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stopwatch.h"
#include "tools/commands/sample_choice.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

double pages_per_batch(const data::BetonReader& reader, const std::vector<std::uint64_t>& ids,
                       std::uint64_t batch_size) {
  std::uint64_t pages = 0;
  const std::uint64_t batches = ids.size() / batch_size;
  for (std::uint64_t b = 0; b < batches; ++b) {
    std::set<std::uint64_t> touched;
    for (std::uint64_t i = b * batch_size; i < (b + 1) * batch_size; ++i)
      touched.insert(data::page_of(reader, ids[i]));
    pages += touched.size();
  }
  return static_cast<double>(pages) / static_cast<double>(batches);
}

std::int64_t shown_batch_size(const data::BetonReader& reader, const Arguments& arguments) {
  const auto samples = static_cast<std::int64_t>(reader.size());
  return arguments.given("global-batch-size")
             ? integer(arguments, "global-batch-size", 1, samples)
             : std::min(arguments.get<std::int64_t>("global-batch-size"), samples);
}

/// How well the order mixes the classes of the label field; an empty object if there is none.
Json describe_mixing(const data::BetonReader& reader, std::size_t field,
                     const std::vector<std::uint64_t>& ids, std::uint64_t batch_size) {
  if (field == reader.fields().size()) return Json::object();
  std::vector<std::int64_t> labels;
  for (const std::uint64_t id : ids) labels.push_back(reader.integer(id, field));
  const data::ClassMixing mixing = data::class_mixing(labels, batch_size);
  return {{"classes_per_batch", mixing.classes_per_batch},
          {"classes_per_random_batch", mixing.expected_classes_per_batch},
          {"class_mixing", mixing.ratio()}};
}

}  // namespace

void add_order_options(Arguments& arguments) {
  arguments.options().add_options()(
      "order", po::value<std::string>()->value_name("NAME"),
      "order of the samples in an epoch; shows how well it mixes the classes")(
      "global-batch-size", number(256),
      "samples per batch over all ranks; with --order; default: 256, or the number of samples of a "
      "smaller file")("shuffle-window-mb", po::value<std::string>()->default_value("auto"),
                      "size in MiB of the pages from which samples are drawn at the same time; "
                      "auto, ffcv or a number; with --order quasi_random")(
      "seed", po::value<std::uint64_t>()->default_value(0),
      (std::string(kSeedHelp) + "; with --order").c_str());
}

Json describe_order(const data::BetonReader& reader, const Arguments& arguments) {
  const std::int64_t batch_size = shown_batch_size(reader, arguments);
  const auto batch = static_cast<std::uint64_t>(batch_size);
  const std::uint64_t page_bytes = reader.header().page_bytes;
  const std::uint64_t window = data::window_pages(arguments.text("shuffle-window-mb"), batch_size,
                                                  page_bytes, memory_limit_bytes());
  const std::size_t label = arguments.given("label-field") ? chosen_label_field(arguments, reader)
                                                           : data::default_label_field(reader);
  const auto order = data::make_order(reader, {.name = arguments.text("order"),
                                               .label_field = arguments.text("label-field"),
                                               .window_pages = window});
  const Stopwatch watch;
  const std::vector<std::uint64_t> ids =
      order->ids(arguments.get<std::uint64_t>("seed"), /*epoch=*/0);
  Json report = {{"order", arguments.text("order")},
                 {"positions", ids.size()},
                 {"batch_size", batch},
                 {"seconds", watch.seconds()}};
  if (arguments.text("order") == "quasi_random") report["window_mb"] = window * page_bytes >> 20;
  report["pages_per_batch"] = pages_per_batch(reader, ids, batch);
  report.update(describe_mixing(reader, label, ids, batch));
  return report;
}

void print_order(const Json& report) {
  fmt::print(
      "order {}: {} positions, computed in {:.3f} s; a batch of {} has samples from {:.1f} pages",
      report["order"].get<std::string>(), report["positions"].get<std::uint64_t>(),
      report["seconds"].get<double>(), report["batch_size"].get<std::uint64_t>(),
      report["pages_per_batch"].get<double>());
  if (report.contains("class_mixing")) {
    fmt::print(" and {:.1f} classes, {:.1f} in a random order (mixing {:.3f})",
               report["classes_per_batch"].get<double>(),
               report["classes_per_random_batch"].get<double>(),
               report["class_mixing"].get<double>());
  }
  fmt::print("\n");
}

}  // namespace precast::tools
