#include "oci/client.hpp"

#include <cstdlib>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base64.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::oci {
namespace {

using nlohmann::json;

std::string digest_of(const std::string& text) { return "sha256:" + core::sha256(text).hex(); }

/// A registry with one image for two platforms: it asks for a token, and its blobs are elsewhere.
class Registry : public testing::Test {
 protected:
  Registry() {
    core::write_file_atomically(folder_.path() / "config.json",
                                R"({"auths": {")" + host() + R"(": {"auth": ")" +
                                    core::encode_base64("me:secret") + R"("}}})");
    setenv("DOCKER_CONFIG", folder_.path().c_str(), 1);
    json config = json::object(), manifest = json::object(), index = json::object();
    config["os"] = "linux";
    config["architecture"] = "arm64";
    config["created"] = "2026-01-02T03:04:05Z";
    config["config"]["Env"] = json::array({"A=b"});
    config["rootfs"]["diff_ids"] = json::array({digest_of("unpacked")});
    add_blob(config.dump());
    add_blob(layer_);
    manifest["config"] = described(config.dump(), "application/vnd.oci.image.config.v1+json");
    manifest["layers"] =
        json::array({described(layer_, "application/vnd.oci.image.layer.v1.tar+gzip")});
    manifest_ = manifest.dump();
    auto its = described(manifest_, "application/vnd.oci.image.manifest.v1+json");
    its["platform"]["os"] = "linux";
    its["platform"]["architecture"] = "arm64";
    its["platform"]["variant"] = "v8";
    index["manifests"] = json::array({its});
    index_ = index.dump();
  }
  ~Registry() override { unsetenv("DOCKER_CONFIG"); }

  static json described(const std::string& text, const std::string& type) {
    json blob = json::object();
    blob["mediaType"] = type;
    blob["digest"] = digest_of(text);
    blob["size"] = text.size();
    return blob;
  }
  void add_blob(const std::string& text) { blobs_[digest_of(text)] = text; }
  std::string host() const { return own_.url().substr(std::string("http://").size()); }
  std::string reference() const { return host() + "/team/x:1"; }

  async::Task<> answer(test::HttpExchange& exchange) {
    const std::string path = exchange.target, begin = "/v2/team/x/";
    const auto has = [&](const std::string& header) {
      return exchange.headers.find(header) != std::string::npos;
    };
    if (path.starts_with("/token?")) {
      token_asked_ = path + (has("Basic " + core::encode_base64("me:secret")) ? " as me" : "");
      co_return co_await exchange.answer(200, R"({"token": "good"})");
    }
    if (!has("Authorization: Bearer good"))
      co_return co_await exchange.answer(
          401, "{}",
          "WWW-Authenticate: Bearer realm=\"" + own_.url() +
              "/token\",service=\"the registry\",scope=\"repository:team/x:pull\"\r\n");
    if (busy_ > 0) {
      --busy_;
      co_return co_await exchange.answer(503, "{}", "Retry-After: 0\r\n");
    }
    if (path == begin + "manifests/1") co_return co_await exchange.answer(200, index_);
    if (path == begin + "manifests/" + digest_of(manifest_))
      co_return co_await exchange.answer(200, manifest_ + appended_);
    if (path.starts_with(begin + "blobs/"))
      co_return co_await exchange.answer(
          307, "",
          "Location: " + other_.url() + "/" + path.substr((begin + "blobs/").size()) + "\r\n");
    co_await exchange.answer(404, R"({"errors": [{"code": "MANIFEST_UNKNOWN"}]})");
  }
  async::Task<> answer_blob(test::HttpExchange& exchange) {
    logins_elsewhere_ += exchange.headers.find("Authorization") != std::string::npos;
    const auto found = blobs_.find(exchange.target.substr(1));
    if (found == blobs_.end()) co_return co_await exchange.answer(404, "{}");
    co_await exchange.answer(200, found->second);
  }

  Image find(const std::string& name, const std::string& platform = "linux/arm64") {
    return test::run_task(loop_, client_.find(name, platform, cancel_));
  }
  std::string failure(const std::string& name, const std::string& platform = "linux/arm64") {
    try {
      find(name, platform);
    } catch (const core::EnvironmentError& error) {
      return error.what();
    }
    return "it was found";
  }

  const core::TemporaryFolder folder_;
  const std::string layer_ = "packed";
  std::map<std::string, std::string> blobs_;
  std::string index_, manifest_, appended_, token_asked_;
  int logins_elsewhere_ = 0, busy_ = 0;
  asio::io_context loop_;
  test::HttpServer own_{loop_, [this](auto& exchange) { return answer(exchange); }};
  test::HttpServer other_{loop_, [this](auto& exchange) { return answer_blob(exchange); }};
  core::CancelSource cancel_;
  Client client_{loop_, {std::chrono::milliseconds(1), std::chrono::milliseconds(2), 3}};
};

