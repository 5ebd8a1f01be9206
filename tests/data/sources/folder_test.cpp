#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "data/sources/class_files.h"
#include "data/sources/register.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/opened.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::image_of;
using test::listing;
using test::Names;
using test::opener;
using testing::ElementsAre;
using testing::ThrowsMessage;

TEST(FolderSource, OrdersClassesAndFilesAsTorchvision) {
  const test::TemporaryFolder folder;
  test::make_class_tree(folder / "tree");
  const auto source = open_source(folder / "tree");
  EXPECT_THAT(source->class_names(), ElementsAre("cat", "cat-like", "dog"));
  // sorted(os.walk()) gives a folder's own files before those of the folders inside it.
  EXPECT_THAT(
      listing(*source, "tree/"),
      ElementsAre("cat/a.JPEG 0", "cat/b.jpg 0", "cat/c.png 0", "cat/old/0.jpg 0",
                  "cat-like/x.jpg 1", "dog/1.jpg 2", "dog/10.jpg 2", "dog/2.jpg 2", "dog/3.jpg 2"));
  EXPECT_EQ(source->notes(), (Tally{{"skipped_files", 1}}));
  EXPECT_EQ(image_of(source->sample(0)).file, test::read_bytes(folder / "tree" / "cat" / "a.JPEG"));
}

TEST(FolderSource, LooksThroughFoldersAroundAllClasses) {
  const test::TemporaryFolder folder;
  test::make_class_tree(folder / "data" / "imagenet" / "train");
  const auto source = open_source(folder / "data");
  EXPECT_THAT(source->class_names(), ElementsAre("cat", "cat-like", "dog"));
}

TEST(FolderSource, RefusesWhatIsNoClassTree) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "empty");
  EXPECT_THAT(opener(folder / "empty"),
              ThrowsMessage<DataError>(Names(folder / "empty", ".jpeg", 0)));
  const auto jpeg = test::jpeg_file(test::gradient(8, 8));
  test::put_file(folder / "flat" / "a.jpg", jpeg);
  EXPECT_THAT(opener(folder / "flat"),
              ThrowsMessage<DataError>(Names(folder / "flat", "--labels", 1)));
  test::make_class_tree(folder / "hole");
  std::filesystem::create_directories(folder / "hole" / "cow");
  EXPECT_THAT(opener(folder / "hole"), ThrowsMessage<DataError>(Names(folder / "hole", "'cow'")));
  test::make_class_tree(folder / "splits" / "train");
  test::make_class_tree(folder / "splits" / "val");
  EXPECT_THAT(opener(folder / "splits"),
              ThrowsMessage<DataError>(Names(folder / "splits", "train, val")));
  EXPECT_THAT(opener(folder / "nothing"),
              ThrowsMessage<IoError>(Names(folder / "nothing", std::strerror(ENOENT))));
}

TEST(ClassFiles, TellsClassesOfLooseImagesByTheirWordnetId) {
  const std::vector<std::string> paths = {"n01440764_b.JPEG", "n00000001_z.png", "n01440764_a.JPEG",
                                          "read.me"};
  const ClassFiles files = arrange_by_class(paths, {}, "x");
  EXPECT_THAT(files.class_names, ElementsAre("n00000001", "n01440764"));
  std::vector<std::string> order;
  for (const ClassFile& file : files.files) {
    order.push_back(fmt::format("{} {}", paths[file.path], file.label));
  }
  EXPECT_THAT(order, ElementsAre("n00000001_z.png 0", "n01440764_a.JPEG 1", "n01440764_b.JPEG 1"));
  EXPECT_EQ(files.skipped.count(), 1U);
  EXPECT_THROW((void)arrange_by_class({"n01440764_b.JPEG", "n0144076_b.JPEG"}, {}, "x"), DataError);
}

TEST(ClassFiles, ImagesBesideTheClassFoldersAreCountedAsSkipped) {
  const ClassFiles files = arrange_by_class({"logo.png", "b/1.jpg", "a/1.jpg"}, {"a", "b"}, "x");
  EXPECT_THAT(files.class_names, ElementsAre("a", "b"));
  EXPECT_EQ(files.files.size(), 2U);
  EXPECT_EQ(files.skipped.count(), 1U);
}

