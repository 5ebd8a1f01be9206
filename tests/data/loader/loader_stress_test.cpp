#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "framework/core/error.h"
#include "framework/core/rng.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/support/temporary_folder.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PRECAST_COUNTS_ALLOCATIONS
// Declared as in sanitizer/allocator_interface.h, a header that not every compiler has.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace precast::data {
namespace {

/// The factor for the numbers of samples and cycles: 1, or N with PRECAST_LOADER_STRESS=N. The long
/// run (a million samples, 10,000 cycles) uses N = 50.
std::int64_t stress() {
  const char* text = std::getenv("PRECAST_LOADER_STRESS");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

std::size_t threads_of_process() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ++count;
  return count;
}

/// Bytes that are allocated now. Resident memory would also include free memory that the allocator
/// keeps, and the memory of sanitizers.
std::size_t allocated_bytes() {
#if defined(PRECAST_COUNTS_ALLOCATIONS)
  return __sanitizer_get_current_allocated_bytes();
#else
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

/// 4000 raw images of 16 px; in a second file, the image of sample 1234 is an invalid JPEG.
class LoaderStressTest : public ::testing::Test {
 protected:
  LoaderStressTest() {
    test::write_made_beton(folder_ / "good.beton", {.samples = kSamples, .checksums = false});
    std::vector<std::byte> bytes = test::read_bytes(folder_ / "good.beton");
    bytes[kHeaderBytes + 3 * kFieldBytes + kDamaged * 32] = std::byte{0};
    test::write_bytes(folder_ / "bad.beton", bytes);
  }
  static constexpr std::uint64_t kSamples = 4000;
  static constexpr std::uint64_t kDamaged = 1234;
  test::TemporaryFolder folder_;
};

TEST_F(LoaderStressTest, SurvivesStopsRestartsSlowConsumersAndDamagedSamples) {
  const BetonReader readers[] = {
      BetonReader(folder_ / "good.beton"), BetonReader(folder_ / "good.beton", BlobAccess::on_disk),
      BetonReader(folder_ / "bad.beton"), BetonReader(folder_ / "bad.beton", BlobAccess::on_disk)};
  const std::int64_t sample_count = 20'000 * stress();
  std::int64_t seen = 0;
  int errors = 0;
  for (std::uint64_t round = 0; seen < sample_count; ++round) {
    RandomStream random(1, 0, round, RandomUse::test);
    const BetonReader& reader = readers[random.below(4)];
    LoaderOptions options;
    options.batch_size = 1 + static_cast<std::int64_t>(random.below(100));
    options.workers = 1 + static_cast<int>(random.below(6));
    options.batches_ahead = 1 + static_cast<int>(random.below(4));
    options.drop_last = random.below(2) == 0;
    const std::string names[] = {"sequential", "random", "quasi_random"};
    options.order = make_order(reader, {.name = names[random.below(3)], .window_pages = 1});
    options.cache_bytes = std::uint64_t{2 + random.below(8)} << 20;
    Loader loader(reader, standard_train_pipeline(), options);
    for (std::uint64_t pass = 0; pass < 1 + random.below(3); ++pass) {
      loader.begin_epoch({.epoch = static_cast<std::int64_t>(pass),
                          .first_batch = static_cast<std::int64_t>(random.below(5)),
                          .image_size_px = 16});
      const std::uint64_t stop_after = random.below(3) == 0 ? random.below(30) : UINT64_MAX;
      const bool slow = random.below(4) == 0;
      try {
        for (std::uint64_t batch = 0; batch < stop_after; ++batch) {
          const auto next = loader.next();
          if (!next) break;
          seen += static_cast<std::int64_t>(next->sample_ids.size());
          for (std::size_t i = 0; i < next->sample_ids.size(); ++i) {
            ASSERT_EQ(next->fields[2].values<double>()[i],
                      static_cast<double>(next->sample_ids[i]));
          }
          if (slow) std::this_thread::sleep_for(std::chrono::microseconds(random.below(500)));
        }
      } catch (const DataError&) {
        ++errors;
      }
    }
  }
  EXPECT_TRUE(errors > 0 || stress() == 1) << "some passes must meet the damaged sample";
}

TEST_F(LoaderStressTest, CyclesLeaveNoThreadsAndNoMemoryBehind) {
  const BetonReader mapped(folder_ / "good.beton");
  const BetonReader on_disk(folder_ / "good.beton", BlobAccess::on_disk);
  const auto cycles = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t cycle = first; cycle < last; ++cycle) {
      LoaderOptions options;
      options.batch_size = 32;
      options.workers = 2;
      options.cache_bytes = std::uint64_t{4} << 20;
      Loader loader(cycle % 2 == 0 ? mapped : on_disk, standard_train_pipeline(), options);
      loader.begin_epoch({.epoch = cycle, .image_size_px = 16});
      for (std::int64_t batch = 0; batch < cycle % 4; ++batch) EXPECT_TRUE(loader.next());
    }
  };
  const std::int64_t count = 200 * stress();
  // After these cycles, all allocators have been set up, and the thread sanitizer has started its
  // own thread.
  cycles(0, count / 4);
  const std::size_t threads = threads_of_process();
  const std::size_t allocated = allocated_bytes();
  cycles(count / 4, count);
  // The kernel lists a thread for a short time after it was joined.
  for (int wait = 0; wait < 30'000 && threads_of_process() != threads; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(threads_of_process(), threads);
  EXPECT_LE(allocated_bytes(), allocated + (std::size_t{1} << 20))
      << "memory must not grow after the first quarter of the cycles";
}

}  // namespace
}  // namespace precast::data
