// The table and the JSON of cudnn_times.
#pragma once

#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "bench.h"

namespace cudnn_graphs {

/// What is known about one pattern of a layer.
struct Cell {
  const Task* task = nullptr;
  std::optional<Measured> measured;
};

/// A line of the table: the patterns of one layer, in the order of kPatterns.
struct Row {
  const Layer* layer;
  std::array<Cell, kPatterns.size()> cells;
};

inline std::string name_of(const Convolution& of) {
  const std::string filter = std::to_string(of.filter);
  return std::to_string(of.in) + "->" + std::to_string(of.out) + " " + filter + "x" + filter +
         (of.stride > 1 ? " s" + std::to_string(of.stride) : "") + " @" + std::to_string(of.size);
}

inline std::string decimal(double value, int digits = 1) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

inline void print_head() {
  std::string titles = "| convolution | count | inner |", line = "|---|---|---|";
  for (const Pattern& pattern : kPatterns) {
    titles += std::string(" ") + pattern.title + " |";
    line += "---|";
  }
  std::printf("%s\n%s\n", titles.c_str(), line.c_str());
}

/// Prints times if there is a GPU, and otherwise how many plans were built.
inline void print_row(const Row& row, bool with_gpu) {
  std::string text = "| " + name_of(row.layer->shape) + " | " + std::to_string(row.layer->count) +
                     " | " + std::to_string(row.layer->inner) + " |";
  for (const Cell& cell : row.cells) {
    if (!cell.task) {
      text += " |";
    } else if (!with_gpu) {
      const bool no_engine = cell.task->engines == 0;
      text += " " + (no_engine ? "-" : std::to_string(cell.task->plans.size())) + " |";
    } else if (!cell.measured) {
      text += " - |";
    } else {
      text += " " + decimal(cell.measured->us) +
              (cell.measured->sums_differ() ? " (sums differ)" : "") + " |";
    }
  }
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

/// Prints the total time of all convolutions of the network in ms, or of the inner ones. If some
/// have no time, the number of those that have one follows in brackets.
inline void print_sum(const std::vector<Row>& rows, bool inner) {
  int all = 0;
  for (const Layer& layer : kLayers) all += inner ? layer.inner : layer.count;
  std::string text = std::string("| sum, ms") + (inner ? ", inner" : "") + " | " +
                     (inner ? "" : std::to_string(all)) + " | " +
                     (inner ? std::to_string(all) : "") + " |";
  for (std::size_t i = 0; i < kPatterns.size(); ++i) {
    double ms = 0;
    int counted = 0;
    for (const Row& row : rows) {
      if (!row.cells[i].measured) continue;
      const int count = inner ? row.layer->inner : row.layer->count;
      ms += 1e-3 * count * row.cells[i].measured->us;
      counted += count;
    }
    if (counted == 0 || (kPatterns[i].inner_only && !inner)) {
      text += " |";
    } else {
      const std::string some = counted < all ? " (" + std::to_string(counted) + ")" : "";
      text += " " + decimal(ms, 3) + some + " |";
    }
  }
  std::printf("%s\n", text.c_str());
}

inline nlohmann::ordered_json to_json(const Cell& cell) {
  nlohmann::ordered_json json;
  json["engines"] = cell.task->engines;
  json["plans_built"] = cell.task->plans.size();
  if (!cell.task->refusal.empty()) json["refusal"] = cell.task->refusal;
  if (!cell.measured) return json;
  const Measured& measured = *cell.measured;
  json["us"] = measured.us;
  json["plan"] = measured.plan;
  json["plans_timed"] = measured.plans_timed;
  if (measured.sum_error) json["sum_error"] = *measured.sum_error;
  if (measured.squares_error) json["squares_error"] = *measured.squares_error;
  if (measured.sum_error) json["sums_differ"] = measured.sums_differ();
  return json;
}

inline nlohmann::ordered_json to_json(const Row& row) {
  const Convolution& of = row.layer->shape;
  nlohmann::ordered_json json = {{"in", of.in},
                                 {"out", of.out},
                                 {"filter", of.filter},
                                 {"stride", of.stride},
                                 {"size_px", of.size},
                                 {"count", row.layer->count},
                                 {"inner", row.layer->inner}};
  for (std::size_t i = 0; i < kPatterns.size(); ++i) {
    if (row.cells[i].task) json["patterns"][kPatterns[i].name] = to_json(row.cells[i]);
  }
  return json;
}

}  // namespace cudnn_graphs
