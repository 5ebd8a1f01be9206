#include "tools/experiments/trial/dataset_content.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "framework/core/config/node.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/experiments/trial/small_dataset.h"

namespace precast::tools {
namespace {

using test::write_small_dataset;

std::optional<DatasetContent> content_of(const std::string& files) {
  Diagnostics diagnostics;
  return dataset_content(parse_override(files, {}, diagnostics));
}

class DatasetContentTest : public ::testing::Test {
 protected:
  const test::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "d.beton";
};

TEST_F(DatasetContentTest, IsNewAfterAFileOfTheSameSizeHasReplacedTheDataset) {
  write_small_dataset(file_, 1, "abc");
  const auto size = std::filesystem::file_size(file_);
  const auto before = content_of(file_);
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->fingerprint, data::BetonReader(file_).fingerprint());
  EXPECT_EQ(content_of(file_)->fingerprint, before->fingerprint);

  write_small_dataset(file_, 2, "abc");
  ASSERT_EQ(std::filesystem::file_size(file_), size);
  EXPECT_NE(content_of(file_)->fingerprint, before->fingerprint) << "other labels";
  EXPECT_EQ(content_of(file_)->checksums, before->checksums);

  write_small_dataset(file_, 1, "abd");
  ASSERT_EQ(std::filesystem::file_size(file_), size);
  EXPECT_EQ(content_of(file_)->fingerprint, before->fingerprint);
  EXPECT_NE(content_of(file_)->checksums, before->checksums) << "other values";

  write_small_dataset(file_, 1, "abc");
  EXPECT_EQ(content_of(file_)->fingerprint, before->fingerprint);
  EXPECT_EQ(content_of(file_)->checksums, before->checksums);
}

TEST_F(DatasetContentTest, HasChecksumsFromTheMomentThatAllFilesHaveThem) {
  write_small_dataset(file_, 1, "abc", /*checksums=*/false);
  const auto before = content_of(file_);
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->checksums, "");
  data::write_sums_sidecar(data::BetonReader(file_));
  EXPECT_EQ(content_of(file_)->fingerprint, before->fingerprint);
  EXPECT_NE(content_of(file_)->checksums, "");
}

TEST_F(DatasetContentTest, CoversAllFilesInOrder) {
  const std::string a = write_small_dataset(folder_ / "a.beton", 1, "abc");
  const std::string b = write_small_dataset(folder_ / "b.beton", 2, "abd");
  const auto joined = [](const std::string& one, const std::string& two) {
    return content_of("[" + one + ", " + two + "]");
  };
  const auto both = joined(a, b);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->fingerprint,
            data::BetonReader(std::vector<std::filesystem::path>{a, b}).fingerprint());
  EXPECT_NE(joined(b, a)->fingerprint, both->fingerprint);
  EXPECT_NE(joined(b, a)->checksums, both->checksums);
  write_small_dataset(b, 3, "abd");
  EXPECT_NE(joined(a, b)->fingerprint, both->fingerprint);
}

TEST_F(DatasetContentTest, IsUnknownForUrlsAndOtherFiles) {
  std::ofstream(file_) << "not a dataset";
  EXPECT_FALSE(content_of(file_).has_value());
  EXPECT_FALSE(content_of(folder_ / "missing.beton").has_value());
  EXPECT_FALSE(content_of("http://127.0.0.1:1/d.beton").has_value());
  EXPECT_FALSE(content_of("").has_value());
  write_small_dataset(file_, 1);
  EXPECT_TRUE(content_of(file_).has_value());
}

}  // namespace
}  // namespace precast::tools
