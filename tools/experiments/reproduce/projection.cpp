#include "tools/experiments/reproduce/projection.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <optional>

#include "data/order/subset.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/process/child_process.h"
#include "tools/bench/cost/cards.h"
#include "tools/experiments/reproduce/table_text.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr auto kCostTimeout = std::chrono::minutes(10);

/// Runs `bench step --model-cost` for a row. @return the JSON that the command wrote to `path`
ordered_json cost_of(const TableRow& row, const std::vector<Setting>& settings,
                     const std::string& card, const std::filesystem::path& program,
                     const std::filesystem::path& path) {
  std::vector<std::string> command = {program.string(), "bench", "step", row.recipe.string()};
  for (const auto* some : {&row.settings, &settings}) {
    for (const Setting& one : *some) command.push_back(fmt::format("--{}={}", one.key, one.value));
  }
  for (const std::string& word : {std::string("--model-cost"), std::string("--card"), card,
                                  std::string("--output"), path.string()})
    command.push_back(word);
  const ChildResult run = run_child(command, kCostTimeout);
  if (run.exit_code != 0) {
    throw ConfigError(
        fmt::format("row {}: expected `bench step --model-cost` to exit with code 0, "
                    "got {}: {}",
                    row.id, run.exit_code, run.errors));
  }
  return ordered_json::parse(std::ifstream(path));
}

/// The number of samples in an epoch of a row that trains on a dataset with `train_images` samples.
/// @param data the keys data.* that the row reads
std::int64_t epoch_samples(const TableRow& row, std::int64_t train_images,
                           const ordered_json& data) {
  if (!data.at("filter").get<std::string>().empty()) {
    throw ConfigError(fmt::format(
        "--project: expected no data.filter, because the number of samples that it selects is not "
        "known without the dataset, got '{}' (row {}). Set data.subset instead",
        data.at("filter").get<std::string>(), row.id));
  }
  const auto samples = data::choose_subset(data.at("subset").get<std::string>(),
                                           static_cast<std::uint64_t>(train_images),
                                           fmt::format("train_images of the table, row {}", row.id))
                           .size();
  return static_cast<std::int64_t>(samples) * data.at("repeats").get<std::int64_t>();
}

const Card& find_card(const std::string& name) {
  return *parse_cards("project", name).front();
}

}  // namespace

ProjectedRow project_row(const TableRow& row, std::int64_t train_images, const ordered_json& cost) {
  const ordered_json& settings = cost.at("settings");
  ProjectedRow projected{.row = &row, .gpus = settings.at("ranks").get<int>()};
  projected.sizes = ordered_json::array();
  const std::int64_t step_images = settings.at("batch_size").get<std::int64_t>() * projected.gpus;
  // The last, incomplete batch of an epoch is dropped.
  const auto steps =
      static_cast<double>(epoch_samples(row, train_images, cost.at("data")) / step_images);
  for (const ordered_json& size : cost.at("image_sizes")) {
    const auto epochs = size.at("epochs").get<double>();
    const auto add = [&](const char* kernels, double& minutes) {
      const ordered_json& card = size.at(kernels).at("cards").at(0);
      minutes += epochs * steps * card.at("ms").get<double>() / 60e3;
      return card.at("images_per_second");
    };
    ordered_json entry = {{"image_size", size.at("image_size")}, {"epochs", size.at("epochs")}};
    entry["images_per_second"] = add("reference", projected.minutes);
    entry["fused_images_per_second"] = add("fused", projected.fused_minutes);
    entry["uncounted"] = size.at("uncounted");
    projected.sizes.push_back(std::move(entry));
  }
  return projected;
}

std::vector<ProjectedRow> project_rows(const ResultTable& table,
                                       const std::vector<const TableRow*>& rows,
                                       const std::vector<Setting>& settings,
                                       const std::string& card,
                                       const std::filesystem::path& program,
                                       const std::filesystem::path& folder) {
  if (parse_cards("project", card).size() != 1)
    throw ConfigError(fmt::format("--project: expected one card, got '{}'", card));
  if (table.train_images == 0) {
    throw ConfigError(
        "--project: expected train_images in the table, got none. The number of steps depends on "
        "it");
  }
  create_folders(folder / "projection");
  std::vector<ProjectedRow> projected;
  for (const TableRow* row : rows) {
    const std::filesystem::path details = folder / "projection" / (row->id + ".json");
    projected.push_back(
        project_row(*row, table.train_images, cost_of(*row, settings, card, program, details)));
  }
  return projected;
}

std::string projection_markdown(const ResultTable& table, const std::string& card,
                                const std::vector<ProjectedRow>& rows) {
  std::string out = fmt::format(
      "# Projection: {}\n\n"
      "**Not measured.** Minutes of training steps on {}, computed with the cost model of `precast "
      "bench step --model-cost`, without evaluation, and assuming that data is always ready. "
      "`fused`: with fused kernels. {}\n\n"
      "| row | model | GPUs | projected minutes | fused | published minutes | published on |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n",
      markdown_cell(table.title), find_card(card).title,
      is_checked(find_card(card))
          ? "tools/bench/cost/README.md compares the model with published figures of this card."
          : "The model has not been checked against published figures of this card.");
  for (const ProjectedRow& row : rows) {
    const PublishedFigures published = row.row->compared_with();
    fmt::format_to(std::back_inserter(out), "| {} | {} | {} | {} | {} | {} | {} |\n", row.row->id,
                   markdown_cell(row.row->model), row.gpus,
                   minutes_text(std::optional(row.minutes)),
                   minutes_text(std::optional(row.fused_minutes)), minutes_text(published.minutes),
                   published.hardware.empty() ? kNoFigure : markdown_cell(published.hardware));
  }
  return out;
}

ordered_json projection_json(const ResultTable& table, const std::string& card,
                             const std::vector<ProjectedRow>& rows) {
  ordered_json json = {{"title", table.title},
                       {"projection", true},
                       {"card", card},
                       {"checked", is_checked(find_card(card))},
                       {"rows", ordered_json::array()}};
  for (const ProjectedRow& row : rows) {
    const PublishedFigures published = row.row->compared_with();
    ordered_json entry = {{"id", row.row->id},
                          {"model", row.row->model},
                          {"gpus", row.gpus},
                          {"projected_minutes", row.minutes},
                          {"projected_fused_minutes", row.fused_minutes},
                          {"image_sizes", row.sizes}};
    if (published.minutes) {
      entry["published_minutes"] = *published.minutes;
      entry["published_hardware"] = published.hardware;
    }
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace precast::tools
