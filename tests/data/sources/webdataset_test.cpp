#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "data/sources/register.h"
#include "framework/core/archive/npy.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/opened.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::image_of;
using test::label_of;
using test::Names;
using test::opener;
using testing::ElementsAre;
using testing::ThrowsMessage;

/// Writes a tar of files with these names and contents, in this order.
void write_tar(const std::filesystem::path& path,
               const std::vector<std::pair<std::string, std::string>>& members) {
  archive* writer = archive_write_new();
  archive_write_set_format_ustar(writer);
  ASSERT_EQ(archive_write_open_filename(writer, path.c_str()), ARCHIVE_OK);
  for (const auto& [name, content] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    ASSERT_EQ(archive_write_header(writer, entry), ARCHIVE_OK);
    archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
}

std::string npy_of_three_floats() {
  const test::TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3};
  write_npy(folder / "a.npy", DType::f32, std::vector<std::int64_t>{3},
            std::as_bytes(std::span(values)));
  const std::vector<std::byte> bytes = test::read_bytes(folder / "a.npy");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class WebDatasetTest : public ::testing::Test {
 protected:
  WebDatasetTest() {
    const std::string npy = npy_of_three_floats();
    write_tar(folder_ / "shards-1.tar", {{"x/2.seg.png", "P2"},
                                         {"x/2.gif", "J2"},
                                         {"x/2.cls", "-7"},
                                         {"x/2.json", "{}"},
                                         {"x/2.npy", npy},
                                         {"x/2.txt", ""}});
    write_tar(folder_ / "shards-0.tar", {{"README", "no sample"},
                                         {"x/0.jpg", "J0"},
                                         {"x/0.cls", "3\n"},
                                         {"x/0.json", "[1]"},
                                         {"x/0.txt", "a cat"},
                                         {"x/0.npy", npy},
                                         {"x/0.seg.png", "P0"},
                                         {"x/1.json", "7"},
                                         {"x/1.npy", npy},
                                         {"x/1.txt", "b"},
                                         {"x/1.cls", "4"},
                                         {"x/1.seg.png", "P1"},
                                         {"x/1.jpg", "J1"}});
  }
  test::TemporaryFolder folder_;
};

TEST_F(WebDatasetTest, ExtensionsDetermineFieldsAndShardsAreConcatenated) {
  std::filesystem::remove(folder_ / "shards-1.tar");
  write_tar(folder_ / "shards-1.tar", {{"2.jpg", "J2"},
                                       {"2.seg.png", "P2"},
                                       {"2.cls", "-7"},
                                       {"2.json", "{}"},
                                       {"2.npy", npy_of_three_floats()},
                                       {"2.txt", ""}});
  const auto source = open_source(folder_.path());
  std::vector<std::string> fields;
  for (const SourceField& field : source->fields()) fields.push_back(field.name + ":" + field.type);
  EXPECT_THAT(fields, ElementsAre("image:image", "label:int", "json:json", "txt:bytes",
                                  "npy:ndarray", "seg.png:image"));
  EXPECT_EQ(source->fields()[4].array, (ArrayFormat{"<f4", {3}}));
  EXPECT_EQ(source->notes(), (Tally{{"skipped_files", 1}}));
  ASSERT_EQ(source->size(), 3U);
  const std::vector<std::int64_t> labels = {3, 4, -7};
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Sample sample = source->sample(i);
    EXPECT_EQ(label_of(sample), labels[i]);
    const std::vector<std::byte> file = image_of(sample).file;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.data()), file.size()),
              fmt::format("J{}", i));
    EXPECT_EQ(std::get<ArrayInput>(sample.values[4]).elements.size(), 12U);
  }
  EXPECT_THAT(source->sample(2).name, Names("shards-1.tar:2"));
}

TEST_F(WebDatasetTest, ASampleWithoutWhatTheFirstHasIsNamed) {
  const auto source = open_source(folder_.path(), "webdataset");
  ASSERT_EQ(source->size(), 3U);
  EXPECT_THAT([&] { (void)source->sample(2); },
              ThrowsMessage<DataError>(Names("shards-1.tar:x/2", ".jpg")));
  write_tar(folder_ / "bad.tar", {{"a.jpg", "J"}, {"a.cls", "cat"}});
  const auto bad = open_source(folder_ / "bad.tar");
  EXPECT_THAT([&] { (void)bad->sample(0); },
              ThrowsMessage<DataError>(Names("bad.tar:a.cls", "'cat'", "--class-column")));
}

TEST_F(WebDatasetTest, BracesStandForShardsInTheirOrder) {
  std::filesystem::remove(folder_ / "shards-1.tar");
  std::filesystem::copy(folder_ / "shards-0.tar", folder_ / "shards-2.tar");
  const auto source = open_source(folder_ / "shards-{2,0}.tar");
  ASSERT_EQ(source->size(), 4U);
  EXPECT_THAT(source->sample(0).name, Names("shards-2.tar:x/0"));
  EXPECT_THAT(source->sample(3).name, Names("shards-0.tar:x/1"));
  EXPECT_THAT(opener(folder_ / "shards-{0..2}.tar"),
              ThrowsMessage<IoError>(Names(folder_ / "shards-1.tar", std::strerror(ENOENT))));
  EXPECT_THAT(opener(folder_ / "shards-{0,2}.tar", "tar"),
              ThrowsMessage<ConfigError>(Names(folder_ / "shards-0.tar", "tar", "WebDataset")));
}

