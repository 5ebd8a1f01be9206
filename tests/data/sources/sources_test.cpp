#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <thread>

#include "data/beton/reader.h"
#include "data/beton/write_dataset.h"
#include "data/fields/register.h"
#include "data/sources/braces.h"
#include "data/sources/class_files.h"
#include "data/sources/delimited.h"
#include "data/sources/register.h"
#include "data/sources/tar_index.h"
#include "framework/core/archive/npy.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::int64_t label_of(const Sample& sample) {
  return std::get<std::int64_t>(sample.values[1]);
}
const ImageInput& image_of(const Sample& sample) {
  return std::get<ImageInput>(sample.values[0]);
}

/// Names from the last `root` on, with labels: `cat/a.JPEG 0`.
std::vector<std::string> listing(const Source& source, const std::string& root) {
  std::vector<std::string> lines;
  for (std::uint64_t i = 0; i < source.size(); ++i) {
    const Sample sample = source.sample(i);
    const std::string name = sample.name.substr(sample.name.rfind(root) + root.size());
    lines.push_back(fmt::format("{} {}", name, label_of(sample)));
  }
  return lines;
}

/// What open_source says against `path`.
auto refusing(const std::filesystem::path& path, const std::string& kind = "auto") {
  return [path, kind] { (void)open_source(path, kind); };
}

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
  EXPECT_THAT(refusing(folder / "empty"),
              ThrowsMessage<DataError>(HasSubstr("expected image files")));
  const auto jpeg = test::jpeg_file(test::gradient(8, 8));
  test::put_file(folder / "flat" / "a.jpg", jpeg);
  EXPECT_THAT(refusing(folder / "flat"),
              ThrowsMessage<DataError>(HasSubstr("expected one folder a class")));
  test::make_class_tree(folder / "hole");
  std::filesystem::create_directories(folder / "hole" / "cow");
  EXPECT_THAT(refusing(folder / "hole"), ThrowsMessage<DataError>(HasSubstr("got none in 'cow'")));
  test::make_class_tree(folder / "splits" / "train");
  test::make_class_tree(folder / "splits" / "val");
  EXPECT_THAT(refusing(folder / "splits"),
              ThrowsMessage<DataError>(HasSubstr("got the splits train, val")));
  EXPECT_THAT(refusing(folder / "nothing"), ThrowsMessage<IoError>(HasSubstr("nothing")));
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
  EXPECT_EQ(files.skipped, 1U);
  EXPECT_THROW((void)arrange_by_class({"n01440764_b.JPEG", "n0144076_b.JPEG"}, {}, "x"), DataError);
}

TEST(ClassFiles, ImagesBesideTheClassFoldersAreCountedAsSkipped) {
  const ClassFiles files = arrange_by_class({"logo.png", "b/1.jpg", "a/1.jpg"}, {"a", "b"}, "x");
  EXPECT_THAT(files.class_names, ElementsAre("a", "b"));
  EXPECT_EQ(files.files.size(), 2U);
  EXPECT_EQ(files.skipped, 1U);
}

TEST(ClassFiles, OneClassStaysOneClass) {
  const ClassFiles files = arrange_by_class({"cat/1.jpg", "cat/2.jpg"}, {"cat"}, "x");
  EXPECT_THAT(files.class_names, ElementsAre("cat"));
}

