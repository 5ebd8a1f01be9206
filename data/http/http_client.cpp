#include "data/http/http_client.h"

#include <curl/curl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <random>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/parse_number.h"

namespace precast::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMinBackoffS = 0.1;
constexpr double kMaxBackoffS = 10;
/// The longest time until a wait notices HttpOptions::cancel.
constexpr std::chrono::milliseconds kCancelPoll{50};
constexpr long kMaxRedirects = 5;
/// Bodies of error pages up to this size are read, so that the connection can be used again.
constexpr std::size_t kMaxErrorBodyBytes = std::size_t{64} << 10;

bool is_transient(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SSL_CONNECT_ERROR:
      return true;
    default:
      return false;
  }
}

/// Throws if the request failed because no more files can be opened. libcurl reports this in the
/// same way as a server that does not respond, and waiting does not help.
/// @param url without credentials.
void check_descriptors(CURLcode code, const std::string& url) {
  if (code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST &&
      code != CURLE_COULDNT_RESOLVE_PROXY && code != CURLE_OUT_OF_MEMORY)
    return;
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe >= 0)
    ::close(probe);
  else if (errno == EMFILE || errno == ENFILE)
    throw IoError("cannot connect to", url, errno);
}

bool is_transient(long status) {
  return status == 408 || status == 429 || status >= 500;
}

/// Returns the value of a header line `Name: value`; nothing if the name is not `name`. Ignores
/// case. @param name in lower case
std::optional<std::string> value_of(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':') return std::nullopt;
  const auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); };
  if (!std::equal(name.begin(), name.end(), line.begin(), same)) return std::nullopt;
  line.remove_prefix(name.size() + 1);
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = line.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  return std::string(line.substr(first, line.find_last_not_of(kSpace) - first + 1));
}

/// Returns the length of the whole file from `bytes FIRST-LAST/LENGTH` or `bytes */LENGTH`.
std::optional<std::uint64_t> total_of(std::string_view content_range) {
  const std::size_t slash = content_range.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return parse_number<std::uint64_t>(content_range.substr(slash + 1));
}

/// Returns the path of the user's trusted certificates from the environment variables that the curl
/// command and Python read; libcurl itself reads neither. Null if none is set: libcurl then uses
/// the system's certificates.
const char* trusted_certificates() {
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* const path = std::getenv(name);
    if (path != nullptr && *path != '\0') return path;
  }
  return nullptr;
}

bool is_certificate_error(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
}

}  // namespace

NoResponse::~NoResponse() = default;

bool is_url(std::string_view name) {
  return name.starts_with("http://") || name.starts_with("https://");
}

std::string redacted_url(std::string_view url) {
  const std::size_t host = url.find("://") + 3;
  std::string redacted(url.substr(0, host));
  url.remove_prefix(host);
  const std::size_t at = url.substr(0, url.find_first_of("/?#")).rfind('@');
  if (at != std::string_view::npos) url.remove_prefix(at + 1);
  return redacted + std::string(url.substr(0, url.find_first_of("?#")));
}

/// Receives the response to one request.
struct HttpClient::Response {
  CURL* curl = nullptr;
  std::span<std::byte> to;
  std::size_t received = 0;
  std::size_t discarded = 0;
  long status = 0;
  std::string content_range;
  HttpVersion version;
  double retry_after = 0;
  const HttpClient* client = nullptr;

  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
    auto& response = *static_cast<Response*>(self);
    const std::string_view line(data, size * count);
    // If redirects cause several responses, the last one is used.
    if (line.starts_with("HTTP/")) {
      response.content_range.clear();
      response.version = {};
    }
    if (auto value = value_of(line, "content-range")) response.content_range = std::move(*value);
    if (auto value = value_of(line, "etag")) response.version.etag = std::move(*value);
    if (auto value = value_of(line, "last-modified"))
      response.version.last_modified = std::move(*value);
    return size * count;
  }
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) {
    auto& response = *static_cast<Response*>(self);
    const std::size_t bytes = size * count;
    curl_easy_getinfo(response.curl, CURLINFO_RESPONSE_CODE, &response.status);
    if (response.status != 206) {
      response.discarded += bytes;
      // A return value other than `bytes` ends the transfer: the server may be sending the whole
      // file.
      return response.status == 200 || response.discarded > kMaxErrorBodyBytes ? 0 : bytes;
    }
    if (bytes > response.to.size() - response.received) return 0;
    std::memcpy(response.to.data() + response.received, data, bytes);
    response.received += bytes;
    return bytes;
  }
  static int on_progress(void* self, curl_off_t /*all_down*/, curl_off_t /*down*/,
                         curl_off_t /*all_up*/, curl_off_t /*up*/) {
    return static_cast<Response*>(self)->client->interrupted() ? 1 : 0;
  }
};

