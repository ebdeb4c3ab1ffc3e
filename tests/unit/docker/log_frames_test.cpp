#include "docker/log_frames.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace pipeline::docker {
namespace {

std::string frame(int stream, const std::string& text) {
  std::string bytes{static_cast<char>(stream), 0, 0, 0};
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(text.size() >> shift & 255);
  return bytes + text;
}

struct Streams {
  std::string out, err;
  void take(bool is_stderr, std::string_view bytes) { (is_stderr ? err : out) += bytes; }
};

Streams decode(const std::vector<std::string>& pieces) {
  Streams streams;
  EngineLogFrames frames(
      [&](bool is_stderr, std::string_view bytes) { streams.take(is_stderr, bytes); });
  for (const auto& piece : pieces) frames.feed(piece);
  frames.finish();
  return streams;
}

TEST(EngineLogFrames, text_of_a_terminal_is_not_changed) {
  EXPECT_EQ(decode({"plain text without frames"}).out, "plain text without frames");
  EXPECT_EQ(decode({"short"}).out, "short");
  EXPECT_EQ(decode({frame(1, "framed") + "then something else"}).out, "framedthen something else");
}

TEST(EngineLogFrames, a_frame_that_ends_early_gives_its_bytes) {
  EXPECT_EQ(decode({frame(2, "all of it").substr(0, 12)}).err, "all ");
}

TEST(EngineLogFrames, an_empty_frame_and_an_empty_stream_give_nothing) {
  EXPECT_EQ(decode({frame(1, ""), frame(1, "x")}).out, "x");
  EXPECT_EQ(decode({}).out + decode({""}).out, "");
}

TEST(EngineLogFrames, streams_are_told_apart) {
  const auto streams =
      decode({frame(1, "out\n") + frame(2, "err\n") + frame(0, "in\n") + frame(3, "engine\n")});
  EXPECT_EQ(streams.out, "out\nin\n");
  EXPECT_EQ(streams.err, "err\nengine\n");
}

TEST(EngineLogFrames, cuts_anywhere_change_nothing) {
  std::mt19937 random(7);
  std::string bytes, out, err;
  for (int i = 0; i < 200; ++i) {
    std::string text(random() % 300, 'a');
    for (auto& c : text) c = static_cast<char>(random() % 256);
    const bool is_stderr = random() % 2;
    (is_stderr ? err : out) += text;
    bytes += frame(is_stderr ? 2 : 1, text);
  }
  for (int round = 0; round < 100; ++round) {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < bytes.size();) {
      const auto size =
          std::min<std::size_t>(1 + random() % (round < 10 ? 3 : 700), bytes.size() - at);
      pieces.push_back(bytes.substr(at, size));
      at += size;
    }
    const auto streams = decode(pieces);
    ASSERT_EQ(streams.out, out);
    ASSERT_EQ(streams.err, err);
  }
}

TEST(EngineLogFrames, arbitrary_bytes_are_kept_from_the_first_that_are_not_a_frame) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 64, 0);
    for (auto& c : bytes) c = static_cast<char>(random() % 256);
    if (!bytes.empty()) bytes[0] = static_cast<char>(4 + random() % 250);
    ASSERT_EQ(decode({bytes.substr(0, bytes.size() / 2), bytes.substr(bytes.size() / 2)}).out,
              bytes);
  }
}

}  // namespace
}  // namespace pipeline::docker