/// A tar of one entry.
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
      EXPECT_THAT(tar->sample(i).name, HasSubstr("a.tar:"));
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
  // Damage inside names the inner archive.
  std::vector<std::byte> bytes = test::read_bytes(folder / "train.tar");
  const std::string header = tree->class_names()[1] + ".tar";
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const std::size_t at = std::string_view(text, bytes.size()).find(header);
  ASSERT_NE(at, std::string_view::npos);
  bytes[at + 512 + 150] ^= std::byte{0xff};  // The first inner header's checksum.
  test::write_bytes(folder / "bad.tar", bytes);
  EXPECT_THAT(refusing(folder / "bad.tar"),
              ThrowsMessage<DataError>(HasSubstr("bad.tar:" + header)));
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
  EXPECT_THAT(refusing(path), ThrowsMessage<DataError>(HasSubstr("expected relative paths")));
  write_odd_tar(path, "cat/../../a.jpg", AE_IFREG);
  EXPECT_THAT(refusing(path), ThrowsMessage<DataError>(HasSubstr("one with '..'")));
  write_odd_tar(path, "cat/a.jpg", AE_IFLNK, "/etc/passwd");
  EXPECT_THAT(refusing(path), ThrowsMessage<DataError>(HasSubstr("link or a device")));
  write_odd_tar(path, "cat/a.jpg", AE_IFREG, "cat/b.jpg");
  EXPECT_THAT(refusing(path), ThrowsMessage<DataError>(HasSubstr("link or a device")));
  write_odd_tar(path, "cat/a.jpg", AE_IFIFO);
  EXPECT_THAT(refusing(path), ThrowsMessage<DataError>(HasSubstr("link or a device")));
}

/// A member of a ustar file. @param kind `0` for a file, `x` for what is said about the next one.
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

TEST(TarSource, NamesThatTheLocaleHasNoLettersForAreNoDamage) {
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
  // Within the headers and data of the members; what follows the last one is padding.
  for (std::size_t size = 100; size + 12 * 1024 < whole.size(); size += 333) {
    test::write_bytes(folder / "cut.tar", std::span(whole).first(size));
    EXPECT_THROW(refusing(folder / "cut.tar")(), DataError) << size << " of " << whole.size();
  }
  test::write_bytes(folder / "b.tar.gz", std::vector<std::byte>{std::byte{0x1F}, std::byte{0x8B}});
  EXPECT_THAT(refusing(folder / "b.tar.gz"),
              ThrowsMessage<DataError>(HasSubstr("expected an uncompressed tar file, got a gzip")));
}

std::vector<std::byte> idx(std::uint32_t magic, const std::vector<std::uint32_t>& shape,
                           std::size_t bytes) {
  std::vector<std::byte> file;
  const auto append = [&file](std::uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8)
      file.push_back(static_cast<std::byte>(number >> shift));
  };
  append(magic);
  for (const std::uint32_t size : shape) append(size);
  for (std::size_t i = 0; i < bytes; ++i) file.push_back(static_cast<std::byte>(i % 10));
  return file;
}

void write_gzip(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

TEST(IdxSource, ReadsPairsPlainAndGzipped) {
  const test::TemporaryFolder folder;
  const auto images = idx(0x803, {12, 3, 5}, 180);
  const auto labels = idx(0x801, {12}, 12);
  const auto check = [](const Source& source) {
    ASSERT_EQ(source.size(), 12U);
    EXPECT_EQ(source.class_names().size(), 10U);
    const Sample sample = source.sample(11);
    EXPECT_EQ(label_of(sample), 1);
    const Image& image = image_of(sample).pixels;
    ASSERT_EQ(image.height, 3);
    ASSERT_EQ(image.width, 5);
    for (std::size_t p = 0; p < 15; ++p) {
      for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(image.pixels[3 * p + c], (11 * 15 + p) % 10);
      }
    }
  };
  test::write_bytes(folder / "train-images-idx3-ubyte", images);
  test::write_bytes(folder / "train-labels-idx1-ubyte", labels);
  check(*open_source(folder / "train-images-idx3-ubyte"));
  write_gzip(folder / "t10k-images-idx3-ubyte.gz", images);
  write_gzip(folder / "t10k-labels-idx1-ubyte.gz", labels);
  check(*open_source(folder / "t10k-images-idx3-ubyte.gz"));
  // One plain, one packed; and the other spelling.
  test::write_bytes(folder / "x-images.idx3-ubyte", images);
  write_gzip(folder / "x-labels.idx1-ubyte.gz", labels);
  check(*open_source(folder / "x-images.idx3-ubyte"));
}