TEST_F(WebDatasetTest, AListOfOneNameOpensIt) {
  std::filesystem::copy(folder_ / "shards-0.tar", folder_ / "only-07.tar");
  EXPECT_EQ(open_source(folder_ / "only-{07..07}.tar")->size(), 2U);
  EXPECT_THAT(opener(folder_ / "only-{08..08}.tar"),
              ThrowsMessage<IoError>(Names(folder_ / "only-08.tar", std::strerror(ENOENT))));
  EXPECT_THAT(opener(folder_ / (std::string(5000, 'x') + ".tar")),
              ThrowsMessage<IoError>(Names(std::strerror(ENAMETOOLONG))));
  EXPECT_THAT(opener(folder_ / (std::string(5000, 'x') + "{0..1}.tar")),
              ThrowsMessage<IoError>(Names(std::strerror(ENAMETOOLONG))));
}

TEST_F(WebDatasetTest, MembersThatTheFirstSampleLacksAreCounted) {
  write_tar(folder_ / "more.tar", {{"0.jpg", "a"},
                                   {"0.cls", "1"},
                                   {"1.jpg", "b"},
                                   {"1.cls", "2"},
                                   {"1.txt", "c"},
                                   {"1.seg.png", "d"}});
  const auto source = open_source(folder_ / "more.tar");
  EXPECT_EQ(source->fields().size(), 2U);
  EXPECT_EQ(source->notes(), (Tally{{"left_out_members", 2}}));
}

TEST_F(WebDatasetTest, ManyShardsTakeNoDescriptors) {
  for (int i = 10; i < 60; ++i)
    std::filesystem::copy(folder_ / "shards-0.tar", folder_ / fmt::format("shards-{}.tar", i));
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  const auto source = open_source(folder_ / "shards-{10..59}.tar");
  EXPECT_LT(open_files(), before + 10);
  EXPECT_EQ(label_of(source->sample(99)), 4);
}

TEST_F(WebDatasetTest, TheImageIsTheOneWithoutASecondDot) {
  const auto fields_of = [&](const std::vector<std::string>& endings) {
    std::vector<std::pair<std::string, std::string>> members;
    for (const std::string& ending : endings) members.emplace_back("0." + ending, "7");
    write_tar(folder_ / "images.tar", members);
    std::vector<std::string> fields;
    const auto source = open_source(folder_ / "images.tar");
    for (const SourceField& field : source->fields())
      fields.push_back(field.name + ":" + field.chosen_from);
    return fields;
  };
  EXPECT_THAT(fields_of({"cls", "depth.jpg", "jpg"}),
              ElementsAre("image:jpg", "label:cls", "depth.jpg:"));
  EXPECT_THAT(fields_of({"a.png", "cls", "jpg", "png"}),
              ElementsAre("image:jpg", "label:cls", "a.png:", "png:"));
  EXPECT_THAT(fields_of({"cls", "left.png", "right.png"}),
              ElementsAre("image:left.png", "label:cls", "right.png:"));
}

TEST_F(WebDatasetTest, ATarOfClassFoldersIsNoShard) {
  write_tar(folder_ / "classes.tar", {{"cat/1.jpg", "a"}, {"cat/2.jpg", "b"}, {"dog/1.jpg", "c"}});
  EXPECT_EQ(open_source(folder_ / "classes.tar")->fields().size(), 2U);
  EXPECT_EQ(open_source(folder_ / "classes.tar")->class_names().size(), 2U);
}

TEST_F(WebDatasetTest, ExtensionsIgnoreCaseAndDotFilesAreSkipped) {
  write_tar(folder_ / "odd.tar", {{"._0.jpg", "x"},
                                  {"0.JPG", "a"},
                                  {"0.CLS", "1"},
                                  {".DS_Store", "x"},
                                  {"1.jpg", "b"},
                                  {"1.cls", "2"}});
  const auto source = open_source(folder_ / "odd.tar");
  ASSERT_EQ(source->size(), 2U);
  EXPECT_EQ(source->fields()[0].name, "image");
  EXPECT_EQ(label_of(source->sample(0)), 1);
  EXPECT_EQ(source->notes(), (Tally{{"skipped_files", 2}}));
}

TEST_F(WebDatasetTest, AMemberTwiceInASampleIsRefused) {
  write_tar(folder_ / "twice.tar", {{"0.jpg", "a"}, {"0.cls", "1"}, {"0.jpg", "b"}});
  EXPECT_THAT(opener(folder_ / "twice.tar"),
              ThrowsMessage<DataError>(Names(folder_ / "twice.tar", "0.jpg")));
}

TEST_F(WebDatasetTest, AShardBesideClassFoldersIsNoDataset) {
  test::make_class_tree(folder_ / "tree");
  std::filesystem::copy(folder_ / "shards-0.tar", folder_ / "tree" / "notes.tar");
  EXPECT_EQ(open_source(folder_ / "tree")->size(), 9U);
}

}  // namespace
}  // namespace precast::data
