#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

namespace precast::test {

/// range_server.py: a server of one file on this host that misbehaves on demand.
class RangeServer {
 public:
  /// @param certificate a PEM file with a certificate for 127.0.0.1 and its key, for HTTPS; empty
  /// for HTTP.
  explicit RangeServer(const std::filesystem::path& file,
                       const std::filesystem::path& certificate = {});
  RangeServer(const RangeServer&) = delete;
  RangeServer& operator=(const RangeServer&) = delete;
  /// Kills the server.
  ~RangeServer();

  /// The file's URL, under the name `name`. To a client, each name is a different file.
  [[nodiscard]] std::string url(const std::string& name = "train.beton") const;
  /// Sets faults for the next requests, as range_server.py describes. `{}` removes them.
  void set_faults(const std::string& json);
  /// Waits until the fault `delay_s` delays a request. @return whether this happened within the 2
  /// minutes of Program::printed().
  [[nodiscard]] bool wait_until_delayed() const { return program_->printed(" waits"); }
  void kill();
  /// Starts the server again after kill(), on the same port.
  void restart();

  struct Request {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    int status = 0;
    /// Size of the body.
    std::uint64_t bytes = 0;
  };
  /// The requests since the server was last started.
  [[nodiscard]] std::vector<Request> requests() const;
  /// The total size of all bodies since the server was last started.
  [[nodiscard]] std::uint64_t bytes_sent() const;

 private:
  void start();

  const std::filesystem::path file_;
  const std::filesystem::path certificate_;
  TemporaryFolder folder_;
  std::string port_ = "0";
  std::unique_ptr<Program> program_;
};

}  // namespace precast::test
