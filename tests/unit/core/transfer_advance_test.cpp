#include "core/transfer_advance.hpp"

#include <gtest/gtest.h>

namespace pipeline::core {
namespace {

TEST(TransferAdvance, is_made_by_64_KiB_and_never_by_fewer_bytes) {
  TransferAdvance advance;
  EXPECT_FALSE(advance.is_made(0));
  EXPECT_FALSE(advance.is_made((64 << 10) - 1));
  EXPECT_TRUE(advance.is_made(64 << 10));
  EXPECT_FALSE(advance.is_made((128 << 10) - 1));
  EXPECT_TRUE(advance.is_made(1 << 20));
}

TEST(TransferAdvance, is_not_made_by_the_same_bytes_again) {
  TransferAdvance advance;
  EXPECT_TRUE(advance.is_made(1 << 20));
  EXPECT_FALSE(advance.is_made(0));
  EXPECT_FALSE(advance.is_made(1 << 20));
  EXPECT_TRUE(advance.is_made(2 << 20));
}

}  // namespace
}  // namespace pipeline::core
