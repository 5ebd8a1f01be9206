#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "data/sources/register.h"
#include "data/sources/tar_index.h"
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
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Writes a tar with one entry.
void write_odd_tar(const std::filesystem::path& path, const std::string& name, unsigned type,
                   const std::string& link = "") {
  archive* writer = archive_write_new();
  archive_write_set_format_ustar(writer);
  archive_write_open_filename(writer, path.c_str());
  archive_entry* entry = archive_entry_new();
  archive_entry_set_pathname(entry, name.c_str());
  archive_entry_set_perm(entry, 0644);
  archive_entry_set_filetype(entry, type);
  if (type == AE_IFLNK) archive_entry_set_symlink(entry, link.c_str());
  if (type == AE_IFREG && !link.empty()) archive_entry_set_hardlink(entry, link.c_str());
  archive_entry_set_size(entry, 0);
  archive_write_header(writer, entry);
  archive_entry_free(entry);
  archive_write_close(writer);
  archive_write_free(writer);
}

TEST(TarSource, GivesWhatItsUnpackedTreeGives) {
  const test::TemporaryFolder folder;
  test::make_class_tree(folder / "tree");
  const auto tree = open_source(folder / "tree");
  const std::string long_name(150, 'd');
  for (const std::string& prefix :
       {std::string(), std::string("./"), std::string("train/"), long_name + "/train/"}) {
    test::make_tar(folder / "a.tar", folder / "tree", prefix);
    const auto tar = open_source(folder / "a.tar");
    EXPECT_EQ(tar->class_names(), tree->class_names());
    EXPECT_EQ(tar->notes(), tree->notes());
    ASSERT_EQ(tar->size(), tree->size()) << prefix;
    for (std::uint64_t i = 0; i < tar->size(); ++i) {
      EXPECT_EQ(image_of(tar->sample(i)).file, image_of(tree->sample(i)).file) << prefix << i;
      EXPECT_EQ(label_of(tar->sample(i)), label_of(tree->sample(i)));
      EXPECT_THAT(tar->sample(i).name, HasSubstr((folder / "a.tar").string() + ":"));
    }
  }
}

TEST(TarSource, ATarOfOneTarAClassIsThatTree) {
  const test::TemporaryFolder folder;
  test::make_class_tree(folder / "tree");
  const auto tree = open_source(folder / "tree");
  std::filesystem::create_directory(folder / "tars");
  for (const std::string& name : tree->class_names())
    test::make_tar(folder / "tars" / (name + ".tar"), folder / "tree" / name, "");
  test::make_tar(folder / "train.tar", folder / "tars", "");
  const auto tar = open_source(folder / "train.tar");
  EXPECT_EQ(tar->class_names(), tree->class_names());
  ASSERT_EQ(tar->size(), tree->size());
  for (std::uint64_t i = 0; i < tar->size(); ++i) {
    EXPECT_EQ(image_of(tar->sample(i)).file, image_of(tree->sample(i)).file) << i;
    EXPECT_EQ(label_of(tar->sample(i)), label_of(tree->sample(i)));
  }
  // If an inner archive is damaged, the error names it.
  std::vector<std::byte> bytes = test::read_bytes(folder / "train.tar");
  const std::string header = tree->class_names()[1] + ".tar";
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const std::size_t at = std::string_view(text, bytes.size()).find(header);
  ASSERT_NE(at, std::string_view::npos);
  bytes[at + 512 + 150] ^= std::byte{0xff};  // The first inner header's checksum.
  test::write_bytes(folder / "bad.tar", bytes);
  EXPECT_THAT(opener(folder / "bad.tar"),
              ThrowsMessage<DataError>(Names(folder / ("bad.tar:" + header))));
}