TEST(IdxSource, RefusesSizesThatDoNotMatch) {
  const test::TemporaryFolder folder;
  const std::filesystem::path images = folder / "a-images-idx3-ubyte";
  const std::filesystem::path labels = folder / "a-labels-idx1-ubyte";
  const auto expect = [&](const std::vector<std::byte>& image_bytes,
                          const std::vector<std::byte>& label_bytes, const char* text) {
    test::write_bytes(images, image_bytes);
    test::write_bytes(labels, label_bytes);
    EXPECT_THAT(refusing(images), ThrowsMessage<DataError>(HasSubstr(text)));
  };
  const auto good = idx(0x803, {4, 2, 2}, 16);
  const auto good_labels = idx(0x801, {4}, 4);
  expect(idx(0x803, {4, 2, 2}, 15), good_labels, "expected 32 bytes as its header says, got 31");
  expect(idx(0x803, {4, 2, 2}, 17), good_labels, "expected 32 bytes as its header says, got more");
  expect(idx(0x802, {4, 2}, 8), good_labels,
         "expected an IDX file with magic number 0x803, got 0x802");
  expect(idx(0x803, {0, 2, 2}, 0), good_labels, "expected sizes of at least 1");
  expect(idx(0x803, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, 10), good_labels, "expected sizes");
  expect(idx(0x803, {0xFFFFFFFF, 0xFFFF, 2}, 10), good_labels, "as its header says, got 26");
  expect(good, idx(0x801, {3}, 3), "got 4 images and 3 labels");
  expect(good, good, "expected an IDX file with magic number 0x801, got 0x803");
  expect({std::byte{0}}, good_labels, "got less than a header");
  std::filesystem::remove(labels);
  test::write_bytes(images, good);
  EXPECT_THAT(refusing(images), ThrowsMessage<DataError>(HasSubstr("expected its labels in")));
}

TEST(IdxSource, RefusesADamagedGzipFile) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "a-images-idx3-ubyte.gz";
  write_gzip(path, idx(0x803, {400, 20, 20}, 160000));
  write_gzip(folder / "a-labels-idx1-ubyte.gz", idx(0x801, {400}, 400));
  EXPECT_NO_THROW(refusing(path)());
  const std::vector<std::byte> whole = test::read_bytes(path);
  for (std::size_t size = 2; size < whole.size() - 8; size += 5) {
    test::write_bytes(path, std::span(whole).first(size));
    EXPECT_THROW(refusing(path)(), DataError) << size;
  }
}

/// `records` records of CIFAR: label bytes, then three planes of one level each.
std::vector<std::byte> cifar(std::size_t records, std::size_t label_bytes) {
  std::vector<std::byte> file;
  for (std::size_t i = 0; i < records; ++i) {
    if (label_bytes == 2) file.push_back(static_cast<std::byte>(i % 20));
    file.push_back(static_cast<std::byte>(label_bytes == 2 ? 99 - i : i % 10));
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t p = 0; p < 1024; ++p)
        file.push_back(static_cast<std::byte>(c * 80 + (p + i) % 50));
    }
  }
  return file;
}

TEST(CifarSource, ReadsFoldersAndFiles) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "data_batch_2.bin", cifar(3, 1));
  test::write_bytes(folder / "data_batch_1.bin", cifar(5, 1));
  test::write_bytes(folder / "test_batch.bin", cifar(4, 1));
  const std::string names = "plane\ncar\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
  test::write_bytes(folder / "batches.meta.txt", std::as_bytes(std::span(names)));
  const auto train = open_source(folder.path());
  ASSERT_EQ(train->size(), 8U);
  EXPECT_EQ(train->class_names()[9], "truck");
  const Sample sample = train->sample(6);  // The second record of data_batch_2.
  EXPECT_THAT(sample.name, HasSubstr("data_batch_2.bin[1]"));
  EXPECT_EQ(label_of(sample), 1);
  const Image& image = image_of(sample).pixels;
  ASSERT_EQ(image.width, 32);
  ASSERT_EQ(image.height, 32);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    ASSERT_EQ(image.pixels[i], i % 3 * 80 + (i / 3 + 1) % 50) << i;
  }
  EXPECT_EQ(open_source(folder / "test_batch.bin")->size(), 4U);
}