TEST_F(Registry, answers_are_compared_with_their_digests) {
  appended_ = " ";
  EXPECT_THAT(failure(reference()), testing::HasSubstr("another content than that of sha256:"));
  appended_.clear();
  const auto image = find(reference());
  const auto file = folder_.path() / "layer";
  blobs_[digest_of(layer_)] = "pocked";
  const auto download = [&] {
    test::run_task(loop_, client_.download(reference(), image.layers[0], file, cancel_));
  };
  EXPECT_THROW(download(), core::EnvironmentError);
  blobs_[digest_of(layer_)] = layer_ + "!";
  EXPECT_THROW(download(), core::EnvironmentError);
  blobs_[digest_of(layer_)] = layer_;
  download();
  EXPECT_EQ(core::read_file(file), layer_);
}

TEST_F(Registry, refusals_say_what_is_missing) {
  EXPECT_THAT(failure(host() + "/team/x:2"), testing::HasSubstr("answered 404: MANIFEST_UNKNOWN"));
  EXPECT_THAT(failure(reference(), "linux/amd64"),
              testing::HasSubstr("it is not made for linux/amd64, only for linux/arm64/v8"));
  index_ = R"({"schemaVersion": 1, "fsLayers": []})";
  EXPECT_THAT(failure(reference()), testing::HasSubstr("of the outdated first schema"));
  index_ = "not JSON";
  EXPECT_THAT(failure(reference()), testing::HasSubstr("its manifest is not a JSON object"));
  busy_ = 100;
  EXPECT_THAT(failure(reference()), testing::HasSubstr("answered 503"));
}

TEST_F(Registry, image_is_described_as_by_an_engine_and_the_login_goes_nowhere_else) {
  busy_ = 2;
  const auto image = find(reference());
  EXPECT_EQ(token_asked_, "/token?service=the%20registry&scope=repository%3Ateam%2Fx%3Apull as me");
  EXPECT_EQ(logins_elsewhere_, 0);
  EXPECT_EQ(image.manifest, digest_of(manifest_));
  EXPECT_EQ(image.description.at("Architecture"), "arm64");
  EXPECT_EQ(image.description.at("Created"), "2026-01-02T03:04:05Z");
  EXPECT_EQ(image.description.at("Config").at("Env").at(0), "A=b");
  EXPECT_EQ(image.description.at("RootFS").at("Layers").at(0), digest_of("unpacked"));
  EXPECT_EQ(image.layers.at(0).digest, digest_of(layer_));
  EXPECT_EQ(packing_of(image.layers.at(0)), Packing::gzip);
}

TEST(Repositories, are_those_that_an_engine_uses) {
  const auto url = [](const char* reference) {
    const auto repository = repository_of(reference);
    return repository.url + " " + repository.tag;
  };
  EXPECT_EQ(url("debian"), "https://registry-1.docker.io/v2/library/debian/ latest");
  EXPECT_EQ(url("team/x:1"), "https://registry-1.docker.io/v2/team/x/ 1");
  EXPECT_EQ(url("docker.io/debian:12"), "https://registry-1.docker.io/v2/library/debian/ 12");
  EXPECT_EQ(url("ghcr.io/a/b:c"), "https://ghcr.io/v2/a/b/ c");
  EXPECT_EQ(url("host:5000/b:c@sha256:00"), "https://host:5000/v2/b/ sha256:00");
  EXPECT_EQ(url("localhost:5000/b"), "http://localhost:5000/v2/b/ latest");
  EXPECT_EQ(url("127.0.0.1:5000/b"), "http://127.0.0.1:5000/v2/b/ latest");
  EXPECT_EQ(url("127.evil.example/b"), "https://127.evil.example/v2/b/ latest");
}

TEST(Challenges, of_registries_are_parsed) {
  const auto found =
      read_challenge(R"(Bearer realm="https://a/t?x=1,2", service="s \"q\"",scope=pull)");
  ASSERT_TRUE(found && found->is_bearer);
  EXPECT_EQ(found->realm, "https://a/t?x=1,2");
  EXPECT_EQ(found->service, R"(s "q")");
  EXPECT_EQ(found->scope, "pull");
  EXPECT_FALSE(read_challenge("Negotiate"));
  EXPECT_FALSE(read_challenge(R"(basic realm="r")")->is_bearer);
  EXPECT_TRUE(read_challenge(R"(Bearer realm=")"));
}

TEST(Manifests, of_hostile_registries_are_refused) {
  const auto read = [](const char* text) { return read_manifest(json::parse(text)); };
  EXPECT_THROW(read("[]"), core::EnvironmentError);
  EXPECT_THROW(read(R"({"config": {}, "layers": []})"), core::EnvironmentError);
  EXPECT_FALSE(is_digest("sha256:../../../../etc/passwd"));
  EXPECT_FALSE(is_digest("sha512:" + std::string(64, 'a')));
  EXPECT_TRUE(is_digest("sha256:" + std::string(64, 'a')));
  Blob layer{"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", {}, 0};
  EXPECT_THROW(packing_of(layer), core::EnvironmentError);
  layer.media_type = "application/vnd.oci.image.layer.v1.tar+zstd";
  EXPECT_EQ(packing_of(layer), Packing::zstd);
}

}  // namespace
}  // namespace pipeline::oci
