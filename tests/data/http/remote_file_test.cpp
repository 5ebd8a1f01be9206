// Reads datasets from a server that works, fails or misbehaves (tests/support/range_server.py).
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "data/beton/reader.h"
#include "data/cache/fetch_ahead.h"
#include "data/loader/loader.h"
#include "data/loader/preload.h"
#include "framework/core/error.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/data/loader/batch_hash.h"
#include "tests/support/message_matchers.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/range_server.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using std::chrono::steady_clock;
using test::hashes_of_pass;
using test::Names;
using test::Program;
using test::RangeServer;

constexpr std::uint64_t kSamples = 1000;
constexpr std::uint64_t kImageBytes = 40 * 40 * 3;

/// Much shorter than the delays and time limits that these tests must not wait for (300 s and
/// more), and much longer than a busy machine needs.
constexpr std::chrono::seconds kTimeLimit{60};

class RemoteFileTest : public ::testing::Test {
 protected:
  RemoteFileTest() : file_(folder_ / "x.beton") {
    test::write_made_beton(file_, {.samples = kSamples, .width = 40, .height = 40});
    server_.emplace(file_);
  }
  [[nodiscard]] BetonOptions options(double retry_s = 20) const {
    return {.remote = {.http = {.stall_timeout_s = 2, .retry_s = retry_s, .open_retry_s = 5},
                       .cache = folder_ / "cache"}};
  }
  [[nodiscard]] BetonReader open(double retry_s = 20, const std::string& name = "a.beton") const {
    return BetonReader(server_->url(name), BlobAccess::mapped, options(retry_s));
  }
  static LoaderOptions loader_options(const BetonReader& reader,
                                      const std::string& order = "random",
                                      const std::string& subset = "") {
    LoaderOptions options;
    options.batch_size = 20;
    options.workers = 3;
    options.seed = 5;
    options.order = make_order(reader, {.name = order, .subset = subset, .window_pages = 2});
    return options;
  }
  static std::vector<unsigned long> pass(const BetonReader& reader,
                                         const std::string& order = "random",
                                         const std::string& subset = "", int world = 1) {
    Loader loader(reader, standard_train_pipeline(), loader_options(reader, order, subset));
    return hashes_of_pass(
        loader, {.epoch = 1, .image_size_px = 16, .rank = world > 1 ? 3 : 0, .world = world});
  }
  /// The size of everything outside the pages. A reader always fetches these bytes.
  [[nodiscard]] std::uint64_t index_bytes() const {
    const BetonReader local(file_);
    return local.file_bytes() - local.pages_end() + local.blob_offset(0, 0);
  }
  [[nodiscard]] static std::uint64_t at_most(std::uint64_t needed) { return needed * 105 / 100; }
  [[nodiscard]] std::vector<std::string> environment() const {
    return {"XDG_CACHE_HOME=" + (folder_ / "cache").string(), "no_proxy=127.0.0.1"};
  }
  /// Runs `precast verify --deep`, which reads every value, in a separate process.
  [[nodiscard]] std::unique_ptr<Program> verify(const std::string& failpoints = "") const {
    std::vector<std::string> all = environment();
    all.push_back("PRECAST_FAILPOINTS=" + failpoints);
    return std::make_unique<Program>(
        std::vector<std::string>{test::bin_dir() + "/precast", "verify", server_->url(), "--deep"},
        all);
  }

  test::TemporaryFolder folder_;
  std::filesystem::path file_;
  std::optional<RangeServer> server_;
};

TEST_F(RemoteFileTest, BatchesAreThoseOfTheLocalFileAndEveryByteIsFetchedOnce) {
  const BetonReader local(file_);
  for (const std::string order : {"sequential", "random", "quasi_random"}) {
    const std::uint64_t before = server_->bytes_sent();
    const BetonReader remote = open(20, order + ".beton");
    EXPECT_EQ(remote.fingerprint(), local.fingerprint());
    EXPECT_EQ(pass(remote, order), pass(local, order)) << order;
    const std::uint64_t sent = server_->bytes_sent() - before;
    EXPECT_LE(sent, at_most(index_bytes() + kSamples * kImageBytes)) << order;
    EXPECT_GE(sent, kSamples * kImageBytes);
    EXPECT_EQ(pass(remote, order), pass(local, order));
    EXPECT_EQ(pass(open(20, order + ".beton"), order), pass(local, order));
    // The second reader uses the same local copy: opening transfers only one byte, to check the
    // version.
    EXPECT_EQ(server_->bytes_sent() - before, sent + 1);
  }
}