TEST(TarSource, ManyThreadsReadAtOnce) {
  const test::TemporaryFolder folder;
  test::make_class_tree(folder / "tree");
  test::make_tar(folder / "a.tar", folder / "tree", "");
  const auto tar = open_source(folder / "a.tar");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        const std::uint64_t sample = (i + static_cast<std::uint64_t>(t)) % tar->size();
        const auto before = image_of(tar->sample(sample)).file;
        if (before != image_of(tar->sample(sample)).file) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(TarSource, RefusesPathsAndKindsThatLeadElsewhere) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.tar";
  write_odd_tar(path, "/etc/a.jpg", AE_IFREG);
  EXPECT_THAT(opener(path), ThrowsMessage<DataError>(Names(path, "'/etc/a.jpg'")));
  write_odd_tar(path, "cat/../../a.jpg", AE_IFREG);
  EXPECT_THAT(opener(path), ThrowsMessage<DataError>(Names(path, "'cat/../../a.jpg'")));
  write_odd_tar(path, "cat/a.jpg", AE_IFLNK, "/etc/passwd");
  EXPECT_THAT(opener(path), ThrowsMessage<DataError>(Names(path, "'cat/a.jpg'")));
  write_odd_tar(path, "cat/a.jpg", AE_IFREG, "cat/b.jpg");
  EXPECT_THAT(opener(path), ThrowsMessage<DataError>(Names(path, "'cat/a.jpg'")));
  write_odd_tar(path, "cat/a.jpg", AE_IFIFO);
  EXPECT_THAT(opener(path), ThrowsMessage<DataError>(Names(path, "'cat/a.jpg'")));
}

/// A member of a ustar file. @param kind `0` for a file, `x` for attributes of the next member.
std::string tar_member(const std::string& name, char kind, const std::string& content) {
  std::string block(512, '\0');
  const auto put = [&block](std::size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  put(0, name);
  put(100, "0000644");
  put(124, fmt::format("{:011o}", content.size()));
  put(136, "00000000000");
  put(148, "        ");
  block[156] = kind;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + '\0');
  return block + content + std::string((512 - content.size() % 512) % 512, '\0');
}

TEST(TarSource, NamesThatTheLocaleCannotRepresentAreAccepted) {
  const std::string name =
      "gr\xC3\xB6\xC3\x9F"
      "e/\xE7\x8C\xAB.jpg";
  const std::string record = fmt::format(" path={}\n", name);
  const std::string tar = tar_member("pax", 'x', fmt::format("{}{}", record.size() + 2, record)) +
                          tar_member("ascii.jpg", '0', "bytes") +
                          tar_member("plain/1.jpg", '0', "more") + std::string(1024, '\0');
  const TarIndex index = index_tar(std::as_bytes(std::span(tar)), "t");
  ASSERT_EQ(index.files.size(), 2U);
  EXPECT_EQ(index.files[0].path, name);
  EXPECT_EQ(index.files[0].bytes.size(), 5U);
  EXPECT_EQ(index.files[1].path, "plain/1.jpg");
}

TEST(TarSource, RefusesCutOffAndCompressedArchives) {
  const test::TemporaryFolder folder;
  test::make_class_tree(folder / "tree");
  test::make_tar(folder / "a.tar", folder / "tree", "");
  const std::vector<std::byte> whole = test::read_bytes(folder / "a.tar");
  // Cuts inside the headers and data of the members. Only padding follows the last member.
  for (std::size_t size = 100; size + 12 * 1024 < whole.size(); size += 333) {
    test::write_bytes(folder / "cut.tar", std::span(whole).first(size));
    EXPECT_THROW(opener(folder / "cut.tar")(), DataError) << size << " of " << whole.size();
  }
  test::write_bytes(folder / "b.tar.gz", std::vector<std::byte>{std::byte{0x1F}, std::byte{0x8B}});
  EXPECT_THAT(opener(folder / "b.tar.gz"),
              ThrowsMessage<DataError>(Names(folder / "b.tar.gz", "gunzip")));
}

TEST(TarSource, OfMembersOfOneNameTheLastCounts) {
  const test::TemporaryFolder folder;
  const std::string tar = tar_member("a/1.jpg", '0', "old") + tar_member("a/2.jpg", '0', "two") +
                          tar_member("b/1.jpg", '0', "three") +
                          tar_member("a/1.jpg", '0', "newer") + std::string(1024, '\0');
  test::write_bytes(folder / "t.tar", std::as_bytes(std::span(tar)));
  const auto source = open_source(folder / "t.tar", "tar");
  ASSERT_EQ(source->size(), 3U);
  EXPECT_EQ(image_of(source->sample(0)).file.size(), 5U);
  EXPECT_EQ(source->notes(), (Tally{{"replaced_members", 1}}));
}

}  // namespace
}  // namespace precast::data
