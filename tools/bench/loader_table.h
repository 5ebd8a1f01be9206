#pragma once

#include <boost/program_options/options_description.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/loader_point.h"
#include "tools/bench/table_files.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// A row of a table: the file to load, and how to load it.
struct LoaderRow {
  const TableFile* file = nullptr;
  /// Whether each image is read once, from a file that was dropped from the page cache. Otherwise
  /// the file is in memory and is read many times.
  bool from_disk = false;
  /// precast: without the JPEG index; precast_indexed: with it; precast_quasi: with the order
  /// quasi_random, and through a cache in the process instead of the page cache.
  std::string_view loader;
  int workers = 1;
  int image_size_px = 224;

  /// "memory jpg 224 px, 2 workers, precast_indexed"
  [[nodiscard]] std::string name() const;
  [[nodiscard]] int copies() const { return from_disk ? file->disk_copies : 1; }
  /// The point to measure: the settings and run options of the command line, with the row's
  /// changes.
  [[nodiscard]] LoaderPoint point(const LoaderSetting& setting, LoaderRunOptions run_options) const;
};

/// The rows of FFCV's data-loading table (its documentation, "ImageNet Benchmarks"), and similar
/// ones: random resized crops to 224 px and flips of 512 px JPEGs of quality 90, of raw pixels and
/// of a mix, from memory and from disk, with one worker per core. The rows from memory are also
/// measured with 1 and 2 workers, and with two per core.
[[nodiscard]] std::vector<LoaderRow> seeds_rows(int cores);

/// Adds `--table` and the options that apply only to tables.
void add_table_options(boost::program_options::options_description& options);

/// @throws ConfigError with --table for an option that does not apply to a table, or without
/// --table for an option that applies only to tables.
void check_table_options(const Arguments& arguments);

/// `precast bench loader SOURCE --table NAME`: writes the files that are missing, measures all rows
/// in each round, one after the other, and prints the results. With --dry-run, only prints the
/// rows.
/// @throws ConfigError, and the exceptions of TableFiles and run_loaders().
int run_loader_table(const Arguments& arguments, const LoaderRunOptions& run_options, int rounds);

}  // namespace precast::tools
