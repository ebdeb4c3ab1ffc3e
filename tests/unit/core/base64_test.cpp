#include "core/base64.hpp"

#include <gtest/gtest.h>

namespace pipeline::core {
namespace {

TEST(Base64, is_decoded_or_refused) {
  EXPECT_EQ(decode_base64("aGVsbG8="), "hello");
  EXPECT_EQ(decode_base64("aGVsbG8"), "hello");
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("a"), std::nullopt);
  EXPECT_EQ(decode_base64("a b="), std::nullopt);
}

TEST(Base64, encoded_bytes_are_decoded_to_the_same) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes);
    EXPECT_EQ(encode_base64(bytes).size() % 4, 0u);
    bytes += static_cast<char>(i * 37);
  }
  EXPECT_EQ(encode_base64("hello"), "aGVsbG8=");
  EXPECT_EQ(encode_base64("hi"), "aGk=");
}

}  // namespace
}  // namespace pipeline::core
