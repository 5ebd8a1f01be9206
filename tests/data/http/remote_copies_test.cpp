// Tests when the local copy of a remote file is reused: under another URL, and while the server
// does not respond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/http/http_client.h"
#include "data/http/remote_store.h"
#include "data/loader/loader.h"
#include "framework/core/error.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/data/loader/batch_hash.h"
#include "tests/support/message_matchers.h"
#include "tests/support/range_server.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;

class RemoteCopiesTest : public ::testing::Test {
 protected:
  RemoteCopiesTest() : file_(folder_ / "x.beton") {
    write({});
    server_.emplace(file_);
  }
  void write(test::SyntheticBeton made) const {
    made.samples = 50;
    made.width = made.height = 40;
    test::write_made_beton(file_, made);
  }
  [[nodiscard]] BetonReader open(const std::string& url, double retry_s = 20) const {
    return BetonReader(url, BlobAccess::mapped,
                       {.remote = {.http = {.retry_s = retry_s}, .cache = folder_ / "cache"}});
  }
  static std::vector<unsigned long> pass(const BetonReader& reader) {
    LoaderOptions options;
    options.batch_size = 20;
    options.workers = 2;
    Loader loader(reader, standard_train_pipeline(), options);
    return test::hashes_of_pass(loader, {.epoch = 1, .image_size_px = 16});
  }

  test::TemporaryFolder folder_;
  std::filesystem::path file_;
  std::optional<test::RangeServer> server_;
};

TEST_F(RemoteCopiesTest, TheSignatureInTheUrlDoesNotBelongToTheFile) {
  for (const char* faults : {"{}", R"({"no_etag": true})"}) {
    server_->set_faults(faults);
    const auto expected = pass(BetonReader(file_));
    EXPECT_EQ(pass(open(server_->url())), expected) << faults;
    const std::uint64_t before = server_->bytes_sent();
    const std::vector<std::string> others = {
        server_->url() + "?X-Amz-Signature=1&x-amz-date=2&X-Goog-Expires=3",
        server_->url() + "?Expires=1&Signature=2&Key-Pair-Id=3&AWSAccessKeyId=4&Policy=5",
        server_->url() + "?sp=r&st=1&se=2&spr=https&sv=3&sr=b&SIG=4#part",
        "http://me:word@" + server_->url().substr(7)};
    for (const std::string& url : others) EXPECT_EQ(pass(open(url)), expected) << url;
    // Each time, opening transfers one byte, to check the version.
    EXPECT_EQ(server_->bytes_sent(), before + others.size()) << faults;
  }
}

TEST_F(RemoteCopiesTest, TheRestOfTheQueryBelongsToTheFile) {
  const std::uint64_t all = 50 * 40 * 40 * 3;
  (void)pass(open(server_->url() + "?file=1&sig=1"));
  std::uint64_t before = server_->bytes_sent();
  (void)pass(open(server_->url() + "?sig=2&file=2"));
  EXPECT_GT(server_->bytes_sent(), before + all);
  before = server_->bytes_sent();
  (void)pass(open(server_->url() + "?sig=3&file=1"));
  EXPECT_EQ(server_->bytes_sent(), before + 1);
  server_->kill();
  (void)pass(open(server_->url() + "?file=2", 0.2));
  EXPECT_THROW((void)open(server_->url() + "?file=3", 0.2), NoResponse);
  EXPECT_THROW((void)open(server_->url(), 0.2), NoResponse);
}

TEST_F(RemoteCopiesTest, ACompleteCopyNeedsNoServer) {
  const auto expected = pass(BetonReader(file_));
  EXPECT_EQ(pass(open(server_->url())), expected);
  server_->kill();
  EXPECT_EQ(pass(open(server_->url(), 0.2)), expected);
  EXPECT_EQ(pass(open(server_->url() + "?Signature=2", 0.2)), expected);
  EXPECT_THROW((void)open(server_->url("other.beton"), 0.2), NoResponse);
}

TEST_F(RemoteCopiesTest, OnlyAMissingPartNeedsTheServer) {
  EXPECT_FALSE(open(server_->url()).blob(7, 0).empty());
  server_->kill();
  // As long as the server has not responded, requests are repeated for `open_retry_s` instead of
  // `retry_s`.
  const BetonReader reader(
      server_->url(), BlobAccess::mapped,
      {.remote = {.http = {.retry_s = 600, .open_retry_s = 0.2}, .cache = folder_ / "cache"}});
  EXPECT_FALSE(reader.blob(7, 0).empty());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW((void)reader.blob(8, 0), NoResponse);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(RemoteCopiesTest, AServerThatRefusesIsAnErrorInSpiteOfTheCopy) {
  (void)pass(open(server_->url()));
  for (const char* faults : {R"({"status": 403})", R"({"status": 503})"}) {
    server_->set_faults(faults);
    EXPECT_THROW((void)open(server_->url(), 0.2), IoError) << faults;
  }
}

TEST_F(RemoteCopiesTest, WithoutAServerItIsUnknownWhichOfTwoVersionsIsMeant) {
  (void)pass(open(server_->url()));
  write({.sorted = true});
  (void)pass(open(server_->url()));
  server_->kill();
  EXPECT_THROW((void)open(server_->url(), 0.2), NoResponse);
}

TEST_F(RemoteCopiesTest, TooManyOpenFilesAreReportedAtOnce) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs a free descriptor for its checks";
#endif
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = ::dup(STDERR_FILENO);
  ASSERT_EQ(::close(lowest_free), 0);
  rlimit none_free = before;
  none_free.rlim_cur = static_cast<rlim_t>(lowest_free);
  HttpClient client(server_->url(), {.retry_s = 600, .open_retry_s = 600});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none_free), 0);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT([&] { (void)client.open(); },
              ::testing::ThrowsMessage<IoError>(Names("/data/", std::strerror(EMFILE))));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(RemoteStore, KnowsFileSystemsOfSeveralHosts) {
  EXPECT_TRUE(is_network_file_system(0x6969));       // NFS
  EXPECT_TRUE(is_network_file_system(0xff534d42));   // CIFS
  EXPECT_TRUE(is_network_file_system(0x00c36400));   // Ceph
  EXPECT_TRUE(is_network_file_system(0x01021997));   // 9p
  EXPECT_FALSE(is_network_file_system(0xef53));      // ext4
  EXPECT_FALSE(is_network_file_system(0x01021994));  // tmpfs
  EXPECT_FALSE(is_network_file_system(0x794c7630));  // overlayfs
}

}  // namespace
}  // namespace precast::data
