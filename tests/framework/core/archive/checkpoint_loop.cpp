// A program that saves checkpoints until it has finished or a test kills it:
// checkpoint_loop PARENT SAVES FILE_BYTES [no_exchange]
//   PARENT       the folder of the checkpoints; the program continues from the newest one
//   SAVES        number of checkpoints to save; 0: until the program is killed
//   FILE_BYTES   size of the content of each of the two files in a checkpoint
//   no_exchange  behave as on a file system that cannot exchange two files, such as NFS
// Keeps the checkpoints of the last two steps. Prints the number of each save when its checkpoint
// is complete on disk.
#include "tests/framework/core/archive/checkpoint_loop.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/archive/safetensors.h"
#include "framework/core/error.h"
#include "tests/support/forwarding_file_ops.h"

namespace precast {
namespace {

/// A file system that cannot exchange files, such as NFS.
class NoExchange final : public test::ForwardingFileOps {
 public:
  int exchange(const char* /*a*/, const char* /*b*/) override {
    errno = EINVAL;
    return -1;
  }
};

void save(const std::filesystem::path& parent, std::int64_t n, std::size_t file_bytes,
          FileOps& ops) {
  CheckpointWriter writer(parent, test::step_of_save(n), 2 * file_bytes, ops);
  writer.add("state", test::content_of_save(n, 0, file_bytes));
  const auto weights = test::content_of_save(n, 1, file_bytes);
  const TensorRecord record = {
      "weight", DType::u8, {static_cast<std::int64_t>(file_bytes)}, weights};
  write_safetensors(writer.path("model.safetensors"), std::span(&record, 1), {}, ops);
  writer.add_written("model.safetensors");
  writer.commit(static_cast<double>(n));
}

int run(const std::filesystem::path& parent, std::int64_t saves, std::size_t file_bytes,
        FileOps& ops) {
  remove_stale_checkpoints(parent, CheckpointWriters::any, ops);
  const auto newest = latest_valid_checkpoint(parent);
  std::int64_t n = newest ? static_cast<std::int64_t>(*newest->metric) + 1 : 0;
  for (const std::int64_t end = n + saves; saves == 0 || n < end; ++n) {
    save(parent, n, file_bytes, ops);
    fmt::print("{}\n", n);
    std::fflush(stdout);
    prune_checkpoints(parent, {.last = 2}, ops);
  }
  return 0;
}

}  // namespace
}  // namespace precast

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  precast::NoExchange no_exchange;
  precast::FileOps& ops = argc > 4 ? no_exchange : precast::posix_file_ops();
  try {
    return precast::run(argv[1], std::atoll(argv[2]), std::strtoull(argv[3], nullptr, 10), ops);
  } catch (const precast::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
