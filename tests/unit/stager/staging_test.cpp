// The stager against a server that keeps what it is sent, and has troubles when the test wants it.
#include "stager/staging.hpp"

#include "blobs/crc64nvme.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "file_tree/content.hpp"
#include "unit/stager/server_fixture.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
using test::HttpExchange;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Carrier : public ServerFixture {
 protected:
  async::Task<> serve(HttpExchange& exchange) override {
    if (troubles > 0) {
      --troubles;
      if (troubles % 2)
        exchange.cut();
      else
        co_await exchange.answer(503,
                                 "<Error><Code>SlowDown</Code><Message>slower</Message></Error>");
      co_return;
    }
    const auto key = exchange.target;
    if (key == "/continue") {
      for (int i = 0; i < 40'000; ++i) co_await exchange.write("HTTP/1.1 100 Continue\r\n\r\n");
      co_await exchange.hang();
    } else if (key == "/drips") {
      ++asked;
      co_await exchange.begin_stream();
      co_await exchange.piece("0");
      exchange.cut();
    } else if (key == "/headers") {
      co_await exchange.write("HTTP/1.1 200 OK\r\n");
      for (int i = 0; i < 40'000; ++i)
        co_await exchange.write("X-" + std::to_string(i) + ": something\r\n");
      co_await exchange.hang();
    } else if (key == "/endless") {
      co_await exchange.begin_stream("403 Forbidden");
      for (int i = 0; i < 200; ++i) co_await exchange.piece(std::string(10'000, 'x'));
      co_await exchange.hang();
    } else if (forgets && key.starts_with("/part")) {
      co_await exchange.answer(404,
                               "<Error><Code>NoSuchUpload</Code><Message>gone</Message></Error>");
    } else if (exchange.method == "PUT") {
      objects[key] = exchange.body;
      co_await exchange.answer(200, "",
                               "ETag: \"" + std::to_string(exchange.body.size()) + "\"\r\n");
    } else if (!objects.contains(key)) {
      co_await exchange.answer(404,
                               "<Error><Code>NoSuchKey</Code><Message>not there</Message></Error>");
    } else {
      co_await give(exchange, objects[key]);
    }
  }
  /// Gives a range, as a stream that is cut in its middle when the test wants it.
  async::Task<> give(HttpExchange& exchange, const std::string& text) {
    std::size_t begin = 0, last = text.size();
    const auto at = exchange.headers.find("bytes=");
    const bool is_range = has_ranges && at != std::string::npos;
    if (is_range) std::sscanf(exchange.headers.c_str() + at, "bytes=%zu-%zu", &begin, &last);
    if (is_range && begin >= text.size()) co_return co_await exchange.answer(416, "");
    const auto part = text.substr(begin, last + 1 - begin);
    ++given;
    if (wrong_ranges > 0 && begin > 0) --wrong_ranges, ++begin;
    if (is_range)
      co_await exchange.begin_stream("206 Partial Content",
                                     "Content-Range: bytes " + std::to_string(begin) + "-" +
                                         std::to_string(begin + part.size() - 1) + "/" +
                                         std::to_string(text.size()) + "\r\n");
    else
      co_await exchange.begin_stream();
    const bool is_cut = cuts > 0;
    if (is_cut) --cuts;
    co_await exchange.piece(part.substr(0, is_cut ? part.size() / 2 : part.size()));
    if (is_cut) co_return exchange.cut();
    co_await exchange.end_stream();
  }
  static std::string tar_of(const fs::path& path) {
    const file_tree::Content content(path, file_tree::scan_tree(path));
    std::string text(content.size(), '\0');
    content.read(0, text);
    return text;
  }
  static std::string digest_of(const fs::path& path) {
    auto nodes = file_tree::scan_tree(path);
    file_tree::hash_tree(path, nodes);
    return file_tree::tree_digest(nodes).hex();
  }
  json file_item(const fs::path& to, const std::string& text) {
    return {{"kind", "file"},
            {"to", to.string()},
            {"url", server.url() + "/file"},
            {"digest", core::sha256(text).hex()}};
  }
  json tree_item(const fs::path& to, const fs::path& tree) {
    return {{"kind", "tree"},
            {"to", to.string()},
            {"url", server.url() + "/tree"},
            {"digest", digest_of(tree)}};
  }
  void fetch_items(json items) {
    Transfer transfer("", hasty);
    fetch({{"items", std::move(items)}}, transfer);
  }
  std::string refusal(json items) {
    try {
      fetch_items(std::move(items));
    } catch (const TransferError& error) {
      return error.what();
    }
    return "none";
  }
  json output(const fs::path& path) {
    return {{"name", "o"},
            {"path", path.string()},
            {"key", "k"},
            {"whole", server.url() + "/whole"},
            {"upload", "u"},
            {"stays", true},
            {"before", server.url() + "/part?n="},
            {"after", "&s="},
            {"signatures", {"a", "b", "c"}}};
  }
  json collected(const fs::path& path, int code = 0) {
    const json document{{"outputs", json::array({output(path)})},
                        {"report", server.url() + "/report"},
                        {"failure", (folder.path() / "failure").string()}};
    Transfer transfer("", hasty);
    collect(document, code, transfer);
    return json::parse(objects.at("/report"));
  }

  int troubles = 0, cuts = 0, asked = 0, given = 0, wrong_ranges = 0;
  bool forgets = false, has_ranges = true;
};

TEST_F(Carrier, gives_up_a_server_that_sends_one_byte_in_each_try) {
  Transfer transfer("", hasty);
  EXPECT_THROW(transfer.find("a text", server.url() + "/drips"), TransferError);
  EXPECT_EQ(asked, 4);
}

TEST_F(Carrier, fetches_files_folders_and_texts_through_all_failures) {
  const auto tree = folder.path() / "tree";
  fs::create_directories(tree / "deep");
  core::write_file_atomically(tree / "deep/f", std::string(100'000, 'f'));
  fs::create_symlink("deep/f", tree / "link");
  const std::string text(300'000, 'x');
  objects["/file"] = text;
  objects["/tree"] = tar_of(tree);
  troubles = 3;
  cuts = 2;
  const auto to = folder.path() / "to";
  const json document{
      {"items",
       {{{"kind", "file"},
         {"to", (to / "a.txt").string()},
         {"url", server.url() + "/file"},
         {"digest", core::sha256(text).hex()},
         {"executable", true}},
        {{"kind", "tree"},
         {"to", (to / "t").string()},
         {"url", server.url() + "/tree"},
         {"digest", digest_of(tree)}},
        {{"kind", "text"}, {"to", (to / "g/index.json").string()}, {"text", "[]"}}}}};
  Transfer transfer("", hasty);
  fetch(document, transfer);
  EXPECT_EQ(core::read_file(to / "a.txt"), text);
  EXPECT_EQ(fs::status(to / "a.txt").permissions() & fs::perms::owner_exec, fs::perms::owner_exec);
  EXPECT_EQ(digest_of(to / "t"), digest_of(tree));
  EXPECT_EQ(core::read_file(to / "g/index.json"), "[]");
  EXPECT_EQ(troubles + cuts, 0);
}

TEST_F(Carrier, fetches_a_large_file_and_a_large_folder_in_ranges_through_all_failures) {
  const auto tree = folder.path() / "tree";
  fs::create_directories(tree);
  const auto text = counted_text(17 * mebibyte + 5);
  core::write_file_atomically(tree / "a", text);
  core::write_file_atomically(tree / "b", std::string(5 * mebibyte, 'b'));
  for (const bool ranges : {true, false}) {
    has_ranges = ranges;
    objects["/file"] = text;
    objects["/tree"] = tar_of(tree);
    troubles = 3;
    cuts = ranges ? 5 : 3;
    wrong_ranges = ranges ? 2 : 0;
    given = 0;
    const auto to = folder.path() / (ranges ? "to" : "whole");
    fetch_items({file_item(to / "a", text), tree_item(to / "t", tree)});
    EXPECT_EQ(core::read_file(to / "a"), text);
    EXPECT_EQ(digest_of(to / "t"), digest_of(tree));
    EXPECT_EQ(troubles + cuts + wrong_ranges, 0);
    EXPECT_GE(given, ranges ? 4 : 2);
  }
}

TEST_F(Carrier, fetches_many_small_files_and_reports_the_missing_one) {
  json items = json::array();
  for (int i = 0; i < 200; ++i) {
    const auto name = std::to_string(i);
    objects["/small" + name] = name;
    items.push_back({{"kind", "file"},
                     {"to", (folder.path() / "many" / name).string()},
                     {"url", server.url() + "/small" + name},
                     {"digest", core::sha256(name).hex()}});
  }
  troubles = 3;
  fetch_items(items);
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(core::read_file(folder.path() / "many" / std::to_string(i)), std::to_string(i));
  core::remove_tree(folder.path() / "many");
  objects.erase("/small150");
  EXPECT_THAT(refusal(items), HasSubstr("many/150: NoSuchKey"));
}

TEST_F(Carrier, fetches_the_pieces_of_a_list) {
  const auto tree = folder.path() / "tree";
  fs::create_directories(tree);
  core::write_file_atomically(tree / "f", "in a tree");
  objects["/k/t?sig=s9"] = tar_of(tree);
  std::string rows = "tree " + digest_of(tree) + " k/t s9 9-step";
  for (int i = 0; i < 9; ++i) {
    const auto text = std::to_string(i);
    objects["/k/" + text + "?sig=s" + text] = text;
    rows += "\n" + std::string(i == 3 ? "executable " : "file ") + core::sha256(text).hex() +
            " k/" + text + " s" + text + " " + text + "-step name.txt";
  }
  objects["/list"] = rows;
  json pieces{{"kind", "pieces"}, {"before", server.url() + "/"}, {"after", "?sig="}};
  for (const bool inline_rows : {true, false}) {
    const auto to = folder.path() / (inline_rows ? "a" : "b");
    pieces["to"] = to.string();
    pieces.erase("rows");
    inline_rows ? pieces["rows"] = rows : pieces["list"] = server.url() + "/list";
    fetch_items(json::array({pieces}));
    EXPECT_EQ(core::read_file(to / "8-step name.txt"), "8");
    EXPECT_EQ(core::read_file(to / "9-step/f"), "in a tree");
    EXPECT_EQ(fs::status(to / "3-step name.txt").permissions() & fs::perms::owner_exec,
              fs::perms::owner_exec);
  }
  pieces["to"] = (folder.path() / "c").string();
  objects["/list"] = "file " + core::sha256("0").hex() + " k/0 s0 ../out";
  EXPECT_THAT(refusal(json::array({pieces})), HasSubstr("is not a path: ../out"));
}

TEST_F(Carrier, refuses_a_large_file_whose_last_byte_differs_or_that_ends_early) {
  auto text = counted_text(12 * mebibyte);
  const auto to = folder.path() / "a";
  const json items = json::array({file_item(to, text)});
  auto other = text;
  other.back() ^= 1;
  objects["/file"] = other;
  EXPECT_THAT(refusal(items), HasSubstr("is damaged"));
  fs::remove(to);
  objects["/file"] = text.substr(0, text.size() - 1);
  EXPECT_THAT(refusal(items), HasSubstr("is damaged"));
  fs::remove(to);
  wrong_ranges = 1000;
  objects["/file"] = text;
  EXPECT_THAT(refusal(items), HasSubstr("was answered with a wrong range"));
}

TEST_F(Carrier, fetches_lists_that_are_too_long_for_its_document) {
  objects["/items"] = R"([{"kind": "text", "to": "a", "text": "[]"}])";
  json document;
  document["lists"]["items"] = server.url() + "/items";
  Transfer transfer("", hasty);
  complete(document, transfer);
  EXPECT_EQ(document["items"][0]["to"], "a");
}

TEST_F(Carrier, refuses_content_that_differs_from_its_digest) {
  objects["/file"] = "other";
  const json document{{"items", json::array({{{"kind", "file"},
                                              {"to", (folder.path() / "a").string()},
                                              {"url", server.url() + "/file"},
                                              {"digest", core::sha256("x").hex()}}})}};
  Transfer transfer("", hasty);
  try {
    fetch(document, transfer);
    FAIL();
  } catch (const DamagedItem& error) {
    EXPECT_THAT(error.what(), HasSubstr("is damaged"));
    EXPECT_EQ(error.digest(), core::sha256("x").hex());
    EXPECT_TRUE(error.is_transient());
  }
}

TEST_F(Carrier, names_the_folder_that_is_damaged_or_missing) {
  const auto tree = folder.path() / "tree";
  fs::create_directories(tree / "deep");
  core::write_file_atomically(tree / "deep/f", std::string(100'000, 'f'));
  const auto digest = digest_of(tree);
  const json document{{"items", json::array({{{"kind", "tree"},
                                              {"to", (folder.path() / "to").string()},
                                              {"url", server.url() + "/tree"},
                                              {"digest", digest}}})}};
  const auto whole = tar_of(tree);
  for (const std::size_t place : {std::size_t{10}, whole.size() / 2, std::size_t{0}}) {
    objects["/tree"] = whole;
    objects["/tree"].at(place) ^= 1;
    if (place == 0) objects.erase("/tree");
    Transfer transfer("", hasty);
    try {
      fetch(document, transfer);
      FAIL();
    } catch (const DamagedItem& error) {
      EXPECT_EQ(error.digest(), digest);
    }
    core::remove_tree(folder.path() / "to");
  }
}

TEST_F(Carrier, reports_the_digest_of_a_folder_as_that_of_an_artifact) {
  const auto tree = folder.path() / "tree";
  fs::create_directories(tree / "deep");
  core::write_file_atomically(tree / "deep/f", "12345");
  const auto entry = collected(tree)["outputs"][0];
  EXPECT_EQ(entry["artifact"], digest_of(tree));
  EXPECT_EQ(entry["artifact_bytes"], 5);
  EXPECT_EQ(entry["digest"], core::sha256(tar_of(tree)).hex());
  blobs::Crc64Nvme crc;
  crc.update(tar_of(tree));
  EXPECT_EQ(entry["crc64nvme"], crc.base64());
  core::write_file_atomically(tree / "large", std::string(20 << 20, 'x'));
  core::write_file_atomically(tree / "empty", "");
  EXPECT_EQ(collected(tree)["outputs"][0]["artifact"], digest_of(tree)) << "sent in parts";
}

TEST_F(Carrier, reports_the_servers_words_and_never_its_signature) {
  Transfer transfer("", hasty);
  const auto url = server.url() + "/none?X-Amz-Signature=secret";
  try {
    transfer.receive("x", url, [](std::string_view) {});
    FAIL();
  } catch (const TransferError& error) {
    EXPECT_EQ(std::string(error.what()), "cannot read x: NoSuchKey: not there");
    EXPECT_FALSE(error.is_transient());
  }
  troubles = 1000;
  try {
    transfer.receive("x", url, [](std::string_view) {});
    FAIL();
  } catch (const TransferError& error) {
    EXPECT_TRUE(error.is_transient());
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("secret")));
  }
}

TEST_F(Carrier, reads_only_the_beginning_of_an_endless_refusal) {
  Transfer transfer("", hasty);
  for (int i = 0; i < 2; ++i) {
    try {
      transfer.receive("x", server.url() + "/endless", [](std::string_view) {});
      FAIL();
    } catch (const TransferError& error) {
      EXPECT_EQ(std::string(error.what()), "cannot read x: status 403");
    }
  }
}

TEST_F(Carrier, refuses_a_response_with_an_endless_head) {
  Transfer transfer("", hasty);
  for (const auto* path : {"/continue", "/headers"}) {
    try {
      transfer.receive("x", server.url() + path, [](std::string_view) {});
      FAIL();
    } catch (const TransferError& error) {
      EXPECT_THAT(error.what(), HasSubstr("does not answer in HTTP"));
    }
  }
}

TEST_F(Carrier, sends_outputs_in_parts_of_the_same_size_and_the_report_last) {
  const auto file = folder.path() / "out";
  const auto text = counted_text(35 * mebibyte);
  core::write_file_atomically(file, text);
  troubles = 2;
  const auto report = collected(file);
  const auto& entry = report["outputs"][0];
  EXPECT_EQ(entry["kind"], "file");
  EXPECT_EQ(entry["bytes"], text.size());
  EXPECT_EQ(entry["digest"], core::sha256(text).hex()) << "although parts were read again";
  EXPECT_EQ(entry["tags"].size(), 3u);
  EXPECT_EQ(objects["/part?n=1&s=a"] + objects["/part?n=2&s=b"] + objects["/part?n=3&s=c"], text);
  EXPECT_EQ(objects["/part?n=1&s=a"].size(), 12u << 20) << "three URLs have to suffice";
}

TEST_F(Carrier, sends_small_outputs_and_those_of_lost_uploads_in_one_request) {
  core::write_file_atomically(folder.path() / "out", "x");
  EXPECT_EQ(collected(folder.path() / "out")["outputs"][0]["at_once"], true);
  EXPECT_EQ(objects["/whole"], "x");
  const std::string text(17u << 20, 'y');
  core::write_file_atomically(folder.path() / "out", text);
  forgets = true;
  const auto report = collected(folder.path() / "out");
  EXPECT_EQ(report["outputs"][0]["at_once"], true);
  EXPECT_EQ(report["outputs"][0]["digest"], core::sha256(text).hex());
  EXPECT_EQ(objects["/whole"], text);
}

TEST_F(Carrier, reports_missing_outputs_and_the_reason_of_a_steps_failure) {
  EXPECT_EQ(collected(folder.path() / "none")["outputs"][0]["kind"], "none");
  core::write_file_atomically(folder.path() / "failure", "{\"type\": \"Oops\"}");
  core::write_file_atomically(folder.path() / "out", "x");
  const auto report = collected(folder.path() / "out", 3);
  EXPECT_EQ(report["failure"], "{\"type\": \"Oops\"}");
  EXPECT_EQ(report["outputs"][0]["digest"], core::sha256("x").hex())
      << "a failed step keeps the outputs that it has written";
  fs::create_symlink("/etc/passwd", folder.path() / "bad");
  EXPECT_THROW(collected(folder.path() / "bad"), core::EnvironmentError);
  EXPECT_EQ(collected(folder.path() / "bad", 3)["outputs"][0]["kind"], "none")
      << "a bad output does not replace the step's own failure";
}

}  // namespace
}  // namespace pipeline::stager
