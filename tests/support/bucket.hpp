/// @file
/// An S3 server with a bucket `team`. The keys for it stand in this process's environment while it
/// exists.
#pragma once

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "core/digest.hpp"
#include "settings/remote_store.hpp"
#include "support/http_server.hpp"

namespace pipeline::test {

class BucketServer {
 public:
  explicit BucketServer(asio::io_context& io_context) : loop(io_context) {
    setenv("AWS_ACCESS_KEY_ID", "A", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "B", 1);
  }
  BucketServer(const BucketServer&) = delete;
  BucketServer& operator=(const BucketServer&) = delete;
  ~BucketServer() {
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
  }
  /// Returns `s3://team/pipe`.
  settings::RemoteStoreSettings settings() const {
    return {"s3://team/pipe", {{"endpoint", server.url()}, {"region", "lab"}}};
  }
  /// Answers each request, as the members below ask.
  async::Task<> answer(HttpExchange& exchange) {
    if (refuses)
      co_return co_await exchange.answer(403, "<Error><Code>AccessDenied</Code></Error>");
    if (exchange.target.find("list-type=2") != std::string::npos) {
      auto list = list_of(exchange.target);
      co_return co_await exchange.answer(200, std::move(list));
    }
    if (refuses_checksums && !header(exchange, "x-amz-checksum-mode: ").empty())
      co_return co_await exchange.answer(501, "");
    if (exchange.method == "GET" && exchange.target.ends_with("uploads="))
      co_return co_await exchange.answer(200, open_uploads);
    if (exchange.target.find("?uploads=") != std::string::npos ||
        exchange.target.find("uploadId=") != std::string::npos)
      co_return co_await answer_upload(exchange);
    if (const auto source = header(exchange, "x-amz-copy-source: ");
        !source.empty() && !objects.contains(source))
      co_return co_await exchange.answer(404, "<Error><Code>NoSuchKey</Code></Error>");
    const bool is_there = exchange.method == "PUT" || objects.contains(exchange.target);
    std::string text;
    if (exchange.method == "PUT" && !may_write(exchange))
      co_return co_await exchange.answer(412, "<Error><Code>PreconditionFailed</Code></Error>");
    if (exchange.method == "PUT") objects[exchange.target] = content_of(exchange);
    if (exchange.method == "DELETE") objects.erase(exchange.target);
    if (exchange.method == "GET")
      text = is_there ? objects[exchange.target] : "<Error><Code>NoSuchKey</Code></Error>";
    if (loses_answer && exchange.method == "PUT") {
      loses_answer = false;
      co_return exchange.cut();
    }
    auto tag = objects.contains(exchange.target) ? "ETag: " + tag_of(exchange.target) + "\r\n"
                                                 : std::string();
    if (const auto sum = checksums.find(exchange.target);
        sum != checksums.end() && header(exchange, "x-amz-checksum-mode: ") == "ENABLED")
      tag += "x-amz-checksum-crc64nvme: " + sum->second + "\r\n";
    if (const auto range = header(exchange, "range: bytes="); is_there && !range.empty())
      co_return co_await answer_part(exchange, text, range);
    if (exchange.method == "HEAD" && is_there)
      co_return co_await exchange.answer_head(objects[exchange.target].size(), tag);
    co_await exchange.answer(is_there ? 200 : 404, std::move(text), tag);
  }
  /// Returns what follows `begin` in a header's line; empty if no line begins so.
  /// @param begin such as `range: bytes=`
  static std::string header(const HttpExchange& exchange, const std::string& begin) {
    const auto found = exchange.headers.find("\r\n" + begin);
    if (found == std::string::npos) return {};
    const auto value = found + 2 + begin.size();
    return exchange.headers.substr(value, exchange.headers.find("\r\n", value) - value);
  }
  /// Serves an upload in parts, one upload at a time.
  async::Task<> answer_upload(HttpExchange& exchange) {
    const auto number = exchange.target.find("partNumber=");
    const auto source = header(exchange, "x-amz-copy-source: ");
    if (!source.empty() && !objects.contains(source))
      co_return co_await exchange.answer(404, "<Error><Code>NoSuchKey</Code></Error>");
    if (exchange.method == "PUT")
      parts[std::stoi(exchange.target.substr(number + std::string_view("partNumber=").size()))] =
          part_of(exchange, source);
    if (!source.empty()) co_return co_await exchange.answer(200, "<ETag>&quot;part&quot;</ETag>");
    if (exchange.method == "POST" && exchange.target.ends_with("?uploads=")) {
      parts.clear();
    } else if (exchange.method == "POST") {
      auto& object = objects[exchange.target.substr(0, exchange.target.find('?'))];
      object.clear();
      for (const auto& [each, text] : parts) object += text;
    }
    co_await exchange.answer(200, "<UploadId>1</UploadId>", "ETag: \"part\"\r\n");
  }
  /// Returns the content of a part. @param source the object from which it is copied; may be empty
  std::string part_of(const HttpExchange& exchange, const std::string& source) const {
    if (source.empty()) return exchange.body;
    const auto range = header(exchange, "x-amz-copy-source-range: bytes=");
    const auto begin = std::stoul(range), end = std::stoul(range.substr(range.find('-') + 1)) + 1;
    return objects.at(source).substr(begin, end - begin);
  }
  /// Returns the content that the request gives to an object: its body, or that of another object.
  std::string content_of(const HttpExchange& exchange) const {
    const auto source = header(exchange, "x-amz-copy-source: ");
    return source.empty() ? exchange.body : objects.at(source);
  }
  /// Answers with a range of the text. @param range `FIRST-LAST` or `FIRST-`
  static async::Task<> answer_part(HttpExchange& exchange, std::string text, std::string range) {
    const auto dash = range.find('-');
    const auto begin = std::stoul(range);
    if (begin >= text.size()) co_return co_await exchange.answer(416, "");
    const auto size =
        dash + 1 < range.size() ? std::stoul(range.substr(dash + 1)) + 1 - begin : text.npos;
    auto part = text.substr(begin, size);
    const auto end = std::to_string(begin + part.size() - 1);
    co_await exchange.answer(206, std::move(part),
                             "Content-Range: bytes " + std::to_string(begin) + "-" + end + "/" +
                                 std::to_string(text.size()) + "\r\n");
  }
  std::string tag_of(const std::string& object) const {
    if (const auto given = tags.find(object); given != tags.end()) return given->second;
    return '"' + core::sha256(objects.at(object)).hex().substr(0, 16) + '"';
  }
  /// Returns true if the condition of a conditional write holds.
  bool may_write(const HttpExchange& exchange) const {
    const bool is_there = objects.contains(exchange.target);
    if (exchange.headers.find("if-none-match: *") != std::string::npos) return !is_there;
    if (exchange.headers.find("if-match: ") == std::string::npos) return true;
    return is_there &&
           exchange.headers.find("if-match: " + tag_of(exchange.target)) != std::string::npos;
  }
  /// Returns the response to a request for a list of folders, or of objects.
  std::string list_of(const std::string& target) const {
    const auto begin = target.find("prefix=") + 7;
    auto prefix = target.substr(begin, target.find('&', begin) - begin);
    for (auto at = prefix.find("%2F"); at != prefix.npos; at = prefix.find("%2F"))
      prefix.replace(at, 3, "/");
    if (target.find("delimiter=") != std::string::npos) return folders_in("/team/" + prefix);
    std::string text = "<ListBucketResult>";
    for (const auto& [object, content] : objects)
      if (object.starts_with("/team/" + prefix))
        text += "<Contents><Key>" + object.substr(bucket_path.size()) + "</Key></Contents>";
    return text + "</ListBucketResult>";
  }
  /// Returns the response to a request for the folders below a path.
  std::string folders_in(const std::string& path) const {
    std::set<std::string> names;
    for (const auto& [object, content] : objects)
      if (object.starts_with(path))
        names.insert(object.substr(bucket_path.size(),
                                   object.find('/', path.size()) + 1 - bucket_path.size()));
    std::string text = "<ListBucketResult>";
    for (const auto& name : names)
      text += "<CommonPrefixes><Prefix>" + name + "</Prefix></CommonPrefixes>";
    return text + "</ListBucketResult>";
  }

  static constexpr std::string_view bucket_path = "/team/";
  asio::io_context& loop;
  bool refuses = false;                          ///< Refuses every request.
  bool refuses_checksums = false;                ///< Refuses requests that ask for checksums.
  bool loses_answer = false;                     ///< Writes the next object, and gives no answer.
  std::string open_uploads;                      ///< The list of open uploads, in XML.
  std::map<int, std::string> parts;              ///< Parts of the current upload.
  std::map<std::string, std::string> objects;    ///< Keyed by path: `/team/pipe/KEY`.
  std::map<std::string, std::string> tags;       ///< ETags by path; the others are made.
  std::map<std::string, std::string> checksums;  ///< CRC64NVME by path, of some objects.
  HttpServer server{loop, [this](HttpExchange& exchange) { return answer(exchange); }};
};

/// Is a base of BucketTest, so that the loop is constructed before the server.
class LoopOfTest {
 protected:
  asio::io_context loop;
};
class BucketTest : public testing::Test, protected LoopOfTest, protected BucketServer {
 protected:
  BucketTest() : BucketServer(LoopOfTest::loop) {}
  using LoopOfTest::loop;
};

}  // namespace pipeline::test
