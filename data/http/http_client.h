#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/cancel.h"
#include "framework/core/error.h"
#include "framework/core/export.h"

namespace precast::data {

struct HttpOptions {
  std::int64_t connect_timeout_ms = 10'000;
  /// A request fails if it receives less than 1 KiB/s for this long.
  std::int64_t stall_timeout_s = 30;
  std::int64_t request_timeout_s = 600;
  /// A read repeats failed requests, and fails if it receives no byte for this long.
  double retry_s = 300;
  /// Used instead of `retry_s`, if it is less, until the server has responded once: a wrong host or
  /// port is then reported soon.
  double open_retry_s = 15;
  /// If it becomes true, requests fail soon, as after HttpClient::interrupt(). A signal handler may
  /// set it. Null: requests are not cancelled.
  const std::atomic<bool>* cancel = nullptr;
};

/// Identifies one version of a file on a server.
struct HttpVersion {
  std::uint64_t size = 0;
  /// Empty if the server does not send the header. If both are empty, open() fails. @{
  std::string etag;
  std::string last_modified;
  /// @}
  bool operator==(const HttpVersion&) const = default;
};

/// Thrown if nothing at the URL has responded, not even with an error or a redirect.
class PRECAST_API NoResponse : public IoError {
 public:
  using IoError::IoError;
  ~NoResponse() override;
};

/// Whether a dataset's name is an `http://` or `https://` URL.
[[nodiscard]] PRECAST_API bool is_url(std::string_view name);
/// Returns the URL for messages: without user name, password and query, which may be secrets.
[[nodiscard]] PRECAST_API std::string redacted_url(std::string_view url);

/// Reads ranges of one file with HTTP range requests (RFC 9110, section 14), over connections that
/// are kept open. Repeats a request after status 408, 429 or 5xx, after a failed or interrupted
/// connection, and after a body that is too short. Before that, it waits, with exponential backoff
/// or for the time that Retry-After gives. A repeated request continues after the bytes that have
/// arrived. Thread-safe; threads that read at the same time use separate connections.
class PRECAST_API HttpClient {
 public:
  explicit HttpClient(std::string url, const HttpOptions& options = {});
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  /// Requests the first byte of the file, and returns the file's version, which the response's
  /// headers contain. Call before read(). @throws IoError naming the URL if the server does not
  /// return this byte or does not identify the version; NoResponse if nothing at the URL responds.
  const HttpVersion& open();
  /// Call instead of open() if the version is known. read() fails if the server has a different
  /// version.
  void set_version(const HttpVersion& version);
  [[nodiscard]] const HttpVersion& version() const { return version_; }
  /// Reads [offset, offset + to.size()), which is inside the file. @throws IoError naming the URL
  /// and byte range if there is no response in time, the response is not the range, the file has
  /// changed, or interrupted() is true.
  void read(std::uint64_t offset, std::span<std::byte> to);
  /// Waits before repetition number `attempt` (counted from 0). Returns early if interrupted().
  void back_off(int attempt);

  /// Makes reads fail from now on, until resume() has been called as often as interrupt(). @{
  void interrupt();
  void resume() { --interrupted_; }
  /// @}
  /// Whether reads fail because of interrupt() or HttpOptions::cancel.
  [[nodiscard]] bool interrupted() const { return interrupted_ > 0 || is_set(options_.cancel); }

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] const HttpOptions& options() const { return options_; }
  /// Bytes received in response bodies so far, including repeated requests.
  [[nodiscard]] std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  struct Response;
  class Connection;

  /// How long requests are repeated while the server has never responded.
  [[nodiscard]] double first_retry_s() const {
    return std::min(options_.open_retry_s, options_.retry_s);
  }
  /// Repeats requests until `to` is full. @throws IoError after `retry_s` without a received byte
  void fill(std::uint64_t offset, std::span<std::byte> to, double retry_s);
  /// Makes one request. @return an empty string, or the reason why the request should be repeated.
  /// @throws IoError if it should not be repeated
  [[nodiscard]] std::string request(std::uint64_t offset, std::span<std::byte> to,
                                    Response& response);
  [[nodiscard]] std::string check(const Response& response, std::uint64_t offset,
                                  std::uint64_t size);
  /// `URL: bytes A-B`.
  [[nodiscard]] std::string range_text(std::uint64_t offset, std::uint64_t size) const;
  void wait(double seconds);

  const std::string url_;
  const HttpOptions options_;
  HttpVersion version_;
  bool opened_ = false;
  /// Whether the server has ever responded.
  std::atomic<bool> responded_{false};
  std::atomic<std::uint64_t> bytes_received_{0};
  std::atomic<int> interrupted_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  /// Connections (CURL handles) that no thread uses.
  std::vector<void*> idle_;
};

}  // namespace precast::data