/// An idle connection or, if there is none, a new one. The destructor makes it idle again.
class HttpClient::Connection {
 public:
  explicit Connection(HttpClient& client) : client_(client) {
    {
      const std::scoped_lock lock(client.mutex_);
      if (!client.idle_.empty()) {
        curl_ = client.idle_.back();
        client.idle_.pop_back();
      }
    }
    if (curl_ == nullptr) curl_ = make(client);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    const std::scoped_lock lock(client_.mutex_);
    client_.idle_.push_back(curl_);
  }
  [[nodiscard]] CURL* curl() const { return curl_; }

 private:
  static CURL* make(const HttpClient& client) {
    static const CURLcode kReady = curl_global_init(CURL_GLOBAL_DEFAULT);
    CURL* curl = kReady == CURLE_OK ? curl_easy_init() : nullptr;
    if (curl == nullptr) throw std::bad_alloc();
    curl_easy_setopt(curl, CURLOPT_URL, client.url_.c_str());
    // libcurl must not use signals in a program with several threads.
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    // A redirect must not replace https, which the user requested, with http.
    const char* const next = client.url_.starts_with("https://") ? "https" : "http,https";
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, next);
    if (const char* const path = trusted_certificates())
      curl_easy_setopt(curl, CURLOPT_CAINFO, path);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "precast");
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, nullptr);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(client.options_.connect_timeout_ms));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1024L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                     static_cast<long>(client.options_.stall_timeout_s));
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, static_cast<long>(client.options_.request_timeout_s));
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, Response::on_header);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, Response::on_body);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, Response::on_progress);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    return curl;
  }

  HttpClient& client_;
  void* curl_ = nullptr;
};

HttpClient::HttpClient(std::string url, const HttpOptions& options)
    : url_(std::move(url)), options_(options) {}

HttpClient::~HttpClient() {
  for (void* curl : idle_) curl_easy_cleanup(curl);
}

const HttpVersion& HttpClient::open() {
  std::byte first{};
  fill(0, {&first, 1}, first_retry_s());
  if (version_.etag.empty() && version_.last_modified.empty()) {
    throw IoError(fmt::format(
        "{}: expected an ETag or Last-Modified header, got neither. Without them, a replaced file "
        "of the same length would not be noticed. Use a server that sends one of them",
        range_text(0, 1)));
  }
  return version_;
}

void HttpClient::set_version(const HttpVersion& version) {
  version_ = version;
  opened_ = true;
}

void HttpClient::read(std::uint64_t offset, std::span<std::byte> to) {
  require(opened_ && offset <= version_.size && to.size() <= version_.size - offset,
          "the range is inside the file");
  fill(offset, to, responded_ ? options_.retry_s : first_retry_s());
}

void HttpClient::fill(std::uint64_t offset, std::span<std::byte> to, double retry_s) {
  std::size_t done = 0;
  int attempt = 0;
  Clock::time_point last_progress = Clock::now();
  while (done < to.size()) {
    Response response;
    const std::string failure = request(offset + done, to.subspan(done), response);
    done += response.received;
    if (response.received > 0) {
      attempt = 0;
      last_progress = Clock::now();
    }
    if (failure.empty()) continue;
    const double idle = std::chrono::duration<double>(Clock::now() - last_progress).count();
    if (idle + response.retry_after >= retry_s) {
      const std::string message = fmt::format(
          "{}: expected a response within {} s ({} requests), got: {}. Check the server "
          "and the network",
          range_text(offset + done, to.size() - done), retry_s, attempt + 1, failure);
      if (responded_) throw IoError(message);
      throw NoResponse(message);
    }
    if (response.retry_after > 0)
      wait(response.retry_after);
    else
      back_off(attempt);
    ++attempt;
  }
}