TEST_F(RemoteFileTest, APartOfTheSamplesTransfersThatPart) {
  const BetonReader local(file_);
  for (const std::string order : {"sequential", "random", "quasi_random"}) {
    const std::uint64_t before = server_->bytes_sent();
    const BetonReader remote = open(20, order + "8.beton");
    EXPECT_EQ(pass(remote, order, "", 8), pass(local, order, "", 8));
    EXPECT_LE(server_->bytes_sent() - before, at_most(index_bytes() + kSamples / 8 * kImageBytes));
  }
  const std::uint64_t before = server_->bytes_sent();
  const BetonReader remote = open(20, "subset.beton");
  EXPECT_EQ(pass(remote, "random", "random:100"), pass(local, "random", "random:100"));
  EXPECT_LE(server_->bytes_sent() - before, at_most(index_bytes() + 100 * kImageBytes));
}

TEST_F(RemoteFileTest, AServerThatIsKilledAndRestartedDelaysThePass) {
  const BetonReader remote = open();
  const std::size_t opened = server_->requests().size();
  server_->set_faults(R"({"delay_s": 2})");
  Loader loader(remote, standard_train_pipeline(), loader_options(remote));
  loader.begin_epoch({.epoch = 1, .image_size_px = 16});
  ASSERT_TRUE(test::eventually([&] { return server_->requests().size() > opened; }));
  server_->kill();
  server_->set_faults("{}");
  std::jthread restart([&] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    server_->restart();
  });
  std::vector<unsigned long> all;
  while (const auto batch = loader.next()) all.push_back(test::hash(*batch));
  restart.join();
  EXPECT_GT(server_->bytes_sent(), 0U) << "the server must be killed before it has sent everything";
  EXPECT_EQ(all, pass(BetonReader(file_)));
}

TEST_F(RemoteFileTest, AServerThatIsKilledDuringPreloadIsAnErrorInTime) {
  test::write_made_beton(file_, {.samples = 4000, .width = 40, .height = 40});
  const BetonReader remote = open(3);
  const std::size_t opened = server_->requests().size();
  server_->set_faults(R"({"delay_s": 2})");
  std::jthread kill([&] {
    EXPECT_TRUE(test::eventually([&] { return server_->requests().size() > opened; }));
    server_->kill();
  });
  const auto start = steady_clock::now();
  EXPECT_THAT([&] { preload(remote); },
              ::testing::ThrowsMessage<IoError>(Names("/data/a.beton", "bytes ")));
  // The limit of 3 s applies once, not to each of the 70 remaining requests.
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(15));
}

TEST_F(RemoteFileTest, AServerThatDoesNotAnswerIsAnErrorInTime) {
  const BetonReader remote = open(5);
  const auto start = steady_clock::now();
  server_->set_faults(R"({"delay_s": 600})");
  EXPECT_THAT([&] { (void)remote.blob(7, 0); },
              ::testing::ThrowsMessage<IoError>(
                  Names("127.0.0.1", "/data/a.beton",
                        std::to_string(remote.blob_offset(7, 0)) + "-" +
                            std::to_string(remote.blob_offset(7, 0) + kImageBytes - 1))));
  EXPECT_LT(steady_clock::now() - start, kTimeLimit);
}

TEST_F(RemoteFileTest, ALoaderThatWaitsForAServerCanBeDestroyed) {
  const BetonReader long_retry = open(600);
  server_->set_faults(R"({"delay_s": 600})");
  std::optional<Loader> loader;
  loader.emplace(long_retry, standard_train_pipeline(), loader_options(long_retry));
  loader->begin_epoch({.epoch = 1, .image_size_px = 16});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto stop = steady_clock::now();
  loader.reset();
  EXPECT_LT(steady_clock::now() - stop, kTimeLimit);
}

