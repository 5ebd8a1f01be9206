#include "tools/bench/loader_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "framework/core/format.h"
#include "framework/core/progress.h"
#include "framework/core/system.h"
#include "tools/cli/median.h"
#include "tools/cli/stopwatch.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// @param done how many of the `all` measurements were finished in `seconds`. @param name the
/// name of the next measurement.
std::string progress_text(std::size_t done, std::size_t all, double seconds,
                          const std::string& name) {
  std::string text = fmt::format("measurement {} of {} ({})", done + 1, all, name);
  if (done == 0) return text;
  const double each = seconds / static_cast<double>(done);
  return text +
         fmt::format(", about {} left", format_duration(each * static_cast<double>(all - done)));
}

}  // namespace

std::vector<double> LoaderPoint::figures(const char* key) const {
  std::vector<double> values;
  for (const ordered_json& run : runs) values.push_back(run.at(key).get<double>());
  return values;
}

double LoaderPoint::median_of(const char* key) const {
  return median(figures(key));
}

std::string LoaderPoint::min_max_text(const char* key) const {
  const std::vector<double> values = figures(key);
  return fmt::format("{:.0f} - {:.0f}", std::ranges::min(values), std::ranges::max(values));
}

double LoaderPoint::ratio(const char* key, const LoaderPoint& other) const {
  std::vector<double> ratios = figures(key);
  const std::vector<double> base = other.figures(key);
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= base[i];
  return median(ratios);
}

bool LoaderPoint::has_more_threads_than_cores() const {
  return setting.processes * setting.workers > usable_cores();
}

void measure_points(int rounds, std::vector<LoaderPoint>& points) {
  Progress progress;
  const Stopwatch watch;
  const std::size_t all = points.size() * static_cast<std::size_t>(rounds);
  std::size_t done = 0;
  for (int round = 0; round < rounds; ++round) {
    for (LoaderPoint& point : points) {
      const auto show = [&] {
        if (progress.due()) progress.show(progress_text(done, all, watch.seconds(), point.name));
      };
      show();
      // All points of a round start with the same epoch. The epochs of different rounds do not
      // overlap, so their random orders and crops differ.
      const std::int64_t epoch = 1 + std::int64_t{round} * 1'000'000;
      point.runs.push_back(run_loaders(point.file, point.setting, point.run_options, epoch, show));
      ++done;
    }
  }
}

ordered_json figures_json(const LoaderPoint& point, const LoaderPoint* first) {
  ordered_json all;
  for (const char* key : {"images_per_second", "images_per_cpu_second"}) {
    const std::vector<double> values = point.figures(key);
    all[key] = median(values);
    all[std::string(key) + "_least"] = std::ranges::min(values);
    all[std::string(key) + "_most"] = std::ranges::max(values);
    if (first != nullptr) all[std::string(key) + "_to_first"] = point.ratio(key, *first);
  }
  for (const char* key : {"peak_resident_bytes", "proportional_bytes", "anonymous_bytes"})
    all[key] = static_cast<std::int64_t>(point.median_of(key));
  if (point.run_options.cold) all["cached_before"] = point.median_of("cached_before");
  all["runs"] = point.runs;
  return all;
}

ordered_json all_replaced(const std::vector<LoaderPoint>& points) {
  std::map<std::uint64_t, ordered_json> replaced;
  for (const LoaderPoint& point : points)
    for (const ordered_json& run : point.runs)
      for (const ordered_json& entry : run.at("replaced"))
        replaced.emplace(entry[0].get<std::uint64_t>(), entry);
  ordered_json list = ordered_json::array();
  for (const auto& [sample, entry] : replaced) list.push_back(entry);
  return list;
}

void print_replaced(const std::vector<LoaderPoint>& points) {
  const ordered_json replaced = all_replaced(points);
  if (replaced.empty()) return;
  fmt::print("\n{} cannot be decoded and {} replaced by the next intact one:\n",
             format_count(replaced.size(), "sample"), replaced.size() == 1 ? "was" : "were");
  for (const ordered_json& entry : replaced)
    fmt::print("{} replaced by {}: {}\n", entry[0].get<std::uint64_t>(),
               entry[1].get<std::uint64_t>(), entry[2].get<std::string>());
}

std::string cores_busy_text(const LoaderPoint& point) {
  const double busy =
      point.median_of("images_per_second") / point.median_of("images_per_cpu_second");
  return fmt::format("{:.2f}{}", busy, point.has_more_threads_than_cores() ? "*" : "");
}

void print_threads_note(const std::vector<LoaderPoint>& points) {
  if (std::ranges::any_of(points, &LoaderPoint::has_more_threads_than_cores))
    fmt::print("\n* more loader threads than cores\n");
}

}  // namespace precast::tools
