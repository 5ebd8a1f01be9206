#include <c10/util/Half.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "data/beton/reader.h"
#include "framework/core/archive/npy.h"
#include "framework/core/file.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::test {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// The elastic net of standardised features and a centred target, in float64.
struct Reference {
  /// The standardised features, [features][samples].
  std::vector<Vector> z;
  Vector y;
  Vector deviations;
  double l1_ratio = 0.9;

  explicit Reference(const std::filesystem::path& path) {
    const data::BetonReader file(path);
    const std::size_t features = file.fields()[file.field("x")].shape[0];
    const auto n = static_cast<double>(file.size());
    z.resize(features);
    for (std::uint64_t i = 0; i < file.size(); ++i) {
      y.push_back(file.floating(i, file.field("y")));
      std::vector<c10::Half> row(features);
      std::memcpy(row.data(), file.blob(i, file.field("x")).data(), 2 * features);
      for (std::size_t j = 0; j < features; ++j) z[j].push_back(static_cast<float>(row[j]));
    }
    const auto center = [n](Vector& values) {
      const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
      for (double& value : values) value -= mean;
    };
    center(y);
    for (Vector& column : z) {
      center(column);
      deviations.push_back(std::sqrt(dot(column, column) / n));
      for (double& value : column) value /= deviations.back();
    }
  }

  [[nodiscard]] Vector residuals(const Vector& w) const {
    Vector left = y;
    for (std::size_t j = 0; j < w.size(); ++j)
      for (std::size_t i = 0; i < left.size(); ++i) left[i] -= z[j][i] * w[j];
    return left;
  }

  [[nodiscard]] double objective(const Vector& w, double lambda) const {
    const Vector left = residuals(w);
    double penalty = 0;
    for (const double value : w)
      penalty += l1_ratio * std::abs(value) + (1 - l1_ratio) / 2 * value * value;
    return dot(left, left) / (2 * static_cast<double>(y.size())) + lambda * penalty;
  }

  /// Runs coordinate descent from `w` until no coefficient changes by more than 1e-12.
  void solve(Vector& w, double lambda) const {
    const auto n = static_cast<double>(y.size());
    Vector left = residuals(w);
    double largest = 1;
    for (int sweep = 0; sweep < 100000 && largest > 1e-12; ++sweep) {
      largest = 0;
      for (std::size_t j = 0; j < w.size(); ++j) {
        const double pull = dot(z[j], left) / n + w[j];
        const double size = std::max(std::abs(pull) - lambda * l1_ratio, 0.0);
        const double next = std::copysign(size, pull) / (1 + lambda * (1 - l1_ratio));
        const double change = next - w[j];
        w[j] = next;
        largest = std::max(largest, std::abs(change));
        for (std::size_t i = 0; i < left.size(); ++i) left[i] -= z[j][i] * change;
      }
    }
  }
};

std::set<std::size_t> support(const Vector& w) {
  std::set<std::size_t> found;
  for (std::size_t j = 0; j < w.size(); ++j)
    if (w[j] != 0) found.insert(j);
  return found;
}

/// Builds the example once, outside the tree, as a user would.
class SparseRegressionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    built_ = std::make_unique<TemporaryFolder>();
    const std::string folder = built_->path().string();
    const std::string line = fmt::format(
        "'{0}' -S {1}/examples/sparse_regression -B {2} -Dprecast_DIR={3} "
        "-DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' && '{0}' --build {2} -j2",
        PRECAST_CMAKE, test::source_dir(), folder, test::build_dir());
    Program program({"/bin/sh", "-c", line});
    ASSERT_EQ(program.wait(), 0) << program.out << program.err;
  }
  static void TearDownTestSuite() { built_.reset(); }

  struct Result {
    int code = 0;
    std::string out;
    std::string err;
  };
  static Result run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), (*built_ / "sparse_regression").string());
    Program program(arguments);
    const int code = program.wait();
    return {code, program.out, program.err};
  }

  /// Writes data.beton: 500 samples with 100 features, 10 of which have a nonzero coefficient.
  std::filesystem::path make(const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"make",       (folder_ / "data.beton").string(),
                                          "--samples",  "500",
                                          "--features", "100",
                                          "--nonzeros", "10",
                                          "--seed",     "3"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Result made = run(arguments);
    EXPECT_EQ(made.code, 0) << made.err;
    return folder_ / "data.beton";
  }

  /// Runs the example. @param options alternating names (`--name`) and values; they replace the
  /// defaults below.
  Result solve(const std::vector<std::string>& options) {
    std::map<std::string, std::string> values = {
        {"--lambdas", "5"},      {"--l1-ratio", "0.9"},   {"--batch-size", "32"},
        {"--tolerance", "1e-6"}, {"--memory-mb", "2048"},
    };
    for (std::size_t i = 0; i < options.size(); i += 2) values[options[i]] = options[i + 1];
    std::vector<std::string> arguments = {"solve", (folder_ / "data.beton").string(), "--json"};
    for (const auto& [name, value] : values) {
      arguments.push_back(name);
      arguments.push_back(value);
    }
    return run(arguments);
  }

  /// Returns the coefficients for each lambda, without the intercept. They apply to features that
  /// are not standardised.
  static std::vector<Vector> coefficients(const std::filesystem::path& path) {
    const NpyArray array = read_npy(path);
    const auto width = static_cast<std::size_t>(array.shape[1]);
    Vector values(array.bytes.size() / sizeof(double));
    std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
    std::vector<Vector> rows;
    for (auto row = values.begin(); row != values.end();
         row += static_cast<std::ptrdiff_t>(width)) {
      rows.emplace_back(row, row + static_cast<std::ptrdiff_t>(width) - 1);
    }
    return rows;
  }

  static inline std::unique_ptr<TemporaryFolder> built_;
  TemporaryFolder folder_;
};