TEST_F(RemoteFileTest, ALoaderThatWaitsForALockCanBeDestroyed) {
  const BetonReader remote = open();
  // Takes the lock that another fetching process would take. OFD locks of separately opened files
  // exclude each other even within one process.
  const int fd = ::open((remote.remotes().at(0)->folder() / "data").c_str(), O_RDWR | O_CLOEXEC);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  ASSERT_EQ(::fcntl(fd, F_OFD_SETLK, &whole), 0);
  std::optional<Loader> loader;
  loader.emplace(remote, standard_train_pipeline(), loader_options(remote));
  loader->begin_epoch({.epoch = 1, .image_size_px = 16});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto stop = steady_clock::now();
  loader.reset();
  EXPECT_LT(steady_clock::now() - stop, kTimeLimit);
  ::close(fd);
  EXPECT_EQ(pass(remote), pass(BetonReader(file_)));
}

TEST_F(RemoteFileTest, WrongBytesAreFetchedAgainAndThenAnError) {
  const BetonReader local(file_);
  const std::uint64_t at = local.blob_offset(7, 0) + 100;
  const std::string range = fmt::format("[{}, {}]", at, at);
  const BetonReader once = open(20, "once.beton");
  server_->set_faults(R"({"times": 1, "corrupt": )" + range + "}");
  EXPECT_EQ(pass(once), pass(local));

  const BetonReader always = open(20, "always.beton");
  server_->set_faults(R"({"corrupt": )" + range + "}");
  EXPECT_NO_THROW((void)always.blob(6, 0));
  EXPECT_THAT([&] { (void)always.blob(7, 0); },
              ::testing::ThrowsMessage<DataError>(
                  Names("/data/always.beton", std::to_string(local.blob_offset(7, 0)) + "-")));
  LoaderOptions replacing = loader_options(always);
  replacing.on_corrupt = OnCorrupt::replace;
  Loader loader(always, standard_train_pipeline(), replacing);
  EXPECT_EQ(hashes_of_pass(loader, {.epoch = 1, .image_size_px = 16}).size(), 50U);
  ASSERT_EQ(loader.statistics().replaced.size(), 1U);
  EXPECT_EQ(loader.statistics().replaced[0].sample, 7U);

  // preload() does not fail for the damaged sample; the pass replaces it.
  const BetonReader preloaded = open(20, "preloaded.beton");
  preload(preloaded);
  Loader later(preloaded, standard_train_pipeline(), replacing);
  EXPECT_EQ(hashes_of_pass(later, {.epoch = 1, .image_size_px = 16}).size(), 50U);
  EXPECT_EQ(later.statistics().replaced.size(), 1U);
}

TEST_F(RemoteFileTest, AFailureOfAnyKindIsHandedToTheCaller) {
  RemoteFile file(server_->url(), options().remote);
  file.set_values(2);
  const RemoteValue huge = {.index = 0, .begin = 0, .end = ~std::uint64_t{0}};
  const std::exception_ptr failure = file.fetch({&huge, 1});
  ASSERT_TRUE(failure);
  EXPECT_THROW(std::rethrow_exception(failure), std::length_error);
  EXPECT_THROW(file.ensure(huge), std::length_error);
  const RemoteValue value = {.index = 1, .begin = 0, .end = 8};
  EXPECT_FALSE(file.fetch({&value, 1}));
  EXPECT_NO_THROW(file.ensure(value));
}

TEST_F(RemoteFileTest, ThreadsKeepAllRangesTheyFetch) {
  constexpr std::uint64_t kThreads = 8;
  constexpr std::uint64_t kEach = 12;
  for (int round = 0; round < 5; ++round) {
    const std::string url = server_->url(fmt::format("{}.beton", round));
    const auto ensure = [](RemoteFile& file, std::uint64_t thread) {
      for (std::uint64_t i = 0; i < kEach; ++i)
        file.ensure(100 * (i * kThreads + thread), 100 * (i * kThreads + thread) + 100);
    };
    {
      RemoteFile file(url, options().remote);
      std::vector<std::jthread> threads;
      for (std::uint64_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] { ensure(file, t); });
    }
    RemoteFile again(url, options().remote);
    for (std::uint64_t t = 0; t < kThreads; ++t) ensure(again, t);
    EXPECT_EQ(again.bytes_received(), 1U) << "only the check of the version transfers a byte";
  }
}

TEST_F(RemoteFileTest, WrongMetadataIsFetchedAgainAndThenAnError) {
  server_->set_faults(R"({"times": 1, "corrupt": [20000, 20000]})");
  EXPECT_EQ(open(20, "once.beton").size(), kSamples);
  server_->set_faults(R"({"corrupt": [20000, 20000]})");
  EXPECT_THAT([&] { (void)open(20, "always.beton"); },
              ::testing::ThrowsMessage<DataError>(Names("/data/always.beton")));
  server_->set_faults("{}");
  EXPECT_EQ(open(20, "always.beton").size(), kSamples)
      << "damaged bytes must not stay in the local copy";
}

