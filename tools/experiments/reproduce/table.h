#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// Where published figures come from.
struct FigureSource {
  /// What rows name it by.
  std::string id{};
  std::string title{};
  std::string date{};
  std::string url{};
};

/// What somebody published of one training. Shares, not per cent; minutes of wall clock.
struct PublishedFigures {
  /// FigureSource::id.
  std::string source{};
  std::optional<double> top_1{}, top_5{}, minutes{};
  std::string hardware{};
  std::string note{};
};

/// One line of a table: a recipe to run, and what is known of it.
struct TableRow {
  /// Part of run folders' names: letters, digits, `_`, `-` and `.`.
  std::string id{};
  /// For people: `ResNet-50`.
  std::string model{};
  std::filesystem::path recipe{};
  /// Keys that this row sets in its recipe.
  std::vector<Setting> settings{};
  /// The first is the one that the table compares with.
  std::vector<PublishedFigures> published{};

  /// Empty figures where nothing was published.
  [[nodiscard]] PublishedFigures compared_with() const {
    return published.empty() ? PublishedFigures{} : published.front();
  }
};

/// A training of another system: shown, not run.
struct OtherSystem {
  std::string system{};
  std::string model{};
  PublishedFigures figures{};
};

/// Accuracy after an epoch of a run.
struct CurvePoint {
  /// Epochs trained.
  double epochs = 0;
  double minutes = 0;
  double top_1 = 0;
};

/// A published table of accuracies and times as data: what `precast reproduce` runs and compares
/// with (configs/imagenet/table.yaml).
struct ResultTable {
  std::string title{};
  std::vector<FigureSource> sources;
  /// Training images of the published runs; 0: not told.
  std::int64_t train_images = 0;
  std::vector<TableRow> rows;
  std::vector<OtherSystem> others;
  /// By TableRow::id; from a CSV file `row,epoch,minutes,top_1,...`.
  std::map<std::string, std::vector<CurvePoint>> curves;

  /// The source of that name; every name in the table has one.
  [[nodiscard]] const FigureSource& source(const std::string& id) const;
};

/// Reads a table; recipes and the file of curves are named from the table's folder.
/// @throws ConfigError with every mistake (file:line:col: key: expected, got), IoError.
[[nodiscard]] ResultTable read_table(const std::filesystem::path& path);

}  // namespace precast::tools
