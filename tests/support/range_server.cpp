#include "tests/support/range_server.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/support/paths.h"

namespace precast::test {

RangeServer::RangeServer(const std::filesystem::path& file,
                         const std::filesystem::path& certificate)
    : file_(file), certificate_(certificate) {
  // A proxy could not reach a server on this host.
  ::setenv("no_proxy", "127.0.0.1", 1);
  start();
}

RangeServer::~RangeServer() {
  if (program_) kill();
}

void RangeServer::start() {
  std::vector<std::string> arguments = {"/usr/bin/python3",
                                        test::source_dir() + "/tests/support/range_server.py",
                                        file_.string(), (folder_ / "control").string(), port_};
  if (!certificate_.empty()) arguments.push_back(certificate_.string());
  program_ = std::make_unique<Program>(std::move(arguments));
  // Waits for the last word of the line, so that the number before it is complete.
  if (!program_->printed(" open")) throw std::runtime_error("range_server.py did not start");
  std::istringstream line(program_->written());
  std::string word;
  line >> word >> port_;
}

std::string RangeServer::url(const std::string& name) const {
  return (certificate_.empty() ? "http" : "https") + ("://127.0.0.1:" + port_ + "/data/" + name);
}

void RangeServer::set_faults(const std::string& json) {
  // Renames a complete file, so that the server never reads a part of it.
  std::ofstream(folder_ / "new") << json;
  std::filesystem::rename(folder_ / "new", folder_ / "control");
}

void RangeServer::kill() {
  ::kill(program_->id(), SIGKILL);
  program_->wait();
  program_.reset();
}

void RangeServer::restart() {
  start();
}

std::vector<RangeServer::Request> RangeServer::requests() const {
  std::vector<Request> all;
  std::istringstream lines(program_->written());
  for (std::string line; std::getline(lines, line);) {
    Request request;
    if (std::sscanf(line.c_str(), "bytes=%lu-%lu %d %lu end", &request.first, &request.last,
                    &request.status, &request.bytes) == 4)
      all.push_back(request);
  }
  return all;
}

std::uint64_t RangeServer::bytes_sent() const {
  std::uint64_t bytes = 0;
  for (const Request& request : requests()) bytes += request.bytes;
  return bytes;
}

}  // namespace precast::test
