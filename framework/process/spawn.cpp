#include "framework/process/spawn.h"

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "framework/core/error.h"

extern char** environ;

namespace precast {
namespace {

void set_own_group(posix_spawnattr_t& attributes) {
  // A program that leads its own group is a background job of the terminal. With `stty tostop`, its
  // first output would raise SIGTTOU, which stops it, unless the signal is blocked.
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  sigaddset(&mask, SIGTTOU);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
}

}  // namespace

Pipe::Pipe() {
  if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw IoError("cannot create", "a pipe", errno);
}

Pipe::~Pipe() {
  close(ends_[0]);
  close_writer();
}

void Pipe::close_writer() {
  if (ends_[1] >= 0) close(ends_[1]);
  ends_[1] = -1;
}

std::vector<std::string> current_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

std::vector<char*> null_terminated(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

int spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
          std::span<const InheritedFile> files, bool own_group, pid_t& child) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  for (const InheritedFile& file : files) {
    posix_spawn_file_actions_adddup2(&actions, file.parent_fd, file.child_fd);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (own_group) set_own_group(attributes);
  const int failure =
      posix_spawn(&child, arguments.at(0).c_str(), &actions, &attributes,
                  null_terminated(arguments).data(), null_terminated(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

}  // namespace precast
