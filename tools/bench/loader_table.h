#pragma once

#include <boost/program_options/options_description.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/loader_point.h"
#include "tools/bench/table_files.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// A row of a table: what is loaded, from where, and how.
struct LoaderRow {
  const TableFile* file = nullptr;
  /// Whether each image is read once, after the file was dropped from the page cache; otherwise
  /// there are many passes over a file that is in memory.
  bool from_disk = false;
  /// precast: without the JPEG index; precast_indexed: with it; precast_quasi: in the order
  /// quasi_random, through a cache of the process.
  std::string_view loader;
  int workers = 1;
  int image_size_px = 224;

  /// "memory jpg 224 px, 2 workers, precast_indexed"
  [[nodiscard]] std::string name() const;
  [[nodiscard]] int copies() const { return from_disk ? file->disk_copies : 1; }
  /// The settings and the effort of the command line, with the row's changes.
  [[nodiscard]] LoaderPoint point(const LoaderSetting& setting, LoaderEffort effort) const;
};

/// The rows of FFCV's data-loading table (its documentation, "ImageNet Benchmarks"), and more of
/// their kind: random resized crops to 224 px and flips of 512 px JPEGs of quality 90, of raw
/// pixels and of a mix, from memory and from disk, on all cores; from memory also with one worker,
/// two, and twice as many as cores.
[[nodiscard]] std::vector<LoaderRow> seeds_rows(int cores);

/// `--table`, and the options that only tables have.
void add_table_options(boost::program_options::options_description& options);

/// @throws ConfigError for an option that has no effect on a table or, without --table, an option
/// that only tables have.
void check_table_options(const Arguments& arguments);

/// `precast bench loader SOURCE --table NAME`: writes the files that are missing, measures all rows
/// in each round, one after the other, and prints them.
/// @throws ConfigError, as TableFiles and run_loaders().
int run_loader_table(const Arguments& arguments, const LoaderEffort& effort, int rounds);

}  // namespace precast::tools
