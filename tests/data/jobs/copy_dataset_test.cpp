#include "data/jobs/copy_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/beton/format.h"
#include "data/write/register.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using testing::ThrowsMessage;

class CopyDataset : public testing::Test {
 protected:
  BetonReader golden(const std::string& name, const BetonOptions& options = {}) {
    const std::filesystem::path path = folder_ / (name + ".golden");
    test::write_bytes(path, test::golden_beton(name));
    return BetonReader(path, BlobAccess::mapped, options);
  }
  /// A copy of all samples of the files, one file after another.
  static DatasetCopy all_of(const std::vector<const BetonReader*>& files) {
    DatasetCopy copy;
    copy.files = files;
    for (const BetonReader* file : files) copy.num_samples += file->size();
    copy.sample = [files](std::uint64_t i) {
      CopiedSample from{0, i};
      while (from.sample >= files[from.file]->size()) from.sample -= files[from.file++]->size();
      return from;
    };
    return copy;
  }
  WriteOptions options(const std::vector<const BetonReader*>& files, bool checksums) {
    WriteOptions options;
    options.workers = 2;
    options.layout = {.page_bytes = copy_page_bytes(files), .checksums = checksums};
    return options;
  }

  test::TemporaryFolder folder_;
  const std::filesystem::path out_ = folder_ / "out.beton";
};

TEST_F(CopyDataset, ACompleteCopyOfASingleWorkerFileIsIdentical) {
  for (const char* name : {"img_raw_w1", "allfields_w1", "scalars_only"}) {
    const BetonReader file = golden(name);
    (void)copy_dataset(out_, all_of({&file}), options({&file}, false));
    EXPECT_TRUE(test::read_bytes(out_) == test::golden_beton(name)) << name;
  }
}

TEST_F(CopyDataset, FilesAreConcatenatedAndLabelsCanBeReplaced) {
  const BetonReader file = golden("img_raw_w1");
  const std::size_t label = file.first_field(FieldType::integer);
  DatasetCopy copy = all_of({&file, &file});
  copy.label_field = label;
  copy.relabel = [](std::size_t from, std::int64_t old) {
    return old + 100 * static_cast<std::int64_t>(from);
  };
  (void)copy_dataset(out_, copy, options({&file, &file}, true));
  const BetonReader out(out_);
  ASSERT_EQ(out.size(), 2 * file.size());
  for (std::uint64_t i = 0; i < file.size(); ++i) {
    EXPECT_EQ(out.integer(i, label), file.integer(i, label));
    EXPECT_EQ(out.integer(file.size() + i, label), file.integer(i, label) + 100);
    EXPECT_TRUE(std::ranges::equal(out.blob(file.size() + i, 0), file.blob(i, 0)));
    EXPECT_NO_THROW(out.check_value(i, 0, out.blob(i, 0)));
  }
}

TEST_F(CopyDataset, ASampleThatJustFitsKeepsThePageSize) {
  const FieldRegistry registry = make_fields();
  const auto plan = [&](const char* name, const char* type) {
    return FieldPlan{name, [&registry, type] { return registry.make({type}, {}); }};
  };
  // In a page, an empty value takes one byte, and a number takes none.
  const Sample sample{
      "x", {std::vector<std::byte>(kMinPageBytes - 1), std::vector<std::byte>(), std::int64_t{1}}};
  WriteOptions written;
  written.layout.page_bytes = kMinPageBytes;
  (void)write_dataset(
      out_, {plan("text", "bytes"), plan("empty", "bytes"), plan("label", "int")}, 1,
      [&](std::uint64_t) { return sample; }, written);
  const BetonReader file(out_);
  EXPECT_EQ(copy_page_bytes({&file}), kMinPageBytes);
}

TEST_F(CopyDataset, CustomFieldsAreCopiedWithTheirLayout) {
  const BetonReader file = golden("custom_w1", {{{"boxes", {10, 1, 0}}, {"point", {24, 8, {}}}}});
  (void)copy_dataset(out_, all_of({&file}), options({&file}, true));
  const BetonReader out(out_);
  EXPECT_NO_THROW(check_same_fields(file, out));
  for (std::uint64_t i = 0; i < file.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(out.blob(i, 1), file.blob(i, 1)));
}

TEST_F(CopyDataset, OtherFieldsAreNamedWithTheirFile) {
  const BetonReader images = golden("img_raw_w1");
  const BetonReader numbers = golden("scalars_only");
  const BetonReader more = golden("allfields_w1");
  EXPECT_THAT([&] { check_same_fields(images, numbers); },
              ThrowsMessage<DataError>(Names(folder_ / "scalars_only.golden", "'image'")));
  EXPECT_THROW(check_same_fields(images, more), DataError);
}

}  // namespace
}  // namespace precast::data