TEST(CifarSource, ReadsTheFineLabelsOfCifar100) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "train.bin", cifar(6, 2));
  const auto source = open_source(folder.path());
  ASSERT_EQ(source->size(), 6U);
  EXPECT_EQ(source->class_names().size(), 100U);
  EXPECT_EQ(label_of(source->sample(5)), 94);
  EXPECT_EQ(image_of(source->sample(5)).pixels.pixels[0], 5);
}

TEST(CifarSource, RefusesWrongSizesAndLabels) {
  const test::TemporaryFolder folder;
  auto file = cifar(2, 1);
  file.pop_back();
  test::write_bytes(folder / "data_batch_1.bin", file);
  EXPECT_THAT(
      refusing(folder.path()),
      ThrowsMessage<DataError>(HasSubstr("expected CIFAR-10 records of 3073 bytes, got 6145")));
  file = cifar(2, 1);
  file[3073] = std::byte{10};
  test::write_bytes(folder / "data_batch_1.bin", file);
  EXPECT_THAT(refusing(folder.path()),
              ThrowsMessage<DataError>(HasSubstr("record 1: expected a label below 10, got 10")));
}

TEST(OpenSource, ListsItsKindsForWhatItDoesNotKnow) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "a.odd", cifar(1, 1));
  EXPECT_THAT(refusing(folder / "a.odd"),
              ThrowsMessage<DataError>(AllOf(HasSubstr("a.odd: expected a dataset of one of"),
                                             HasSubstr("cifar"), HasSubstr("folder"),
                                             HasSubstr("idx"), HasSubstr("tar"))));
  EXPECT_THAT(refusing(folder / "a.odd", "tra"),
              ThrowsMessage<ConfigError>(HasSubstr("unknown kind 'tra'. Did you mean 'tar'?")));
  // A kind that is asked for is taken at its word.
  EXPECT_EQ(open_source(folder / "a.odd", "cifar")->size(), 1U);
}

/// A tar of files with these names and contents, in this order.
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
                                         {"x/2.JPG", "J2"},
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

TEST_F(WebDatasetTest, EndingsTellFieldsAndShardsFollowEachOther) {
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
  EXPECT_THAT(source->sample(2).name, HasSubstr("shards-1.tar:2"));
}

TEST_F(WebDatasetTest, ASampleWithoutWhatTheFirstHasIsNamed) {
  const auto source = open_source(folder_.path(), "webdataset");
  ASSERT_EQ(source->size(), 3U);
  EXPECT_THAT([&] { (void)source->sample(2); },
              ThrowsMessage<DataError>(
                  AllOf(HasSubstr("shards-1.tar:x/2"), HasSubstr("expected a member .jpg"))));
  write_tar(folder_ / "bad.tar", {{"a.jpg", "J"}, {"a.cls", "cat"}});
  const auto bad = open_source(folder_ / "bad.tar");
  EXPECT_THAT([&] { (void)bad->sample(0); },
              ThrowsMessage<DataError>(
                  AllOf(HasSubstr("bad.tar:a.cls"), HasSubstr("whole number, got 'cat'"))));
}

TEST_F(WebDatasetTest, BracesStandForShardsInTheirOrder) {
  std::filesystem::remove(folder_ / "shards-1.tar");
  std::filesystem::copy(folder_ / "shards-0.tar", folder_ / "shards-2.tar");
  const auto source = open_source(folder_ / "shards-{2,0}.tar");
  ASSERT_EQ(source->size(), 4U);
  EXPECT_THAT(source->sample(0).name, HasSubstr("shards-2.tar:x/0"));
  EXPECT_THAT(source->sample(3).name, HasSubstr("shards-0.tar:x/1"));
  EXPECT_THAT(refusing(folder_ / "shards-{0..2}.tar"),
              ThrowsMessage<IoError>(HasSubstr("shards-1.tar")));
  EXPECT_THAT(refusing(folder_ / "shards-{0,2}.tar", "tar"),
              ThrowsMessage<ConfigError>(HasSubstr("expected one source of kind tar")));
}

