#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "data/loader/memory_plan.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/child.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr int kSidePx = 256;

/// The memory limit of the control group (PRECAST_LIMIT_MIB). The file is 10 times as large.
std::uint64_t limit_bytes() {
  const char* text = std::getenv("PRECAST_LIMIT_MIB");
  return static_cast<std::uint64_t>(text == nullptr ? 48 : std::atoi(text)) * kMebibyte;
}

/// A memory control group (version 1 or 2) inside the control group of this process. The destructor
/// removes it.
class MemoryGroup {
 public:
  explicit MemoryGroup(std::uint64_t limit) {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
      const std::size_t first = line.find(':');
      const std::size_t second = line.find(':', first + 1);
      const std::string controllers = line.substr(first + 1, second - first - 1);
      const std::string path = line.substr(second + 1);
      if (controllers == "memory")
        make("/sys/fs/cgroup/memory" + path, "memory.limit_in_bytes", limit);
      if (controllers.empty()) make("/sys/fs/cgroup" + path, "memory.max", limit);
    }
  }
  ~MemoryGroup() {
    if (usable()) fs::remove(folder_, failure_);
  }
  [[nodiscard]] bool usable() const { return !folder_.empty(); }
  [[nodiscard]] bool enter() const { return write("cgroup.procs", std::to_string(::getpid())); }

 private:
  void make(const fs::path& parent, const std::string& key, std::uint64_t limit) {
    if (usable() || !fs::is_directory(parent, failure_)) return;
    folder_ = parent / ("precast_test_" + std::to_string(::getpid()));
    if (fs::create_directory(folder_, failure_) && write(key, std::to_string(limit))) return;
    fs::remove(folder_, failure_);
    folder_.clear();
  }
  [[nodiscard]] bool write(const std::string& name, const std::string& value) const {
    std::ofstream out(folder_ / name);
    out << value << std::flush;
    return out.good();
  }

  std::error_code failure_;
  fs::path folder_;
};

/// The number after `key` in a file such as /proc/self/status; 0 if the file has no such key.
std::uint64_t number_of(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string word; in >> word;) {
    std::uint64_t value = 0;
    if (word == key && in >> value) return value;
  }
  return 0;
}

void drop_from_page_cache(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

struct Epoch {
  double images_per_second = 0;
  double read_bytes = 0;
  /// The anonymous memory that the epoch added to the process, as measured and as planned.
  double anonymous_bytes = 0;
  double planned_bytes = 0;
};

Epoch load_epoch(const fs::path& path, BlobAccess access, const std::string& order_name) {
  const std::uint64_t before = number_of("/proc/self/status", "RssAnon:") * 1024;
  const std::uint64_t read_before = number_of("/proc/self/io", "read_bytes:");
  const BetonReader reader(path, access);
  LoaderOptions options;
  options.batch_size = 64;
  options.workers = 2;
  options.cache_bytes = limit_bytes() / 2;
  options.order = make_order(
      reader, {.name = order_name, .window_pages = limit_bytes() / 4 / reader.header().page_bytes});
  Epoch epoch;
  epoch.planned_bytes =
      static_cast<double>(plan_memory(reader, standard_train_pipeline(), options, 64).own());
  Loader loader(reader, standard_train_pipeline(), options);
  const auto start = std::chrono::steady_clock::now();
  loader.begin_epoch({.image_size_px = 64});
  std::uint64_t peak = before;
  std::uint64_t images = 0;
  while (const auto batch = loader.next()) {
    images += batch->sample_ids.size();
    peak = std::max(peak, number_of("/proc/self/status", "RssAnon:") * 1024);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  epoch.images_per_second = static_cast<double>(images) / seconds.count();
  epoch.read_bytes = static_cast<double>(number_of("/proc/self/io", "read_bytes:") - read_before);
  epoch.anonymous_bytes = static_cast<double>(peak - before);
  return epoch;
}

/// Runs `body` in a child process that belongs to the group. @return its result, or nothing if the
/// process failed.
std::optional<Epoch> in_group(const MemoryGroup& group, const std::function<Epoch()>& body) {
  const auto epoch = test::shared_with_children<Epoch>();
  test::Child child([&] {
    try {
      if (!group.enter()) return 1;
      *epoch = body();
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
  });
  return child.wait() == 0 ? std::optional(*epoch) : std::nullopt;
}

void show(const char* what, const Epoch& epoch) {
  std::printf("%s: %.0f images/s, read %.2f x the memory limit, anonymous %.0f MiB (plan %.0f)\n",
              what, epoch.images_per_second, epoch.read_bytes / static_cast<double>(limit_bytes()),
              epoch.anonymous_bytes / static_cast<double>(kMebibyte),
              epoch.planned_bytes / static_cast<double>(kMebibyte));
}

TEST(LargerThanMemoryTest, TheProcessCacheKeepsItsBudgetAndEachAccessReadsTheFileAboutOnce) {
  const MemoryGroup group(limit_bytes());
  if (!group.usable()) GTEST_SKIP() << "no permission to create a memory control group";
  const test::TemporaryFolder folder;
  const fs::path path = folder / "large.beton";
  test::write_made_beton(path, {.samples = limit_bytes() * 10 / (kSidePx * kSidePx * 3),
                                .width = kSidePx,
                                .height = kSidePx});
  const auto run = [&](BlobAccess access, const std::string& order) {
    drop_from_page_cache(path);
    return in_group(group, [&] { return load_epoch(path, access, order); });
  };
  const auto cached = run(BlobAccess::on_disk, "quasi_random");
  const auto direct = run(BlobAccess::on_disk_direct, "quasi_random");
  const auto mapped = run(BlobAccess::mapped, "random");
  ASSERT_TRUE(cached && mapped);
  show("quasi_random, process cache", *cached);
  if (direct) show("quasi_random, process cache, O_DIRECT", *direct);
  show("random, mapped", *mapped);
  // 8 MiB for thread stacks and unused heap memory.
  EXPECT_LE(cached->anonymous_bytes, cached->planned_bytes + 8.0 * kMebibyte);
  EXPECT_LE(cached->read_bytes, 1.05 * static_cast<double>(fs::file_size(path)));
  // If each page fault also read the memory pages around it, as the disk's read-ahead setting
  // requests, the file would be read 38 times.
  EXPECT_LE(mapped->read_bytes, 1.5 * static_cast<double>(fs::file_size(path)));
}

}  // namespace
}  // namespace precast::data