TEST_F(SparseRegressionTest, ReachesTheSolutionsOfCoordinateDescentAlongThePath) {
  const Reference reference(make());
  const Result solved =
      solve({"--lambda-ratio", "0.02", "--coefficients", (folder_ / "w.npy").string()});
  ASSERT_EQ(solved.code, 0) << solved.err;
  const auto path = nlohmann::json::parse(solved.out).at("path");
  const std::vector<Vector> found = coefficients(folder_ / "w.npy");
  ASSERT_EQ(path.size(), 5);
  ASSERT_EQ(found.size(), 5);
  Vector expected(reference.z.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const double lambda = path[i].at("lambda");
    reference.solve(expected, lambda);
    Vector w = found[i];
    for (std::size_t j = 0; j < w.size(); ++j) w[j] *= reference.deviations[j];
    const double objective = reference.objective(expected, lambda);
    EXPECT_TRUE(path[i].at("converged")) << i;
    EXPECT_LE(path[i].at("relative_gap"), 1e-6) << i;
    EXPECT_NEAR(reference.objective(w, lambda) / objective, 1, 1e-6) << i;
    EXPECT_NEAR(path[i].at("objective").get<double>() / objective, 1, 1e-5) << i;
    EXPECT_EQ(support(w), support(expected)) << i;
    EXPECT_EQ(path[i].at("nonzeros"), support(expected).size()) << i;
  }
  EXPECT_EQ(path[0].at("nonzeros"), 0);
  EXPECT_GE(path[4].at("nonzeros"), 10);
}

TEST_F(SparseRegressionTest, ResultsDoNotDependOnWorkersOrThreads) {
  make();
  const auto bytes = [&](const std::string& workers, const std::string& threads) {
    const std::string name = (folder_ / ("w" + workers + ".npy")).string();
    const Result solved =
        solve({"--workers", workers, "--threads", threads, "--coefficients", name});
    EXPECT_EQ(solved.code, 0) << solved.err;
    return read_file(name);
  };
  EXPECT_EQ(bytes("1", "1"), bytes("3", "2"));
}

TEST_F(SparseRegressionTest, FindsTheKnownSupportInFloat32) {
  make({"--dtype", "float32", "--noise", "0.1"});
  const Result solved = solve({"--coefficients", (folder_ / "w.npy").string()});
  ASSERT_EQ(solved.code, 0) << solved.err;
  const auto truth = nlohmann::json::parse(std::ifstream(folder_ / "data.beton.truth.json"));
  const std::set<std::size_t> known = truth.at("support").get<std::set<std::size_t>>();
  EXPECT_EQ(known.size(), 10);
  // With so little noise, at least one lambda selects exactly the features with a coefficient.
  std::vector<std::set<std::size_t>> supports;
  for (const Vector& w : coefficients(folder_ / "w.npy")) supports.push_back(support(w));
  EXPECT_THAT(supports, testing::Contains(known));
}

TEST_F(SparseRegressionTest, DataFollowsFromSeedAndSampleAlone) {
  make({"--workers", "1", "--npy"});
  const auto one = read_file(folder_ / "data.beton");
  const NpyArray x = read_npy(folder_ / "data.beton.x.npy");
  make({"--workers", "3"});
  EXPECT_EQ(read_file(folder_ / "data.beton"), one);
  // The array contains the same bytes as the values in the file.
  EXPECT_THAT(x.shape, testing::ElementsAre(500, 100));
  const data::BetonReader file(folder_ / "data.beton");
  const auto last = file.blob(499, file.field("x"));
  EXPECT_TRUE(std::ranges::equal(last, std::span(x.bytes).last(last.size())));
}

TEST_F(SparseRegressionTest, FieldsThatDoNotFitAreNamed) {
  const std::string file = make().string();
  const Result missing = solve({"--field", "pixels"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, Names(file, "pixels"));
  const Result number = solve({"--field", "y"});
  EXPECT_EQ(number.code, 3);
  EXPECT_THAT(number.err, Names(file, "y"));
  const Result array = solve({"--target", "x"});
  EXPECT_EQ(array.code, 3);
  EXPECT_THAT(array.err, Names(file, "x"));
}

TEST_F(SparseRegressionTest, DamagedFilesAreNamed) {
  const std::filesystem::path path = make();
  const std::uint64_t begin = [&] {
    const data::BetonReader file(path);
    return file.blob_offset(321, file.field("x"));
  }();
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(begin + 7 * 2));
    const std::array<char, 2> nan = {0x01, 0x7e};
    file.write(nan.data(), nan.size());
  }
  const Result not_finite = solve({});
  EXPECT_EQ(not_finite.code, 3);
  EXPECT_THAT(not_finite.err, Names(7));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const Result cut = solve({});
  EXPECT_EQ(cut.code, 3);
  EXPECT_THAT(cut.err, Names(path.string()));
}

TEST_F(SparseRegressionTest, OptionsThatCannotWorkAreNamed) {
  make();
  const Result small = solve({"--memory-mb", "16"});
  EXPECT_EQ(small.code, 2);
  EXPECT_THAT(small.err, Names("--memory-mb", 16));
  const Result ratio = solve({"--l1-ratio", "2"});
  EXPECT_EQ(ratio.code, 2);
  EXPECT_THAT(ratio.err, Names("--l1-ratio", 2));
  const Result steps = solve({"--step-scale", "1000"});
  EXPECT_EQ(steps.code, 12);
  EXPECT_THAT(steps.err, Names("--step-scale"));
}

}  // namespace
}  // namespace precast::test
