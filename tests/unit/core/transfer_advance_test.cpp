#include "core/transfer_advance.hpp"

#include <gtest/gtest.h>

namespace pipeline::core {
namespace {

TEST(TransferAdvance, advances_by_64_KiB_and_never_by_fewer_bytes) {
  TransferAdvance advance;
  EXPECT_FALSE(advance.has_advanced(0));
  EXPECT_FALSE(advance.has_advanced((64 << 10) - 1));
  EXPECT_TRUE(advance.has_advanced(64 << 10));
  EXPECT_FALSE(advance.has_advanced((128 << 10) - 1));
  EXPECT_TRUE(advance.has_advanced(1 << 20));
}

TEST(TransferAdvance, does_not_advance_by_the_same_bytes_again) {
  TransferAdvance advance;
  EXPECT_TRUE(advance.has_advanced(1 << 20));
  EXPECT_FALSE(advance.has_advanced(0));
  EXPECT_FALSE(advance.has_advanced(1 << 20));
  EXPECT_TRUE(advance.has_advanced(2 << 20));
}

}  // namespace
}  // namespace pipeline::core
