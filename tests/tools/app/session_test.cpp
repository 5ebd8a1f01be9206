#include "tools/app/session.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/core/system.h"

namespace precast::tools {
namespace {

TEST(SessionTest, LoaderThreadsAreTheShareOfTheCoresWhateverTorchUses) {
  const int before = at::get_num_threads();
  // What OMP_NUM_THREADS=1 makes of it, which torchrun sets.
  at::set_num_threads(1);
  const int cores = usable_cores();
  TrainConfig config;
  config.training.device = "cpu";
  EXPECT_EQ(loader_threads(config), cores);
  config.local_world = 2;
  EXPECT_EQ(loader_threads(config), std::max(1, cores / 2));
  config.training.device = "cuda";
  EXPECT_EQ(loader_threads(config), std::max(1, cores / 2 - 2));
  config.data.num_workers = 3;
  EXPECT_EQ(loader_threads(config), 3);
  at::set_num_threads(before);
}

}  // namespace
}  // namespace precast::tools
