#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/bench/loader_run.h"
#include "tools/bench/loader_setting.h"

namespace precast::tools {

/// A way to load a file, and its measurements.
struct LoaderPoint {
  /// For the progress line.
  std::string name;
  std::filesystem::path file;
  LoaderSetting setting;
  LoaderRunOptions run_options;
  /// The results of run_loaders() in each round.
  std::vector<nlohmann::ordered_json> runs = {};

  /// The figure `key` of each round, and the median over the rounds.
  [[nodiscard]] std::vector<double> figures(const char* key) const;
  [[nodiscard]] double median_of(const char* key) const;
  /// "min - max" of a figure.
  [[nodiscard]] std::string min_max_text(const char* key) const;
  /// The median over rounds of the ratio to another point.
  [[nodiscard]] double ratio(const char* key, const LoaderPoint& other) const;
  [[nodiscard]] bool has_more_threads_than_cores() const;
};

/// Measures every point once per round.
void measure_points(int rounds, std::vector<LoaderPoint>& points);

/// Returns the median, minimum and maximum of the rates, the medians of memory and of the cached
/// share, and all runs. @param first if given, `..._to_first` are the ratios of the rates to those
/// of this point.
[[nodiscard]] nlohmann::ordered_json figures_json(const LoaderPoint& point,
                                                  const LoaderPoint* first = nullptr);

/// The damaged samples that measurements replaced, sorted by id and without duplicates.
/// print_replaced() prints them, or nothing if there are none. @{
[[nodiscard]] nlohmann::ordered_json all_replaced(const std::vector<LoaderPoint>& points);
void print_replaced(const std::vector<LoaderPoint>& points);
/// @}

/// The number of busy cores (CPU-seconds per second), with an asterisk if the point has more
/// threads than cores.
[[nodiscard]] std::string cores_busy_text(const LoaderPoint& point);
/// Explains the asterisk, if any point has an asterisk.
void print_threads_note(const std::vector<LoaderPoint>& points);

}  // namespace precast::tools