TEST_F(RemoteFileTest, ServerErrorsAreRepeatedForALimitedTime) {
  const BetonReader local(file_);
  const BetonReader remote = open(20, "busy.beton");
  server_->set_faults(R"({"status": 503, "times": 20})");
  EXPECT_EQ(pass(remote), pass(local));
  const auto start = steady_clock::now();
  const BetonReader limited = open(20, "limited.beton");
  server_->set_faults(R"({"status": 429, "retry_after": 1, "times": 1})");
  EXPECT_FALSE(limited.blob(0, 0).empty());
  EXPECT_GE(steady_clock::now() - start, std::chrono::milliseconds(900));

  const BetonReader down = open(0.5, "down.beton");
  server_->set_faults(R"({"status": 500})");
  EXPECT_THAT([&] { pass(down); },
              ::testing::ThrowsMessage<IoError>(Names("/data/down.beton", "bytes ", "500")));
  server_->set_faults(R"({"status": 404})");
  EXPECT_THAT([&] { (void)open(20, "none.beton"); },
              ::testing::ThrowsMessage<IoError>(Names("/data/none.beton", "404")));
}

TEST_F(RemoteFileTest, ARedirectToAServerThatIsDownIsFollowedAgain) {
  RangeServer target(file_);
  server_->set_faults(R"({"redirect_to": ")" + target.url() + R"("})");
  target.kill();
  EXPECT_THAT([&] { (void)open(0.5, "down.beton"); },
              ::testing::ThrowsMessage<IoError>(::testing::AllOf(
                  Names("/data/down.beton", "bytes 0-0", "0.5 s"), ::testing::Not(Names(302)))));

  const std::size_t before = server_->requests().size();
  std::jthread restart([&] {
    // The second request shows that the first one failed.
    EXPECT_TRUE(test::eventually([&] { return server_->requests().size() >= before + 2; }));
    target.restart();
  });
  BetonOptions long_retry = options(/*retry_s=*/60);
  long_retry.remote.http.open_retry_s = 60;
  const BetonReader remote(server_->url("late.beton"), BlobAccess::mapped, long_retry);
  EXPECT_EQ(remote.fingerprint(), BetonReader(file_).fingerprint());
}

TEST_F(RemoteFileTest, ShortBodiesAreContinued) {
  const BetonReader remote = open();
  server_->set_faults(R"({"truncate": 50000})");
  EXPECT_EQ(pass(remote), pass(BetonReader(file_)));
}

TEST_F(RemoteFileTest, AnswersOtherThanTheRangeAreErrors) {
  const auto fails = [&](const std::string& faults, const std::string& got) {
    server_->set_faults(faults);
    EXPECT_THAT([&] { (void)open(20, "never.beton"); },
                ::testing::ThrowsMessage<IoError>(Names("/data/never.beton", "bytes 0-0", got)));
    server_->set_faults("{}");
    const BetonReader remote = open(20, "later.beton");
    server_->set_faults(faults);
    const std::uint64_t begin = remote.blob_offset(3, 0);
    EXPECT_THAT(
        [&] { (void)remote.blob(3, 0); },
        ::testing::ThrowsMessage<IoError>(Names(
            "/data/later.beton", fmt::format("bytes {}-{}", begin, begin + kImageBytes - 1), got)));
    server_->set_faults("{}");
  };
  fails(R"({"no_range": true})", "200");
  fails(R"({"shift": 1})", "Content-Range");
  fails(R"({"redirects": true})", "redirects");
}

