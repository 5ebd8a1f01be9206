#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/data/beton/golden_beton.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"
#include "tests/tools/small_network.h"

namespace precast::test {

/// A short training run on the CPU that tests start in several ways: 2 epochs on 24 images that
/// FFCV wrote. Each rank gets 4 images per step, so an epoch has 3 steps with two ranks and 6 steps
/// with one.
class TwoRanks {
 public:
  TwoRanks() { write_bytes(folder_ / "d.beton", golden_beton("img_prop_nette_w1")); }

  /// `precast train` with its arguments; keys in `more` override the keys set here.
  [[nodiscard]] std::vector<std::string> command(const std::string& run,
                                                 const std::vector<std::string>& more = {}) const {
    const std::string data = folder_ / "d.beton";
    std::vector<std::string> all = {test::bin_dir() + "/precast",
                                    "train",
                                    "--data.train_dataset=" + data,
                                    "--data.val_dataset=" + data,
                                    "--data.num_workers=1",
                                    "--training.device=cpu",
                                    "--training.batch_size=4",
                                    "--training.epochs=2",
                                    "--lr.lr=0.01",
                                    "--resolution.min_res=32",
                                    "--resolution.max_res=32",
                                    "--validation.resolution=32",
                                    "--logging.every=1",
                                    "--logging.folder=" + (folder_ / "runs").string(),
                                    "--logging.run_id=" + run};
    for (const std::string& option : small_network()) all.push_back(option);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// command(), preceded by `starter` (mpirun and its options, or nothing).
  [[nodiscard]] std::vector<std::string> started_by(
      std::vector<std::string> starter, const std::string& run,
      const std::vector<std::string>& more = {}) const {
    const std::vector<std::string> train = command(run, more);
    starter.insert(starter.end(), train.begin(), train.end());
    return starter;
  }
  [[nodiscard]] std::filesystem::path folder(const std::string& run) const {
    return folder_.path() / "runs" / run;
  }

  /// The rows of the log without times and rates.
  [[nodiscard]] std::vector<nlohmann::json> rows(const std::string& run) const {
    std::ifstream file(folder(run) / "log");
    std::vector<nlohmann::json> all;
    for (std::string line; std::getline(file, line);) {
      auto row = nlohmann::json::parse(line);
      for (const char* key :
           {"timestamp", "relative_time", "train_time", "val_time", "wait_time", "loader_time"})
        row.erase(key);
      all.push_back(row);
    }
    return all;
  }
  /// All bytes of a file of the run; empty if the file does not exist.
  [[nodiscard]] std::string bytes(const std::string& run, const std::string& name) const {
    return test::read_text(folder(run) / name);
  }
  [[nodiscard]] std::string weights(const std::string& run) const {
    return bytes(run, "final_weights.safetensors");
  }

  /// The environment of all runs. Their sums depend on the number of threads.
  static inline const std::vector<std::string> kEnvironment = {"OMP_NUM_THREADS=1"};

  /// The variables that torchrun sets, for a rank that is started by hand.
  static std::vector<std::string> rank_environment(int rank, int world, int port) {
    return {"OMP_NUM_THREADS=1",
            "RANK=" + std::to_string(rank),
            "LOCAL_RANK=" + std::to_string(rank),
            "WORLD_SIZE=" + std::to_string(world),
            "MASTER_ADDR=127.0.0.1",
            "MASTER_PORT=" + std::to_string(port)};
  }

  /// A port on which no process listens at the moment.
  static int free_port() {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    const bool found = ::bind(socket, any, size) == 0 && ::getsockname(socket, any, &size) == 0;
    ::close(socket);
    if (!found) throw std::runtime_error("no free port");
    return ntohs(address.sin_port);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace precast::test
