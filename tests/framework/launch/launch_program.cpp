// launch_program PROCESSES GRACE_MS PROGRAM ARGUMENT...
//   calls launch(), and prints the arguments of on_failure
// launch_program watch
//   acts as a rank, and waits until its launcher ends
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "framework/launch/launcher.h"
#include "framework/launch/watch_launcher.h"

namespace {

int watch() {
  const bool watches = precast::watch_launcher();
  fmt::print(stderr, "watches {} as pid {}\n", watches, getpid());
  while (watches) pause();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "watch") return watch();
  if (argc < 4) return 2;
  precast::LaunchOptions options;
  options.processes = std::stoi(argv[1]);
  options.grace = std::chrono::milliseconds(std::stoi(argv[2]));
  options.command.assign(argv + 3, argv + argc);
  options.store_port = 29500;
  options.threads_per_process = 3;
  options.on_failure = [](int rank, const std::string& cause) {
    fmt::print(stderr, "told {}: {}\n", rank, cause);
    if (const char* mark = std::getenv("TOLD")) std::ofstream{mark};
  };
  return precast::launch(options);
}