std::string HttpClient::request(std::uint64_t offset, std::span<std::byte> to, Response& response) {
  if (interrupted()) throw IoError(range_text(offset, to.size()) + ": interrupted");
  const Connection connection(*this);
  CURL* const curl = connection.curl();
  response.curl = curl;
  response.client = this;
  response.to = to;
  const std::string range = fmt::format("{}-{}", offset, offset + to.size() - 1);
  curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &response);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &response);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &response);
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &response.status);
  if (response.status > 0) responded_ = true;
  curl_off_t after = 0;
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &after);
  response.retry_after = static_cast<double>(after);
  bytes_received_ += response.received + response.discarded;
  if (interrupted()) throw IoError(range_text(offset, to.size()) + ": interrupted");
  check_descriptors(code, redacted_url(url_));
  // on_body() ends a transfer that does not return the range; the status explains why.
  const bool has_response = code == CURLE_OK || code == CURLE_WRITE_ERROR || is_transient(code);
  // The status is that of the redirect if its target did not respond.
  const bool redirected = is_transient(code) && response.status >= 300 && response.status < 400;
  if (has_response && response.status > 0 && !redirected) {
    std::string failure = check(response, offset, to.size());
    if (!failure.empty() || response.received == to.size()) return failure;
  }
  if (code == CURLE_OK || is_transient(code)) {
    return fmt::format("{} of {} bytes ({})", response.received, to.size(),
                       code == CURLE_OK ? "the body ended" : curl_easy_strerror(code));
  }
  throw IoError(fmt::format("{}: expected the bytes of a .beton file, got: {}{}",
                            range_text(offset, to.size()), curl_easy_strerror(code),
                            is_certificate_error(code)
                                ? ". Set SSL_CERT_FILE to a file with the certificate of the "
                                  "server's certificate authority"
                                : ""));
}

std::string HttpClient::check(const Response& response, std::uint64_t offset, std::uint64_t size) {
  if (is_transient(response.status)) return fmt::format("HTTP status {}", response.status);
  const std::string where = range_text(offset, size);
  const auto total = total_of(response.content_range);
  const auto changed = [&](std::string_view what, const auto& expected, const auto& got) {
    return IoError(fmt::format(
        "{}: expected {} '{}', got '{}': the file was replaced while it was read. Run the command "
        "again, and give each version of a dataset a different name",
        where, what, expected, got));
  };
  if (response.status == 416 && opened_)
    throw changed("length", version_.size, total ? std::to_string(*total) : "a shorter file");
  if (response.status == 200) {
    throw IoError(fmt::format(
        "{}: expected HTTP status 206 with this part of the file, got 200 with the whole file. The "
        "server, or a proxy, must support range requests",
        where));
  }
  if (response.status != 206)
    throw IoError(
        fmt::format("{}: expected HTTP status 206, got {}. Check the URL", where, response.status));
  const std::string expected = fmt::format("bytes {}-{}/", offset, offset + size - 1);
  if (!total || !response.content_range.starts_with(expected)) {
    throw IoError(fmt::format("{}: expected Content-Range '{}LENGTH', got '{}'", where, expected,
                              response.content_range));
  }
  if (!opened_) {
    version_ = response.version;
    version_.size = *total;
    opened_ = true;
    return {};
  }
  if (*total != version_.size) throw changed("length", version_.size, *total);
  if (response.version.etag != version_.etag)
    throw changed("ETag", version_.etag, response.version.etag);
  if (response.version.last_modified != version_.last_modified)
    throw changed("Last-Modified", version_.last_modified, response.version.last_modified);
  return {};
}

std::string HttpClient::range_text(std::uint64_t offset, std::uint64_t size) const {
  return fmt::format("{}: bytes {}-{}", redacted_url(url_), offset, offset + size - 1);
}

void HttpClient::back_off(int attempt) {
  thread_local std::minstd_rand random(std::random_device{}());
  const double max_delay_s =
      std::min(kMinBackoffS * static_cast<double>(1U << std::min(attempt, 7)), kMaxBackoffS);
  wait(max_delay_s * std::uniform_real_distribution(0.5, 1.0)(random));
}

void HttpClient::wait(double seconds) {
  using Seconds = std::chrono::duration<double>;
  std::unique_lock lock(mutex_);
  // Wait in short intervals, because a signal handler that sets HttpOptions::cancel cannot wake
  // this thread.
  for (Seconds left(seconds); left.count() > 0 && !interrupted(); left -= kCancelPoll)
    wake_.wait_for(lock, std::min<Seconds>(left, kCancelPoll));
}

void HttpClient::interrupt() {
  {
    const std::scoped_lock lock(mutex_);
    ++interrupted_;
  }
  wake_.notify_all();
}

}  // namespace precast::data