TEST_F(RemoteFileTest, AFileThatIsReplacedDuringThePassIsAnError) {
  auto written = std::filesystem::last_write_time(file_);
  const auto write = [&](const test::SyntheticBeton& made) {
    test::write_made_beton(file_, made);
    std::filesystem::last_write_time(file_, written += std::chrono::hours(1));
  };
  for (const std::string check : {"ETag", "Last-Modified"}) {
    server_->set_faults(check == "ETag" ? "{}" : R"({"no_etag": true})");
    for (const std::uint64_t more : {1, 0}) {
      write({.samples = kSamples, .width = 40, .height = 40});
      const BetonReader remote = open();
      EXPECT_FALSE(remote.blob(0, 0).empty());
      write({.samples = kSamples + more, .width = 40, .height = 40, .sorted = true});
      LoaderOptions options = loader_options(remote);
      options.on_corrupt = OnCorrupt::replace;  // applies only to damaged samples
      Loader loader(remote, standard_train_pipeline(), options);
      EXPECT_THAT(
          [&] { hashes_of_pass(loader, {.epoch = 1, .image_size_px = 16}); },
          ::testing::ThrowsMessage<IoError>(Names(
              "/data/a.beton", "bytes ", more == 0 ? check : std::to_string(remote.file_bytes()))));
      // The new version has a separate local copy.
      EXPECT_EQ(pass(open()), pass(BetonReader(file_)));
    }
  }
}

TEST_F(RemoteFileTest, AServerThatDoesNotIdentifyVersionsIsAnError) {
  server_->set_faults(R"({"no_checks": true})");
  EXPECT_THAT([&] { (void)open(); },
              ::testing::ThrowsMessage<IoError>(Names("/data/a.beton", "ETag", "Last-Modified")));
}

TEST_F(RemoteFileTest, ACopyWithDamagedBytesIsFetchedAgain) {
  for (const bool checksums : {true, false}) {
    test::write_made_beton(file_,
                           {.samples = 100, .width = 40, .height = 40, .checksums = checksums});
    const BetonReader local(file_);
    const std::string name = checksums ? "sums.beton" : "none.beton";
    EXPECT_EQ(pass(open(20, name)), pass(local));
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) {
      if (!entry.path().filename().string().starts_with(name)) continue;
      std::fstream copy(entry.path() / "data", std::ios::in | std::ios::out);
      copy.seekp(static_cast<std::streamoff>(local.blob_offset(42, 0) + 10));
      copy.write("torn page", 9);
      copy.seekp(1);
      copy.write("head", 4);
    }
    const std::uint64_t before = server_->bytes_sent();
    EXPECT_EQ(pass(open(20, name)), pass(local));
    EXPECT_GT(server_->bytes_sent() - before, kImageBytes);
    EXPECT_LT(server_->bytes_sent() - before, 2 * kImageBytes);
  }
}

TEST_F(RemoteFileTest, TwoProcessesFetchEachByteOnce) {
  server_->set_faults(R"({"delay_s": 0.002})");
  const auto first = verify();
  const auto second = verify();
  EXPECT_EQ(first->wait(), 0) << first->err;
  EXPECT_EQ(second->wait(), 0) << second->err;
  EXPECT_LE(server_->bytes_sent(), at_most(index_bytes() + kSamples * kImageBytes));
}

TEST_F(RemoteFileTest, AKilledReaderLeavesAUsableCopy) {
  // Kills the reader after it has written the bytes of a value, and before it writes their hash.
  for (const char* failpoints : {"remote.before_state=kill@100", "remote.before_state=kill@50"})
    EXPECT_EQ(verify(failpoints)->wait(), 128 + SIGKILL);
  EXPECT_LT(server_->requests().size(), kSamples / 2);
  const auto last = verify();
  EXPECT_EQ(last->wait(), 0) << last->err;
  EXPECT_LE(server_->bytes_sent(), at_most(index_bytes() + kSamples * kImageBytes));
}

TEST_F(RemoteFileTest, PreloadFetchesTheWholeFile) {
  const BetonReader remote = open();
  preload(remote);
  server_->kill();
  EXPECT_EQ(pass(remote), pass(BetonReader(file_)));
}

TEST_F(RemoteFileTest, APreloadThatIsCancelledEndsBeforeTheRestIsFetched) {
  const BetonReader remote = open(600);
  server_->set_faults(R"({"delay_s": 600})");
  std::atomic<bool> cancel = false;
  std::thread canceller([&] {
    EXPECT_TRUE(server_->wait_until_delayed());
    cancel = true;
  });
  const auto start = steady_clock::now();
  preload(remote, &cancel);
  EXPECT_LT(steady_clock::now() - start, kTimeLimit);
  canceller.join();
  server_->set_faults("{}");
  EXPECT_EQ(pass(remote), pass(BetonReader(file_))) << "the remaining samples can still be fetched";
}

