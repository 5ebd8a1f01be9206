#include "data/sources/register.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/opened.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;
using test::opener;
using testing::ThrowsMessage;

TEST(OpenSource, ListsItsKindsForWhatItDoesNotKnow) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "a.odd", std::vector<std::byte>(3073));
  EXPECT_THAT(opener(folder / "a.odd"),
              ThrowsMessage<DataError>(Names(folder / "a.odd", "cifar", "folder", "idx", "tar")));
  EXPECT_THAT(opener(folder / "a.odd", "tra"),
              ThrowsMessage<ConfigError>(Names("kind", "'tra'", "'tar'")));
  // An explicit kind is used even if the file's name does not suggest it.
  EXPECT_EQ(open_source(folder / "a.odd", "cifar")->size(), 1U);
}

}  // namespace
}  // namespace precast::data