TEST(ExpandBraces, CountsWithTheDigitsOfTheFirstAndListsCombinations) {
  EXPECT_THAT(expand_braces("plain.tar"), ElementsAre("plain.tar"));
  EXPECT_THAT(expand_braces("a{08..11}.tar"),
              ElementsAre("a08.tar", "a09.tar", "a10.tar", "a11.tar"));
  EXPECT_THAT(expand_braces("{9..10}"), ElementsAre("9", "10"));
  EXPECT_THAT(expand_braces("{a,b}-{0..1}"), ElementsAre("a-0", "a-1", "b-0", "b-1"));
  EXPECT_THAT(expand_braces("x{,y}"), ElementsAre("x", "xy"));
  EXPECT_THAT(expand_braces("{18446744073709551614..18446744073709551615}"),
              ElementsAre("18446744073709551614", "18446744073709551615"));
  for (const char* wrong : {"{0..}", "{2..1}", "{0..9", "{a}", "{a..b}", "{-1..2}",
                            "{0..99999999999}", "{0..999}{0..9999}"}) {
    EXPECT_THROW((void)expand_braces(wrong), ConfigError) << wrong;
  }
}

TEST_F(WebDatasetTest, AListOfOneNameOpensIt) {
  std::filesystem::copy(folder_ / "shards-0.tar", folder_ / "only-07.tar");
  EXPECT_EQ(open_source(folder_ / "only-{07..07}.tar")->size(), 2U);
  EXPECT_THAT(refusing(folder_ / "only-{08..08}.tar"),
              ThrowsMessage<IoError>(HasSubstr("only-08.tar")));
  EXPECT_THAT(refusing(folder_ / (std::string(5000, 'x') + ".tar")),
              ThrowsMessage<IoError>(HasSubstr("File name too long")));
  EXPECT_THAT(refusing(folder_ / (std::string(5000, 'x') + "{0..1}.tar")),
              ThrowsMessage<IoError>(HasSubstr("File name too long")));
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

TEST_F(WebDatasetTest, ATarOfClassFoldersIsNoShard) {
  write_tar(folder_ / "classes.tar", {{"cat/1.jpg", "a"}, {"cat/2.jpg", "b"}, {"dog/1.jpg", "c"}});
  EXPECT_EQ(open_source(folder_ / "classes.tar")->fields().size(), 2U);
  EXPECT_EQ(open_source(folder_ / "classes.tar")->class_names().size(), 2U);
}

TEST(ParseDelimited, QuotesHoldDelimitersLinesAndQuotes) {
  const auto rows = parse_delimited("a,b\r\n\"x,\"\"y\"\"\nz\",\n\n,\"\"\nlast,1", ',', "t");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_THAT(rows[0], ElementsAre("a", "b"));
  EXPECT_THAT(rows[1], ElementsAre("x,\"y\"\nz", ""));
  EXPECT_THAT(rows[2], ElementsAre("", ""));
  EXPECT_THAT(rows[3], ElementsAre("last", "1"));
  EXPECT_THAT([] { (void)parse_delimited("a\n\"b\nc", ',', "t"); },
              ThrowsMessage<DataError>(HasSubstr("t: line 2: expected a closing quote")));
  EXPECT_THAT([] { (void)parse_delimited("a\n\"b\"c\n", ',', "t"); },
              ThrowsMessage<DataError>(HasSubstr("t: line 2: expected a delimiter")));
}

TEST(TableSource, ColumnsAreFieldsOfTheKindOfTheirValues) {
  const test::TemporaryFolder folder;
  test::make_class_tree(folder / "tree");
  const std::string rows =
      "file\tlabel\tweight\tcaption_of_the_image\n"
      "tree/cat/a.JPEG\t3\t0.5\ta cat\n"
      "tree/dog/1.jpg\t-4\t2\t\"\"\n";
  write_file(folder / "list.tsv", rows);
  std::string commas = rows;
  std::ranges::replace(commas, '\t', ',');
  write_file(folder / "list.csv", commas);
  write_file(
      folder / "list.jsonl",
      R"({"file": "tree/cat/a.JPEG", "label": 3, "weight": 0.5, "caption_of_the_image": "a cat"})"
      "\n\n"
      R"({"weight": 2, "file": "tree/dog/1.jpg", "label": -4, "caption_of_the_image": ""})");
  for (const char* name : {"list.tsv", "list.csv", "list.jsonl"}) {
    const auto source = open_source(folder / name);
    std::vector<std::string> fields;
    for (const SourceField& field : source->fields())
      fields.push_back(field.name + ":" + field.type);
    EXPECT_THAT(fields,
                ElementsAre("file:image", "label:int", "weight:float", "caption_of_the_i:bytes"))
        << name;
    ASSERT_EQ(source->size(), 2U);
    const Sample sample = source->sample(1);
    EXPECT_EQ(image_of(sample).file, test::read_bytes(folder / "tree" / "dog" / "1.jpg"));
    EXPECT_EQ(label_of(sample), -4);
    EXPECT_EQ(std::get<double>(sample.values[2]), 2.0);
    EXPECT_EQ(std::get<std::string>(sample.values[3]), "");
    EXPECT_THAT(sample.name, HasSubstr("row 2"));
  }
}

TEST(TableSource, NestedValuesAreJsonAndDamagedListsAreTold) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.jsonl", "{\"x\": [1, 2], \"y\": 1}\n{\"x\": null, \"y\": 2.5}\n");
  const auto source = open_source(folder / "a.jsonl");
  EXPECT_EQ(source->fields()[0].type, "json");
  EXPECT_EQ(source->fields()[1].type, "float");
  EXPECT_EQ(std::get<std::string>(source->sample(1).values[0]), "null");
  // Strings of such a column are documents, too.
  write_file(folder / "m.jsonl", "{\"x\": \"a \\\"b\"}\n{\"x\": {\"y\": 1}}\n{\"x\": 3}\n");
  const auto mixed = open_source(folder / "m.jsonl");
  EXPECT_EQ(mixed->fields()[0].type, "json");
  EXPECT_EQ(std::get<std::string>(mixed->sample(0).values[0]), R"("a \"b")");
  EXPECT_EQ(std::get<std::string>(mixed->sample(2).values[0]), "3");
  const std::string deep =
      fmt::format("{{\"x\": {}1{}}}", std::string(500'000, '['), std::string(500'000, ']'));
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"h.jsonl", deep},
      {"i.jsonl", "{\"x\": 100000000000000000000}"},
      {"b.jsonl", "{\"x\": 1}\n{\"y\": 1}\n"},
      {"c.jsonl", "{\"x\": 1}\n[]\n"},
      {"d.csv", "a,b\n1,2\n3\n"},
      {"e.csv", ""},
      {"f.csv", "a,b\n"},
      {"g.jsonl", ""}};
  const std::vector<std::string> told = {"nested at most 64 deep",
                                         "whole numbers of at most 64 bits",
                                         "line 2: expected the 1 keys",
                                         "line 2: expected a JSON object",
                                         "row 2: expected 2 cells, got 1",
                                         "column names",
                                         "expected samples",
                                         "expected samples"};
  for (std::size_t i = 0; i < bad.size(); ++i) {
    write_file(folder / bad[i].first, bad[i].second);
    EXPECT_THAT(refusing(folder / bad[i].first), ThrowsMessage<DataError>(HasSubstr(told[i])))
        << bad[i].first;
  }
}