TEST_F(RemoteFileTest, ARequestThatIsCancelledIsNotRepeated) {
  std::atomic<bool> cancel = false;
  RemoteOptions long_retry = options(/*retry_s=*/600).remote;
  long_retry.http.cancel = &cancel;
  RemoteFile file(server_->url(), long_retry);
  const std::size_t opened = server_->requests().size();
  server_->set_faults(R"({"status": 503, "retry_after": 300})");
  std::jthread canceller([&] {
    EXPECT_TRUE(test::eventually([&] { return server_->requests().size() > opened; }));
    cancel = true;
  });
  const auto start = steady_clock::now();
  EXPECT_THROW(file.ensure(0, kImageBytes), IoError);
  EXPECT_LT(steady_clock::now() - start, kTimeLimit);
  EXPECT_EQ(server_->requests().size(), opened + 1);
}

TEST_F(RemoteFileTest, ASignalEndsCommandsThatWaitForAServer) {
  const BetonReader local(file_);
  const std::string values =
      fmt::format("[{}, {}]", local.blob_offset(0, 0), local.pages_end() - 1);
  const std::filesystem::path outputs = folder_ / "outputs";
  std::filesystem::create_directory(outputs);
  /// @param delayed the range of bytes that the server delays by 600 s
  const auto run = [&](const std::string& command, const std::string& delayed,
                       const std::string& argument) {
    server_.emplace(file_);
    server_->set_faults(R"({"delay_s": 600, "delay_bytes": )" + delayed + "}");
    Program program({test::bin_dir() + "/precast", command, server_->url(), argument},
                    environment());
    EXPECT_TRUE(server_->wait_until_delayed()) << command;
    ::kill(program.id(), SIGTERM);
    const auto start = steady_clock::now();
    EXPECT_EQ(program.wait(), 128 + SIGTERM) << command << program.err;
    EXPECT_LT(steady_clock::now() - start, kTimeLimit) << command;
    EXPECT_TRUE(std::filesystem::is_empty(outputs)) << command;
  };
  run("select", values, outputs / "out.beton");
  run("write", values, outputs / "out.beton");
  run("verify", values, "--deep");
  run("verify", "[0, 0]", "--deep");
}

TEST_F(RemoteFileTest, RequestsAreForAtMostTheLimitAndNotForEachSample) {
  const BetonReader remote = open();
  const std::size_t opened = server_->requests().size();
  fetch_all(remote);
  const auto all = server_->requests();
  const auto requests = std::span(all).subspan(opened);
  const std::uint64_t images = kSamples * kImageBytes;
  EXPECT_LE(requests.size(), 1 + 2 * images / FetchAhead::kRequestBytes);
  for (const auto& request : requests) EXPECT_LE(request.bytes, FetchAhead::kRequestBytes);
}

TEST_F(RemoteFileTest, WhatCannotBeReadOrKeptIsAnError) {
  EXPECT_THROW(BetonReader(server_->url(), BlobAccess::on_disk, options()), ConfigError);
  BetonOptions unwritable = options();
  unwritable.remote.cache = "/proc/precast";
  EXPECT_THAT([&] { BetonReader(server_->url(), BlobAccess::mapped, unwritable); },
              ::testing::ThrowsMessage<IoError>(Names("/proc/precast")));
  server_->kill();
  EXPECT_THAT([&] { (void)open(0.5); }, ::testing::ThrowsMessage<IoError>(Names("/data/a.beton")));
  EXPECT_THROW(BetonReader("http://"), IoError);
}

TEST_F(RemoteFileTest, TheNameOfSeveralFilesShowsNoSecrets) {
  const std::string url = server_->url("b.beton");
  const BetonReader reader(
      std::vector<std::filesystem::path>{server_->url("a.beton?key=1"),
                                         "http://me:word@" + url.substr(7) + "?key=2"},
      BlobAccess::mapped, options());
  EXPECT_EQ(reader.path(), server_->url("a.beton") + ", " + url);
}

TEST(Url, MessagesShowNoSecrets) {
  EXPECT_TRUE(is_url("https://host/x.beton"));
  EXPECT_FALSE(is_url("data/https:/x.beton"));
  EXPECT_EQ(redacted_url("https://host:81/a/x.beton"), "https://host:81/a/x.beton");
  EXPECT_EQ(redacted_url("https://me:word@host/a@b/x.beton?key=1#f"), "https://host/a@b/x.beton");
  EXPECT_EQ(redacted_url("http://"), "http://");
}

}  // namespace
}  // namespace precast::data
