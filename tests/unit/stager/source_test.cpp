// Inputs that the stager reads from addresses of other servers, and what it does where it cannot.
#include "stager/source.hpp"

#include <atomic>
#include <mutex>
#include <set>

#include "core/digest.hpp"
#include "core/file.hpp"
#include "file_tree/tree.hpp"
#include "stager/staging.hpp"
#include "unit/stager/server_fixture.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
using test::HttpExchange;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr TransferRetries three_tries{std::chrono::milliseconds(1), std::chrono::milliseconds(2),
                                      3};
class Source : public ServerFixture {
 protected:
  async::Task<> serve(HttpExchange& exchange) override {
    const auto key = exchange.target;
    if (exchange.method == "PUT") {
      objects[key] = exchange.body;
      if (key == "/wanted") objects["/store"] = content;  // As the driver does.
      co_await exchange.answer(200, "");
    } else if (key == "/moved") {
      co_await exchange.answer(302, "", "Location: /file?signature=1\r\n");
    } else if (key == "/elsewhere") {
      co_await exchange.answer(302, "", "Location: http://user:password@h/x\r\n");
    } else if (!objects.contains(key)) {
      co_await exchange.answer(404, "<Error><Code>NoSuchKey</Code></Error>");
    } else {
      co_await give(exchange, objects[key]);
    }
  }

  async::Task<> give(HttpExchange& exchange, const std::string& text) {
    const auto at = exchange.headers.find("bytes=");
    if (!has_ranges || at == std::string::npos) co_return co_await whole(exchange, text);
    std::size_t begin = 0, last = 0;
    std::sscanf(exchange.headers.c_str() + at, "bytes=%zu-%zu", &begin, &last);
    begins.insert(begin);
    if (begin >= text.size()) co_return co_await exchange.answer(416, "");
    const auto size = std::min(last + 1, text.size()) - begin;
    const auto range = "Content-Range: bytes " + std::to_string(begin) + "-" +
                       std::to_string(begin + size - 1) + "/" + std::to_string(text.size()) +
                       "\r\n";
    if (drips) {
      ++dripped;
      co_await exchange.begin_stream("206 Partial Content", range);
      co_await exchange.piece(text.substr(begin, 1));
      co_await exchange.end_stream();
      co_return;
    }
    if (cuts > 0 && --cuts % 2) {
      co_await exchange.answer(503, "");
      co_return;
    }
    co_await exchange.answer(range_status, text.substr(begin, size), range);
  }

  async::Task<> whole(HttpExchange& exchange, const std::string& text) {
    if (cuts > 0) {
      --cuts;
      co_await exchange.begin_stream();
      co_await exchange.piece(text.substr(0, text.size() / 2));
      exchange.cut();
      co_return;
    }
    co_await exchange.answer(200, text);
  }

  std::string read(const std::string& path, std::size_t size = 0) {
    const auto to = folder.path() / "to" / std::to_string(++reads);
    SourceReader("", three_tries)
        .read_file({{"shown", "https://host/x"}, {"url", server.url() + path}, {"size", size}}, to);
    return core::read_file(to);
  }

  std::string refusal(const std::string& path, std::size_t size = 0) {
    try {
      read(path, size);
    } catch (const core::EnvironmentError& error) {
      return error.what();
    }
    return "none";
  }

  json item(const std::string& path, json more = json::object()) {
    json source{{"shown", "https://host/x"}, {"url", server.url() + path}, {"size", 0}};
    source.update(more);
    return {{"to", (folder.path() / "item").string()}, {"kind", "file"},
            {"digest", core::sha256(content).hex()},   {"executable", false},
            {"url", server.url() + "/store"},          {"source", std::move(source)}};
  }
  void fetch_item(json made) {
    const json document{{"items", json::array({std::move(made)})},
                        {"wanted", server.url() + "/wanted"}};
    Transfer transfer("", three_tries);
    fetch(document, transfer, SourceReader("", three_tries));
  }

  std::string content = counted_text(20 * mebibyte + 7);
  std::set<std::size_t> begins;  ///< Of the ranges that were asked for.
  int cuts = 0, reads = 0, dripped = 0;
  bool has_ranges = true, drips = false;
  int range_status = 206;
};

TEST_F(Source, large_content_comes_in_ranges_through_troubles) {
  objects["/file"] = content;
  cuts = 5;
  EXPECT_EQ(read("/file", content.size()), content);
  EXPECT_EQ(begins, (std::set<std::size_t>{0, 8 * mebibyte, 16 * mebibyte}));
  EXPECT_EQ(cuts, 0);
}

