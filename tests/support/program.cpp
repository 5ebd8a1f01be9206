#include "tests/support/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace precast::test {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

Program::Program(const std::string& executable, std::vector<std::string> arguments,
                 std::vector<std::string> environment) {
  arguments.insert(arguments.begin(), executable);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, 1, (folder_ / "out").c_str(), flags, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, (folder_ / "err").c_str(), flags, 0644);
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  const int failed = ::posix_spawn(&id_, executable.c_str(), &actions, nullptr,
                                   pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot start " + executable);
}

int Program::wait() {
  int status = 0;
  ::waitpid(id_, &status, 0);
  out = text("out");
  err = text("err");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Program::text(const std::string& name) const {
  std::ifstream file(folder_ / name);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace precast::test
