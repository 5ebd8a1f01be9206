#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// The source of published figures.
struct FigureSource {
  /// The name by which figures refer to the source.
  std::string id{};
  std::string title{};
  std::string date{};
  std::string url{};
};

/// Published figures of one training run. Accuracies are fractions, not percentages; times are
/// wall-clock minutes.
struct PublishedFigures {
  /// The FigureSource::id of their source.
  std::string source{};
  std::optional<double> top_1{}, top_5{}, minutes{};
  std::string hardware{};
  std::string note{};
};

/// One row of a table: a recipe to run, and the figures published for it.
struct TableRow {
  /// Part of the names of run folders: letters, digits, `_`, `-` and, not at the beginning, `.`.
  std::string id{};
  /// Display name: `ResNet-50`.
  std::string model{};
  std::filesystem::path recipe{};
  /// Keys that this row sets in its recipe.
  std::vector<Setting> settings{};
  /// One entry for each source. The first one is compared with the results.
  std::vector<PublishedFigures> published{};

  /// Returns the first entry of `published`, or an empty value if there is none.
  [[nodiscard]] PublishedFigures compared_with() const {
    return published.empty() ? PublishedFigures{} : published.front();
  }
};

/// A training run with another system. It is shown, but not run.
struct OtherSystem {
  std::string system{};
  std::string model{};
  PublishedFigures figures{};
};

/// The accuracy of a run after an epoch.
struct CurvePoint {
  /// Number of epochs trained so far.
  double epochs = 0;
  double minutes = 0;
  double top_1 = 0;
};

/// A published table of accuracies and times. `precast reproduce` trains its rows and compares the
/// results (example: configs/imagenet/table.yaml).
struct ResultTable {
  std::string title{};
  std::vector<FigureSource> sources;
  /// Training images of the published runs; 0: unknown.
  std::int64_t train_images = 0;
  std::vector<TableRow> rows;
  std::vector<OtherSystem> others;
  /// Published curves by TableRow::id, from a CSV file `row,epoch,minutes,top_1,...` with a header
  /// line; its epochs count from 0. Lines that begin with `#` are ignored.
  std::map<std::string, std::vector<CurvePoint>> curves;
};

/// Reads a table. Paths of recipes and of the CSV file are relative to the table's folder.
/// @throws ConfigError with all mistakes in the table (file:line:col: key: expected, got), or with
/// the first one in the CSV file; IoError if a file cannot be read, or if missing recipes are the
/// only mistakes.
[[nodiscard]] ResultTable read_table(const std::filesystem::path& path);

}  // namespace precast::tools
