// Large blobs are read in ranges and written in parts, several at a time, also if requests fail.
#include "blobs/ranged_read.hpp"

#include <fcntl.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blobs/remote_artifacts.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "file_tree/tree.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"

namespace pipeline::blobs {
namespace {

namespace fs = std::filesystem;
using test::HttpExchange;
using test::run_task;
using Form = RemoteArtifacts::Form;

constexpr std::size_t mebibyte = 1 << 20;
constexpr async::RetryPolicy hasty{std::chrono::milliseconds(1), std::chrono::milliseconds(2), 4};

/// Text in which each KiB begins with its own offset, so that a misplaced range is noticed.
std::string counted_text(std::size_t size) {
  std::string text(size, '.');
  constexpr std::size_t step = 1024, digits = 20;
  for (std::size_t i = 0; i + digits < size; i += step) {
    const auto number = std::to_string(i);
    text.replace(i, number.size(), number);
  }
  return text;
}

class LargeBlobs : public testing::Test {
 protected:
  /// Answers as the bucket does, unless the test wants trouble.
  async::Task<> answer(HttpExchange& exchange) {
    const bool is_content = exchange.method == "GET" || exchange.method == "PUT";
    if (is_content && ++asked % 2 == 1 && troubles > 0) {
      --troubles;
      if (troubles % 2)
        exchange.cut();
      else
        co_await exchange.answer(503, "<Error><Code>SlowDown</Code></Error>");
    } else if (exchange.method == "GET" && !has_ranges) {
      auto content = bucket.objects.at(exchange.target);
      co_await exchange.answer(200, std::move(content));
    } else {
      co_await bucket.answer(exchange);
    }
  }
  std::string receive(Form form, std::uint64_t max_bytes) {
    core::remove_tree(to);
    asked = 0;
    return run_task(loop, artifacts.receive("k", to, form, max_bytes, nullptr));
  }

  asio::io_context loop;
  test::BucketServer bucket{loop};
  test::HttpServer server{loop, [this](HttpExchange& exchange) { return answer(exchange); }};
  settings::RemoteStoreSettings settings{"s3://team/pipe",
                                         {{"endpoint", server.url()}, {"region", "lab"}}};
  RemoteArtifacts artifacts{loop, settings, hasty};
  core::TemporaryFolder folder;
  const fs::path to = folder.path() / "to";
  std::string& object = bucket.objects["/team/pipe/k"];
  const std::string text = counted_text(17 * mebibyte + 3);
  int troubles = 0, asked = 0;
  bool has_ranges = true;
};

TEST_F(LargeBlobs, are_downloaded_in_concurrent_ranges_through_failures) {
  object = text;
  troubles = 2;
  EXPECT_EQ(receive(Form::file, text.size()), core::sha256(text).hex());
  EXPECT_EQ(core::read_file(to), text);
  EXPECT_EQ(troubles, 0) << "two requests have failed";
}

TEST_F(LargeBlobs, are_downloaded_whole_from_a_server_without_ranges) {
  object = text;
  has_ranges = false;
  EXPECT_EQ(receive(Form::file, unlimited), core::sha256(text).hex());
  EXPECT_EQ(core::read_file(to), text);
  EXPECT_LE(server.asked.size(), 2u);
}

TEST_F(LargeBlobs, that_are_larger_than_announced_are_not_downloaded) {
  object = text;
  EXPECT_THROW(receive(Form::file, text.size() - 1), UnusableBlob);
  EXPECT_LE(server.asked.size(), 2u);
  object.back() ^= 1;
  EXPECT_NE(receive(Form::file, text.size()), core::sha256(text).hex());
}

TEST_F(LargeBlobs, that_are_folders_are_unpacked_in_order_and_uploaded_in_parts) {
  const auto tree = folder.path() / "tree";
  fs::create_directory(tree);
  core::write_file_atomically(tree / "a", text);
  core::write_file_atomically(tree / "b", std::string(5 * mebibyte, 'b'));
  auto nodes = file_tree::scan_tree(tree);
  file_tree::hash_tree(tree, nodes);
  const auto digest = file_tree::tree_digest(nodes);
  troubles = 2;
  const auto key = run_task(loop, artifacts.send(digest.hex(), tree, nullptr));
  EXPECT_EQ(troubles, 0);
  object = bucket.objects.at("/team/pipe/" + key);
  troubles = 2;
  receive(Form::tree, unlimited);
  auto received = file_tree::scan_tree(to);
  file_tree::hash_tree(to, received);
  EXPECT_EQ(file_tree::tree_digest(received), digest);
  EXPECT_EQ(troubles, 0);
}

TEST_F(LargeBlobs, have_urls_with_common_parts) {
  for (const auto* url : {"s3://team/pipe", "s3://team"}) {
    auto place = settings;
    place.url = url;
    auto store = open(loop, place, hasty);
    PodAccess::KeyedUrls urls;
    std::string one;
    do {  // Both have the time of their making, in seconds.
      urls = run_task(loop, store->pod_access()->presigned_reads());
      one = run_task(loop, store->pod_access()->presigned(PodAccess::Method::read, "c.tar"));
    } while (one.find(urls.after) == one.npos);
    EXPECT_EQ(urls.before + "c.tar" + urls.after + urls.signature("c.tar"), one);
    EXPECT_NE(urls.signature("a/b"), urls.signature("c.tar"));
  }
}

}  // namespace
}  // namespace pipeline::blobs