TEST(TableSource, WholeNumbersAreNeverRounded) {
  const test::TemporaryFolder folder;
  const std::string largest = "9223372036854775807";
  write_file(folder / "a.csv", "a,b,c,d\n" + largest + ",9223372036854775808,9007199254740993,1\n" +
                                   "-9223372036854775808,1,0.5,0.5\n");
  write_file(
      folder / "a.jsonl",
      R"({"a": 9223372036854775807, "b": 9223372036854775808, "c": 9007199254740993, "d": 1})"
      "\n"
      R"({"a": -9223372036854775808, "b": 1, "c": 0.5, "d": 0.5})");
  for (const char* name : {"a.csv", "a.jsonl"}) {
    const auto source = open_source(folder / name);
    std::vector<std::string> types;
    for (const SourceField& field : source->fields()) types.push_back(field.type);
    EXPECT_THAT(types, ElementsAre("int", "bytes", "bytes", "float")) << name;
    const Sample sample = source->sample(0);
    EXPECT_EQ(std::get<std::int64_t>(sample.values[0]), INT64_MAX);
    EXPECT_EQ(std::get<std::string>(sample.values[1]), "9223372036854775808");
    EXPECT_EQ(std::get<std::string>(sample.values[2]), "9007199254740993");
  }
}

/// What a file holds, field by field, as bytes.
std::vector<std::string> contents(const BetonReader& reader) {
  std::vector<std::string> all;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    for (std::size_t f = 0; f < reader.fields().size(); ++f) {
      const FieldInfo& field = reader.fields()[f];
      std::string value =
          fmt::format("{} {} {} {}: ", i, field.name, field.dtype, field.shape.size());
      if (field.type == FieldType::integer) {
        value += std::to_string(reader.integer(i, f));
      } else if (field.type == FieldType::floating) {
        value += fmt::format("{}", reader.floating(i, f));
      } else {
        const std::span<const std::byte> blob = reader.blob(i, f);
        value.append(reinterpret_cast<const char*>(blob.data()), blob.size());
      }
      all.push_back(std::move(value));
    }
  }
  return all;
}

