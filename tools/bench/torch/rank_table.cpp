#include "tools/bench/torch/rank_table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/parse_number.h"
#include "tools/app/rank_session.h"
#include "tools/app/resolved_run.h"
#include "tools/bench/torch/json_result.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMaxRanks = 1024;

std::vector<int> parse_ranks(const std::string& text) {
  std::vector<int> ranks;
  for (const std::string& part : split_list("ranks", text)) {
    const auto value = parse_number<std::int64_t>(part);
    if (!value)
      throw ConfigError(fmt::format("--ranks: expected numbers such as 1,2,4, got '{}'", text));
    check_range("ranks", *value, 1, kMaxRanks);
    ranks.push_back(static_cast<int>(*value));
  }
  return ranks;
}

/// The file to which rank zero of a launch writes its results. The destructor removes it.
class ResultFile {
 public:
  ResultFile()
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("precast-bench-{}.json", ::getpid())) {}
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;
  ~ResultFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] ordered_json read() const { return ordered_json::parse(std::ifstream(path_)); }

 private:
  std::filesystem::path path_;
};

std::vector<std::string> with_column(std::vector<std::string> command, const RankColumn& column) {
  command.insert(command.end(), {"--data", column.data});
  if (!column.update.empty()) command.insert(command.end(), {"--variable-update", column.update});
  return command;
}

/// Returns how many arguments belong to the option `name` if `word` is the first: 1 if `word`
/// contains the value, 2 if the value is the next argument, 0 if `word` is another argument.
/// @param name one letter: a short option
std::size_t words_of_option(const std::string& name, const std::string& word) {
  if (name.size() == 1) {  // -o FILE or -oFILE
    if (!word.starts_with("-" + name)) return 0;
    return word.size() == 2 ? 2 : 1;
  }
  const std::size_t equals = word.find('=');
  std::string option = word.substr(0, equals);
  std::ranges::replace(option, '_', '-');
  if (option != "--" + name) return 0;
  return equals == std::string::npos ? 2 : 1;
}

/// Adds the efficiency to each result: images per second per rank, relative to the first row.
void add_efficiency(ordered_json& row, const ordered_json& first) {
  for (std::size_t i = 0; i < row.at("columns").size(); ++i) {
    const auto per_rank = [&](const ordered_json& of) {
      return of.at("columns")[i].at("images_per_second").get<double>() /
             of.at("ranks").get<double>();
    };
    row["columns"][i]["efficiency"] = per_rank(row) / per_rank(first);
  }
}

void print_table(const ordered_json& rows, const std::vector<RankColumn>& columns) {
  fmt::print("img/s over all ranks, and the speed per rank relative to the first row\n\n{:>5}",
             "ranks");
  for (const RankColumn& column : columns)
    fmt::print("   {:>28}", column.data + (column.update.empty() ? "" : ", " + column.update));
  fmt::print("\n");
  for (const auto& row : rows) {
    fmt::print("{:>5}", row.at("ranks").get<int>());
    for (const auto& cell : row.at("columns")) {
      fmt::print("   {:>20.1f} ({:>4.0f} %)", cell.at("images_per_second").get<double>(),
                 100 * cell.at("efficiency").get<double>());
    }
    fmt::print("\n");
  }
}

}  // namespace

std::vector<RankColumn> read_columns(const Arguments& options) {
  std::vector<RankColumn> columns;
  const std::vector<std::string> updates =
      options.has("variable-update")
          ? split_list("variable-update", options.text("variable-update"))
          : std::vector<std::string>{""};
  for (const std::string& data : split_list("data", options.text("data"))) {
    for (const std::string& update : updates) columns.push_back({data, update});
  }
  return columns;
}

std::vector<std::string> without_options(const std::vector<std::string>& args,
                                         const std::vector<std::string>& names) {
  std::vector<std::string> remaining;
  for (std::size_t i = 0; i < args.size();) {
    std::size_t words = 0;
    for (const std::string& name : names) words = std::max(words, words_of_option(name, args[i]));
    if (words == 0) remaining.push_back(args[i]);
    i += std::max<std::size_t>(1, words);
  }
  return remaining;
}

int run_rank_table(const std::vector<std::string>& args, const Arguments& options,
                   const std::vector<RankColumn>& columns, const std::string& device) {
  if (find_rank_info(process_environment()).source != "single")
    throw ConfigError(
        "--ranks: expected a single process, got one of several ranks. Start the command without a "
        "launcher");
  if (options.has("profile")) {
    throw ConfigError(
        fmt::format("--profile: expected none with --ranks, which measures several runs, got '{}'. "
                    "To trace a run of several ranks, use --dist.nproc instead of --ranks",
                    options.text("profile")));
  }
  const std::vector<int> counts = parse_ranks(options.text("ranks"));
  check_gpus(gpu_problem("--ranks", device, std::ranges::max(counts), usable_gpus(),
                         "To measure ranks on the CPU, give --device=cpu"));
  const ResultFile result;
  std::vector<std::string> common =
      without_options(args, {"ranks", "data", "variable-update", "out", "output", "o"});
  std::erase(common, "--json");
  common.insert(common.begin(), {"bench", "step", "--output", result.path().string()});
  auto rows = ordered_json::array();
  for (const int ranks : counts) {
    ordered_json row = {{"ranks", ranks}, {"columns", ordered_json::array()}};
    for (const RankColumn& column : columns) {
      if (const int code = launch_ranks(with_column(common, column), ranks); code != 0) return code;
      row["columns"].push_back(result.read());
    }
    add_efficiency(row, rows.empty() ? row : rows.front());
    rows.push_back(std::move(row));
  }
  if (!write_json_result(options, rows)) print_table(rows, columns);
  return 0;
}

}  // namespace precast::tools
