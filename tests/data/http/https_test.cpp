// Reads datasets from a TLS server (tests/support/range_server.py). The test creates the
// server's certificate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"
#include "tests/support/range_server.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using test::Program;

class HttpsTest : public ::testing::Test {
 protected:
  HttpsTest() {
    for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) ::unsetenv(name);
    test::write_made_beton(file_, {.samples = 50, .width = 40, .height = 40});
    make_certificate();
    server_.emplace(file_, folder_ / "server.pem");
  }
  ~HttpsTest() override {
    for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) ::unsetenv(name);
  }
  [[nodiscard]] BetonReader open() const {
    return BetonReader(
        server_->url("a.beton"), BlobAccess::mapped,
        {.remote = {.http = {.retry_s = 300, .open_retry_s = 300}, .cache = folder_ / "cache"}});
  }

  test::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "x.beton";
  const std::filesystem::path certificate_ = folder_ / "certificate.pem";
  std::optional<test::RangeServer> server_;

 private:
  /// Makes a self-signed certificate, which the system does not trust.
  void make_certificate() const {
    const std::filesystem::path key = folder_ / "key.pem";
    Program openssl({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                     "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                     key.string(), "-out", certificate_.string()});
    ASSERT_EQ(openssl.wait(), 0) << openssl.err;
    std::ofstream both(folder_ / "server.pem");
    both << std::ifstream(key).rdbuf() << std::ifstream(certificate_).rdbuf();
  }
};

TEST_F(HttpsTest, ATrustedServerDeliversTheFile) {
  const BetonReader local(file_);
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"}) {
    ::setenv(name, certificate_.c_str(), 1);
    const BetonReader remote = open();
    ::unsetenv(name);
    for (std::uint64_t i = 0; i < local.size(); ++i)
      ASSERT_TRUE(std::ranges::equal(remote.blob(i, 0), local.blob(i, 0))) << name << i;
    std::filesystem::remove_all(folder_ / "cache");
  }
}

TEST_F(HttpsTest, AnUntrustedServerIsAnErrorAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT([&] { (void)open(); },
              ::testing::ThrowsMessage<IoError>(Names("127.0.0.1", "SSL_CERT_FILE")));
  // The request is not repeated. Repetitions would take `open_retry_s`.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(120));
  EXPECT_EQ(server_->bytes_sent(), 0U);
}

TEST_F(HttpsTest, AMissingFileOfCertificatesIsAnError) {
  ::setenv("SSL_CERT_FILE", (folder_ / "absent.pem").c_str(), 1);
  EXPECT_THAT([&] { (void)open(); }, ::testing::ThrowsMessage<IoError>(Names("SSL_CERT_FILE")));
}

}  // namespace
}  // namespace precast::data
