#pragma once

#include <boost/program_options/options_description.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/loader_point.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// `precast bench loader FILE.beton`: measures how fast batches arrive, in images per second and
/// per CPU-second, for each combination of settings. Each round measures all combinations one after
/// the other, so that a temporary slowdown of the machine affects all of them.
/// If a recipe is given instead of the file, precast-train measures it (torch/recipe_loader.cpp).
int run_bench_loader(const std::vector<std::string>& args);

/// The options that say what to measure and what to print. They apply to files and recipes. @{
void add_measuring_options(boost::program_options::options_description& options);
/// @throws ConfigError if a value is out of range, or for --seconds with --cold but without
/// --passes
[[nodiscard]] LoaderRunOptions read_measuring(const Arguments& arguments);
/// @}

/// Measures each point --runs times, then prints a table or, with --json, JSON. With --svg, also
/// writes a chart.
/// @param file the name of the dataset or recipe, for the report.
int measure_and_report(const Arguments& arguments, const std::string& file, std::uint64_t samples,
                       std::vector<LoaderPoint> points);

}  // namespace precast::tools
