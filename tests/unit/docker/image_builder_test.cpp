// Which steps share an image, without an engine: it only says which images it has.
#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "docker/image_builder.hpp"
#include "support/event_recorder.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"
#include "support/server_endpoint.hpp"

namespace pipeline::test {
namespace {

using docker::ImageBuilder;

class SharedImages : public testing::Test {
 protected:
  static async::Task<> answer(HttpExchange& call) {
    if (call.target == "/version") return call.answer(200, R"({"ApiVersion": "1.45"})");
    if (call.target.ends_with("/images/python:3.12-slim/json"))
      return call.answer(200, R"({"Id": "sha256:01"})");
    if (call.target.find("/images/json?") != std::string::npos) return call.answer(200, "[]");
    if (call.target == "/_ping") return call.answer(200, "OK");
    return call.answer(404, R"({"message": "No such image"})");
  }
  StepSpec step(const std::string& name) {
    StepSpec spec;
    spec.name = name;
    spec.settings->docker.parent_image = "python:3.12-slim";
    spec.settings->docker.local_project_install_command = "true";
    spec.code_root = folder_.path() / name;
    core::make_folders(spec.code_root);
    core::write_file_atomically(*spec.code_root / "tool.py", name);
    return spec;
  }

  core::TemporaryFolder folder_;
  asio::io_context loop_;
  HttpServer engine_{loop_, [](HttpExchange& call) { return answer(call); }};
};

/// An engine with BuildKit whose builds fail, and that says no more than this.
class CutBuilds : public testing::Test {
 protected:
  /// Returns how often the engine was asked to build.
  std::size_t builds_with(const std::string& error) {
    error_ = error;
    docker::EngineApi api(loop_, endpoint_of(engine_));
    docker::BuilderOptions options;
    options.root = folder_.path();
    ImageBuilder builder(loop_, api, options);
    StepSpec spec;
    spec.name = "a";
    spec.settings->docker.parent_image = "python:3.12-slim";
    spec.settings->docker.apt_packages = {"git"};
    EventRecorder events;
    core::CancelSource cancel;
    try {
      run_task(loop_, builder.ensure(spec, events, cancel));
    } catch (const core::BuildError& failed) {
      EXPECT_NE(std::string(failed.what()).find("exit code: 1"), std::string::npos)
          << failed.what();
    }
    return static_cast<std::size_t>(
        std::ranges::count_if(engine_.asked, [](const std::string& each) {
          return each.starts_with("POST ") && each.find("/build?") != std::string::npos;
        }));
  }
  async::Task<> answer(HttpExchange& call) {
    if (call.target == "/version")
      return call.answer(200, R"({"ApiVersion": "1.45", "Version": "28.3.0", "Os": "linux"})");
    if (call.target.ends_with("/images/python:3.12-slim/json"))
      return call.answer(200, R"({"Id": "sha256:01"})");
    if (call.target.find("/images/json?") != std::string::npos) return call.answer(200, "[]");
    if (call.target.ends_with("/_ping")) return call.answer(200, "OK");
    if (call.target.find("/build?") != std::string::npos)
      return call.answer(200, nlohmann::json{{"error", error_}}.dump() + "\n",
                         "Connection: close\r\n");  // The server does not read the whole context.
    if (call.target.ends_with("/info")) return call.answer(200, "{}");
    return call.answer(404, R"({"message": "No such image"})");
  }

  std::string error_;
  core::TemporaryFolder folder_;
  asio::io_context loop_;
  HttpServer engine_{loop_, [this](HttpExchange& call) { return answer(call); }};
};

TEST_F(CutBuilds, are_repeated_once_to_learn_why_they_failed) {
  EXPECT_EQ(builds_with("executor failed running [/bin/sh /apt/install.sh]: exit code: 1"), 2U);
}

TEST_F(CutBuilds, are_not_repeated_where_no_instruction_was_executed) {
  EXPECT_EQ(builds_with("failed to resolve x: exit code: 1"), 1U);
}

TEST_F(SharedImages, steps_of_two_included_files_have_images_with_their_own_projects) {
  docker::EngineApi api(loop_, endpoint_of(engine_));
  docker::BuilderOptions options;
  options.root = folder_.path();
  ImageBuilder builder(loop_, api, options);
  const auto one = step("a"), two = step("b");
  const auto first = run_task(loop_, builder.status(one));
  const auto second = run_task(loop_, builder.status(two));
  EXPECT_FALSE(first.digest.empty());
  EXPECT_NE(first.digest, second.digest);
}

}  // namespace
}  // namespace pipeline::test
