#include "docker/transfer_progress.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "docker/engine_api.hpp"

namespace pipeline::docker {
namespace {

// As an engine of 20.10 says it, here without most of the bar's states.
constexpr std::string_view push = R"({"status":"The push refers to repository [host:5000/a]"}
{"status":"Preparing","progressDetail":{},"id":"46017e785b0e"}
{"status":"Preparing","progressDetail":{},"id":"5f70bf18a086"}
{"status":"Waiting","progressDetail":{},"id":"5f70bf18a086"}
{"status":"Preparing","progressDetail":{},"id":"a3b5c80a4eba"}
{"status":"Pushing","progressDetail":{"current":512,"total":3072},"progress":"[==>  ]","id":"46017e785b0e"}
{"status":"Layer already exists","progressDetail":{},"id":"5f70bf18a086"}
{"status":"Mounted from other/b","progressDetail":{},"id":"a3b5c80a4eba"}
{"status":"Pushing","progressDetail":{"current":4096},"progress":"4096","id":"46017e785b0e"}
{"status":"Pushed","progressDetail":{},"id":"46017e785b0e"}
{"status":"1: digest: sha256:75 size: 528"}
{"progressDetail":{},"aux":{"Tag":"1","Digest":"sha256:75","Size":528}}
)";

TEST(TransferProgress, push_is_summed_up_also_if_its_bytes_come_in_pieces) {
  for (std::size_t piece = 1; piece < 200; piece += 13) {
    std::vector<std::string> lines;
    TransferProgress progress("push the image host:5000/a:1", "host:5000",
                              [&](std::string_view line) { lines.emplace_back(line); });
    for (std::size_t at = 0; at < push.size(); at += piece) progress.feed(push.substr(at, piece));
    progress.finish();
    const auto& pushed = progress.pushed();
    EXPECT_EQ(pushed.digest, "sha256:75");
    EXPECT_EQ(pushed.sent, 1u);
    EXPECT_EQ(pushed.bytes, 4096u);
    EXPECT_EQ(pushed.existing, 2u);
    const std::vector<std::string> expected{
        "The push refers to repository [host:5000/a]", "5f70bf18a086: Layer already exists",
        "a3b5c80a4eba: Mounted from other/b", "46017e785b0e: Pushed",
        "1: digest: sha256:75 size: 528"};
    EXPECT_EQ(lines, expected);
  }
}

TEST(TransferProgress, large_layers_are_reported_while_they_are_transferred) {
  std::vector<std::string> lines;
  TransferProgress progress("pull the image a", "host",
                            [&](std::string_view line) { lines.emplace_back(line); });
  for (int megabyte = 0; megabyte <= 60; ++megabyte)
    progress.feed(R"({"status":"Downloading","id":"5f7","progressDetail":{"current":)" +
                  std::to_string(megabyte * 1'000'000) + R"(,"total":60000000}})" + "\n");
  progress.feed(R"({"status":"Extracting","id":"5f7","progressDetail":{"current":9,"total":9}})");
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0], "Downloading 9.5 MiB of 57.2 MiB");
}

TEST(TransferProgress, endless_layers_are_counted_up_to_a_limit) {
  std::string last;
  TransferProgress progress("pull the image a", "host",
                            [&](std::string_view line) { last = line; });
  for (int layer = 0; layer < 3000; ++layer)
    progress.feed(R"({"status":"Downloading","id":")" + std::to_string(layer) +
                  R"(","progressDetail":{"current":104857600,"total":104857600}})" + "\n");
  EXPECT_TRUE(last.ends_with("of 95.2 GiB")) << last << ", where 1,000 layers are 97.7 GiB";
}

TEST(TransferProgress, a_very_long_error_is_cut) {
  TransferProgress progress("pull the image a", "host", {});
  progress.feed(R"({"error":")" + std::string(1 << 20, 'a') + R"("})" + "\n");
  try {
    progress.finish();
    FAIL() << "the error was not reported";
  } catch (const EngineError& error) {
    EXPECT_LT(std::string_view(error.what()).size(), 10'000u);
  }
}

TEST(TransferProgress, error_within_an_answer_with_status_200_names_the_registry) {
  TransferProgress progress("push the image host:5000/a:1", "host:5000", {});
  progress.feed(R"({"errorDetail":{"message":"unauthorized: x"},"error":"unauthorized: x"})");
  try {
    progress.finish();
    FAIL();
  } catch (const EngineError& error) {
    EXPECT_STREQ(error.what(), "cannot push the image host:5000/a:1: unauthorized: x");
    ASSERT_EQ(error.advice().size(), 1u);
    EXPECT_NE(error.advice()[0].find("`docker login host:5000`"), std::string::npos)
        << error.advice()[0];
  }
}

}  // namespace
}  // namespace pipeline::docker
