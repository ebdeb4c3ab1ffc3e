// Copies within a bucket by a server that knows copies of parts, or refuses or ignores them.
#include "blobs/s3/bucket.hpp"

#include <cstdlib>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>

#include "support/bucket.hpp"
#include "support/run_task.hpp"

namespace pipeline::blobs::s3 {
namespace {

using test::HttpExchange;
using test::run_task;
using testing::ElementsAre;

constexpr std::uint64_t copied_mebibyte = std::uint64_t{1} << 20;

class ACopyInABucket : public test::BucketTest {
 protected:
  ACopyInABucket() { store = open(loop, BucketServer::settings()); }

  std::unique_ptr<BlobStore> store;
};

TEST_F(ACopyInABucket, of_a_large_object_is_made_in_the_parts_in_which_pods_write_it) {
  std::string text(40 * copied_mebibyte + 3, 'x');
  text[9 * copied_mebibyte] = 'y';
  objects["/team/pipe/a"] = text;
  run_task(loop, store->copy("a", "b", text.size()));
  EXPECT_TRUE(objects["/team/pipe/b"] == text);
  EXPECT_EQ(parts.size(), 6u);
  EXPECT_EQ(parts[1].size(), part_size(text.size(), max_output_parts));
  EXPECT_EQ(server.asked.front(), "POST /team/pipe/b?uploads=");
  EXPECT_EQ(server.asked.back(), "POST /team/pipe/b?uploadId=1");
}

TEST_F(ACopyInABucket, of_a_small_object_or_one_of_unknown_size_is_one_request) {
  objects["/team/pipe/a"] = "text";
  run_task(loop, store->copy("a", "b", 4));
  run_task(loop, store->copy("a", "b"));
  EXPECT_THAT(server.asked, ElementsAre("PUT /team/pipe/b", "PUT /team/pipe/b"));
}

TEST_F(ACopyInABucket, of_a_large_object_that_is_missing_leaves_no_upload) {
  try {
    run_task(loop, store->copy("none", "b", 64 * copied_mebibyte));
    ADD_FAILURE() << "copied";
  } catch (const BlobError& error) {
    EXPECT_EQ(error.kind(), BlobError::Kind::missing_blob);
  }
  EXPECT_EQ(server.asked.back(), "DELETE /team/pipe/b?uploadId=1");
  EXPECT_TRUE(objects.empty());
}

TEST_F(ACopyInABucket, is_one_request_where_the_server_refuses_or_ignores_copies_of_parts) {
  for (const bool is_refused : {true, false}) {
    std::vector<std::string> asked;
    test::HttpServer unknowing(loop, [&](HttpExchange& exchange) -> async::Task<> {
      asked.push_back(exchange.method + " " + exchange.target);
      const bool is_part = exchange.target.find("partNumber=") != std::string::npos;
      if (is_part && is_refused)
        co_await exchange.answer(501, "<Error><Code>NotImplemented</Code></Error>");
      else
        co_await exchange.answer(200, is_part ? "" : "<UploadId>1</UploadId>",
                                 "ETag: \"d41d8cd98f00b204e9800998ecf8427e\"\r\n");
    });
    auto elsewhere = BucketServer::settings();
    elsewhere.options["endpoint"] = unknowing.url();
    const auto bucket = open(loop, elsewhere);
    EXPECT_GT(bucket->max_copy_bytes(), std::uint64_t{5} << 30);
    run_task(loop, bucket->copy("a", "b", 64 * copied_mebibyte));
    ASSERT_GE(asked.size(), 3u);
    EXPECT_THAT(asked, testing::Not(testing::Contains("POST /team/pipe/b?uploadId=1")))
        << "an empty object would have been made";
    EXPECT_EQ(asked[asked.size() - 2], "DELETE /team/pipe/b?uploadId=1");
    EXPECT_EQ(asked.back(), "PUT /team/pipe/b");
    asked.clear();
    run_task(loop, bucket->copy("a", "c", 64 * copied_mebibyte));
    EXPECT_THAT(asked, ElementsAre("PUT /team/pipe/c")) << "the server was asked before";
    EXPECT_EQ(bucket->max_copy_bytes(), std::uint64_t{5} << 30);
  }
}

TEST_F(ACopyInABucket, may_keep_its_server_silent_for_longer_the_larger_the_object_is) {
  setenv("PIPE_SERVER_TIMEOUT", "1s", 1);
  int tries = 0;
  test::HttpServer slow(loop, [&](HttpExchange& exchange) -> async::Task<> {
    if (exchange.method == "POST")
      co_return co_await exchange.answer(501, "<Error><Code>NotImplemented</Code></Error>");
    ++tries;
    asio::steady_timer timer(loop, std::chrono::milliseconds(1500));
    co_await timer.async_wait(asio::use_awaitable);
    co_await exchange.answer(200, "");
  });
  auto elsewhere = BucketServer::settings();
  elsewhere.options["endpoint"] = slow.url();
  const auto bucket = open(loop, elsewhere);
  run_task(loop, bucket->copy("a", "b", 1024 * copied_mebibyte));
  EXPECT_EQ(tries, 1);
  unsetenv("PIPE_SERVER_TIMEOUT");
}

}  // namespace
}  // namespace pipeline::blobs::s3
