#include "framework/core/file_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

using test::Names;

TEST(FileLockTest, ExcludesOthersUntilItIsReleased) {
  test::TemporaryFolder folder;
  {
    const auto first = FileLock::try_lock(folder / "lock");
    ASSERT_TRUE(first.has_value());
    EXPECT_FALSE(FileLock::try_lock(folder / "lock").has_value());
    EXPECT_FALSE(FileLock::try_lock(folder / "lock", FileLock::Kind::shared).has_value());
  }
  const auto one = FileLock::try_lock(folder / "lock", FileLock::Kind::shared);
  EXPECT_TRUE(one->is_supported());
  EXPECT_TRUE(FileLock::try_lock(folder / "lock", FileLock::Kind::shared).has_value());
}

TEST(FileLockTest, WithoutLocksOfTheFileSystemItSaysThatItDoesNotWork) {
  test::TemporaryFolder folder;
  for (auto* none :
       {+[](int, int) { return errno = ENOLCK, -1; }, +[](int, int) { return errno = ENOSYS, -1; },
        +[](int, int) { return errno = EOPNOTSUPP, -1; }}) {
    const auto lock = FileLock::try_lock(folder / "lock", FileLock::Kind::exclusive, none);
    ASSERT_TRUE(lock.has_value());
    EXPECT_FALSE(lock->is_supported());
  }
  EXPECT_THROW((void)FileLock::try_lock(folder / "lock", FileLock::Kind::exclusive,
                                        [](int, int) { return errno = EBADF, -1; }),
               IoError);
}

TEST(FileLockTest, NamesTheProcessThatHoldsIt) {
  test::TemporaryFolder folder;
  std::ofstream(folder / "lock") << "123456789012 a-host-with-a-long-name.example.org\n";
  const auto first = FileLock::acquire(folder / "lock");
  ASSERT_TRUE(first.has_value());
  char host[256] = "";
  ASSERT_EQ(::gethostname(host, sizeof(host) - 1), 0);
  EXPECT_THAT(lock_holder(folder / "lock"), Names(::getpid(), std::string(host)));
  EXPECT_FALSE(FileLock::acquire(folder / "lock").has_value());
  EXPECT_THAT(lock_holder(folder / "lock"), Names(::getpid()))
      << "a failed attempt changes nothing";
}

TEST(FileLockTest, AHolderThatIsNotKnownIsNotMadeUp) {
  test::TemporaryFolder folder;
  std::ofstream(folder / "lock") << "nonsense\n";
  EXPECT_EQ(lock_holder(folder / "lock"), lock_holder(folder / "missing"));
}

}  // namespace
}  // namespace precast