TEST(BetonSource, DamagedValuesAreNotHandedOn) {
  const test::TemporaryFolder folder;
  for (const char* name : {"allfields_w1", "img_jpg_w3"}) {
    const std::vector<std::byte> golden = test::golden_beton(name);
    const std::filesystem::path path = folder / fmt::format("{}.beton", name);
    test::write_bytes(path, golden);
    write_sums_sidecar(BetonReader(path));
    const BetonReader reader(golden, "golden");
    for (std::size_t f = 0; f < reader.fields().size(); ++f) {
      if (!reader.fields()[f].has_pointer() || reader.blob_bytes(1, f) == 0) continue;
      std::vector<std::byte> bytes = golden;
      bytes[reader.blob_offset(1, f) + reader.blob_bytes(1, f) / 2] ^= std::byte{1};
      test::write_bytes(path, bytes);
      const auto source = open_source(path);
      EXPECT_NO_THROW((void)source->sample(0));
      EXPECT_THAT([&] { (void)source->sample(1); },
                  ThrowsMessage<DataError>(HasSubstr(
                      fmt::format("field '{}': expected checksum", reader.fields()[f].name))));
    }
  }
}

TEST(BetonSource, AFileOfFfcvIsWrittenAgainWithAllItsFields) {
  FieldRegistry registry("field");
  register_fields(registry);
  for (const char* name : {"allfields_w1", "allfields_w3_empty", "img_jpg_w3", "img_smart_w3",
                           "scalars_only", "wds_w2"}) {
    const test::TemporaryFolder folder;
    test::write_bytes(folder / "golden.beton", test::golden_beton(name));
    const auto source = open_source(folder / "golden.beton");
    std::vector<FieldPlan> plans;
    for (const SourceField& field : source->fields()) {
      plans.push_back({field.name, [&registry, field] {
                         FieldOptions options;
                         options.image.mode =
                             field.name == "image" ? ImageWriteMode::smart : ImageWriteMode::raw;
                         options.image.smart_threshold_bytes = 10'000;
                         options.image.passthrough = true;
                         options.array = field.array;
                         return registry.create(field.type, options);
                       }});
    }
    WriteOptions options;
    options.layout.page_bytes = kMinPageBytes;
    (void)write_dataset(
        folder / "ours.beton", plans, source->size(),
        [&](std::uint64_t i) { return source->sample(i); }, options);
    EXPECT_TRUE(contents(BetonReader(folder / "ours.beton")) ==
                contents(BetonReader(folder / "golden.beton")))
        << name;
  }
}

}  // namespace
}  // namespace precast::data