TEST(FolderSource, NamesWhatItLeavesOutAndWhy) {
  const test::TemporaryFolder folder;
  const auto image = test::jpeg_file(test::gradient(8, 8));
  for (const char* name : {"cat/1.jpg", "dog/1.jpg", "logo.png", "cat/notes.txt", "cat/.1.jpg",
                           ".DS_Store", ".ipynb_checkpoints/1.jpg", "dog/._1.jpg"})
    test::put_file(folder / name, image);
  const auto source = open_source(folder.path());
  EXPECT_THAT(source->class_names(), ElementsAre("cat", "dog"));
  EXPECT_EQ(source->size(), 2U);
  EXPECT_EQ(source->notes(), (Tally{{"skipped_files", 6}}));
  const auto& skipped_files = source->skipped_files().by_reason();
  ASSERT_EQ(skipped_files.size(), 3U);
  EXPECT_EQ(skipped_files.at("hidden").count, 4U);
  EXPECT_THAT(skipped_files.at("hidden").first, testing::Contains(".ipynb_checkpoints/1.jpg"));
  EXPECT_THAT(skipped_files.at("in no class folder").first, ElementsAre("logo.png"));
  EXPECT_THAT(skipped_files.at("not named as an image").first, ElementsAre("cat/notes.txt"));
}

TEST(FolderSource, ImagesOfOtherFormatsAreNotPassedOver) {
  const test::TemporaryFolder folder;
  const std::vector<std::byte> bytes(40, std::byte{'x'});
  for (const char* name : {"cat/1.bmp", "cat/2.gif", "cat/3.GIF", "cat/4.tiff"})
    test::put_file(folder / name, bytes);
  EXPECT_EQ(open_source(folder.path())->size(), 4U);
}

TEST(ClassFiles, OneClassStaysOneClass) {
  const ClassFiles files = arrange_by_class({"cat/1.jpg", "cat/2.jpg"}, {"cat"}, "x");
  EXPECT_THAT(files.class_names, ElementsAre("cat"));
}

TEST(ClassFiles, ALabelIsAPositionEvenAfterAClassNameThatOccursTwice) {
  const ClassFiles files = arrange_by_class({"c/1.jpg", "b/1.jpg"}, {}, "x", {"a", "b", "a", "c"});
  ASSERT_EQ(files.files.size(), 2U);
  EXPECT_EQ(files.files[0].label, 1);
  EXPECT_EQ(files.files[1].label, 3);
}

TEST(ClassFiles, FoldersOutsideTheFolderOfAllImagesAreNoClasses) {
  const std::vector<std::string> paths = {"train/a/1.png", "train/b/1.png"};
  const ClassFiles files =
      arrange_by_class(paths, {"train", "train/a", "train/b", "annotations", "a-folder/a"}, "x");
  EXPECT_THAT(files.class_names, ElementsAre("a", "b"));
  EXPECT_THAT(
      [&] {
        (void)arrange_by_class(paths, {"train", "train/a", "train/b", "train/c"}, "x");
      },
      ThrowsMessage<DataError>(Names("x", "'train/c'")));
}

TEST(FolderSource, NestedFoldersFollowEachOtherAsTorchvisionSortsThem) {
  const test::TemporaryFolder folder;
  const auto image = test::jpeg_file(test::gradient(8, 8));
  for (const char* name : {"a.d", "a b", "a-1", "a"})
    test::put_file(folder / "c" / name / "1.jpg", image);
  test::put_file(folder / "d" / "1.jpg", image);
  const auto source = open_source(folder.path());
  EXPECT_THAT(
      listing(*source, folder.path().filename().string() + "/"),
      ElementsAre("c/a/1.jpg 0", "c/a b/1.jpg 0", "c/a-1/1.jpg 0", "c/a.d/1.jpg 0", "d/1.jpg 1"));
}

}  // namespace
}  // namespace precast::data
