/// @file
/// A server with a bucket `team` that stores uploaded objects, and keys for it in this process's
/// environment.
#pragma once

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "core/digest.hpp"
#include "settings/artifact_store.hpp"
#include "support/http_server.hpp"

namespace pipeline::test {

class BucketTest : public testing::Test {
 protected:
  BucketTest() {
    setenv("AWS_ACCESS_KEY_ID", "A", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "B", 1);
  }
  ~BucketTest() override {
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
  }
  /// Returns `s3://team/pipe`.
  settings::ArtifactStoreSettings settings() const {
    settings::ArtifactStoreSettings settings;
    settings::read_bucket("s3://team/pipe", settings);
    settings.endpoint = server.url();
    settings.region = "lab";
    return settings;
  }
  async::Task<> answer(HttpExchange& exchange) {
    if (refuses)
      co_return co_await exchange.answer(403, "<Error><Code>AccessDenied</Code></Error>");
    if (exchange.target.find("list-type=2") != std::string::npos) {
      auto list = list_of(exchange.target);
      co_return co_await exchange.answer(200, std::move(list));
    }
    const bool is_there = exchange.method == "PUT" || objects.contains(exchange.target);
    std::string text;
    if (exchange.method == "PUT" && !may_write(exchange))
      co_return co_await exchange.answer(412, "<Error><Code>PreconditionFailed</Code></Error>");
    if (exchange.method == "PUT") objects[exchange.target] = exchange.body;
    if (exchange.method == "DELETE") objects.erase(exchange.target);
    if (exchange.method == "GET")
      text = is_there ? objects[exchange.target] : "<Error><Code>NoSuchKey</Code></Error>";
    if (loses_answer && exchange.method == "PUT") {
      loses_answer = false;
      co_return exchange.cut();
    }
    const auto tag = objects.contains(exchange.target) ? "ETag: " + tag_of(exchange.target) + "\r\n"
                                                       : std::string();
    co_await exchange.answer(is_there ? 200 : 404, std::move(text), tag);
  }
  std::string tag_of(const std::string& object) const {
    return '"' + core::sha256(objects.at(object)).hex().substr(0, 16) + '"';
  }
  /// Whether the condition of a conditional write holds.
  bool may_write(const HttpExchange& exchange) const {
    const bool is_there = objects.contains(exchange.target);
    if (exchange.headers.find("if-none-match: *") != std::string::npos) return !is_there;
    if (exchange.headers.find("if-match: ") == std::string::npos) return true;
    return is_there &&
           exchange.headers.find("if-match: " + tag_of(exchange.target)) != std::string::npos;
  }
  /// The answer to a request for a list of folders, or of objects.
  std::string list_of(const std::string& target) const {
    if (target.find("delimiter=") != std::string::npos) return folders_in("/team/pipe/drivers/");
    const auto begin = target.find("prefix=") + 7;
    auto prefix = target.substr(begin, target.find('&', begin) - begin);
    for (auto at = prefix.find("%2F"); at != prefix.npos; at = prefix.find("%2F"))
      prefix.replace(at, 3, "/");
    std::string text = "<ListBucketResult>";
    for (const auto& [object, content] : objects)
      if (object.starts_with("/team/" + prefix))
        text += "<Contents><Key>" + object.substr(6) + "</Key></Contents>";
    return text + "</ListBucketResult>";
  }
  /// The answer to a request for the folders below a path.
  std::string folders_in(const std::string& path) const {
    std::set<std::string> names;
    for (const auto& [object, content] : objects)
      if (object.starts_with(path))
        names.insert(object.substr(6, object.find('/', path.size()) + 1 - 6));
    std::string text = "<ListBucketResult>";
    for (const auto& name : names)
      text += "<CommonPrefixes><Prefix>" + name + "</Prefix></CommonPrefixes>";
    return text + "</ListBucketResult>";
  }

  asio::io_context loop;
  bool refuses = false;                        ///< Refuses every request.
  bool loses_answer = false;                   ///< Writes the next object, and gives no answer.
  std::map<std::string, std::string> objects;  ///< Keyed by path: `/team/pipe/KEY`.
  HttpServer server{loop, [this](HttpExchange& exchange) { return answer(exchange); }};
};

}  // namespace pipeline::test