TEST_F(Source, a_server_that_sends_one_byte_in_each_try_is_given_up) {
  drips = true;
  objects["/file"] = content;
  EXPECT_THAT(refusal("/file"), HasSubstr("was cut off"));
  EXPECT_EQ(dripped, 3);
}

TEST_F(Source, ranges_are_known_by_their_header_whatever_the_status) {
  range_status = 200;
  objects["/file"] = content;
  EXPECT_EQ(read("/file", content.size()), content);
  EXPECT_EQ(begins.size(), 3u);
}

TEST_F(Source, content_of_a_server_without_ranges_is_fetched_whole_and_again_after_a_cut) {
  has_ranges = false;
  cuts = 2;
  objects["/file"] = content;
  EXPECT_EQ(read("/file"), content);
  EXPECT_EQ(cuts, 0);
}

TEST_F(Source, redirections_are_followed_but_to_no_login) {
  objects["/file?signature=1"] = content;
  EXPECT_EQ(read("/moved"), content);
  EXPECT_THAT(refusal("/elsewhere"), HasSubstr("do not follow"));
}

TEST_F(Source, empty_content_is_a_file) {
  objects["/file"] = "";
  EXPECT_EQ(read("/file"), "");
  has_ranges = false;
  EXPECT_EQ(read("/file"), "");
}

TEST_F(Source, refusals_name_the_address_and_not_the_url) {
  objects["/file?signature=1"] = "other";
  EXPECT_EQ(refusal("/nothing?signature=1"), "https://host/x: the server answered 404");
  EXPECT_EQ(refusal("/file?signature=1", 4), "https://host/x has 5 bytes, not 4");
  has_ranges = false;
  EXPECT_EQ(refusal("/file?signature=1", 4), "https://host/x has 5 bytes, not 4");
}

TEST_F(Source, an_item_comes_from_its_address_and_is_kept_for_others) {
  objects["/file"] = content;
  fetch_item(item("/file", {{"keep", server.url() + "/kept"}}));
  EXPECT_EQ(core::read_file(folder.path() / "item"), content);
  EXPECT_EQ(objects["/kept"], content);
  EXPECT_FALSE(objects.contains("/wanted"));
}

TEST_F(Source, items_that_are_unavailable_or_differ_are_requested_from_the_driver) {
  objects["/file"] = "other";
  for (const auto* path : {"/file", "/nothing"}) {
    objects.erase("/wanted");
    objects.erase("/store");
    fetch_item(item(path, {{"keep", server.url() + "/kept"}}));
    EXPECT_EQ(core::read_file(folder.path() / "item"), content);
    fs::remove(folder.path() / "item");
    EXPECT_THAT(json::parse(objects.at("/wanted")).at(core::sha256(content).hex()),
                HasSubstr("https://host/x"));
  }
  EXPECT_FALSE(objects.contains("/kept"));
}

TEST_F(Source, an_endless_list_of_files_is_not_read_into_memory) {
  objects["/list"] = std::string(65 * mebibyte, ' ');
  auto made = item("", {{"files", server.url() + "/list"}});
  made["kind"] = "tree";
  EXPECT_THROW(fetch_item(made), core::EnvironmentError)
      << "the file that the driver sends instead is not a folder";
  EXPECT_THAT(json::parse(objects.at("/wanted")).at(core::sha256(content).hex()),
              HasSubstr("the list of https://host/x is too long"));
}

TEST_F(Source, a_folder_is_read_by_the_list_of_its_files) {
  json list = json::array();
  const auto tree = folder.path() / "tree";
  for (int i = 0; i < 30; ++i) {
    const auto name = "deep/" + std::to_string(i);
    core::make_folders(tree / "deep");
    core::write_file_atomically(tree / name, std::to_string(i));
    objects["/o" + std::to_string(i)] = std::to_string(i);
    list.push_back({{"path", name}, {"url", server.url() + "/o" + std::to_string(i)}});
  }
  objects["/list"] = list.dump();
  auto nodes = file_tree::scan_tree(tree);
  file_tree::hash_tree(tree, nodes);
  auto made = item("", {{"files", server.url() + "/list"}});
  made["kind"] = "tree";
  made["digest"] = file_tree::tree_digest(nodes).hex();
  fetch_item(made);
  EXPECT_EQ(core::read_file(folder.path() / "item/deep/29"), "29");
  EXPECT_FALSE(objects.contains("/wanted"));
  EXPECT_THROW(
      SourceReader("", three_tries)
          .read_folder({{{"path", "../x"}, {"url", server.url() + "/o1"}}}, folder.path() / "out"),
      TransferError);
}

}  // namespace
}  // namespace pipeline::stager
