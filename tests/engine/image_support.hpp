/// @file
/// A fixture for tests that build images on a real engine and remove them at their end.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "docker/image_builder.hpp"
#include "support/event_recorder.hpp"
#include "support/podman.hpp"

namespace pipeline::docker {

struct BuildRecorder : test::EventRecorder {
  /// Returns the events of builds; those of pulls are left out.
  std::vector<event::BuildStarted> builds() const {
    auto found = of<event::BuildStarted>();
    std::erase_if(found, [](const auto& started) { return started.reason.starts_with("pull:"); });
    return found;
  }
  /// Returns the texts of all progress and notices, one a line.
  std::string text() const {
    std::string all;
    for (auto& event : events) {
      if (auto* progress = std::get_if<event::BuildProgress>(&event)) all += progress->text + "\n";
      if (auto* notice = std::get_if<event::Notice>(&event)) all += notice->text + "\n";
    }
    return all;
  }
};

/// Each test has a repository name of its own, whose images are removed at its end. Images with
/// variables have content of their own, too: an engine keeps equal images once, and when it removes
/// the last name of one, it also removes a name that another test gives it at this moment.
class ImageTest : public testing::Test {
 protected:
  ImageTest()
      : folder(std::filesystem::temp_directory_path()),
        repository("pipe-test-" + std::to_string(std::random_device{}())) {
    options.root = folder.path();
  }

  void TearDown() override {
    auto images = wait(engine->call("GET", "/images/json?all=0"));
    for (auto& image : images) {
      if (!image["RepoTags"].is_array()) continue;
      for (auto& tag : image["RepoTags"])
        if (tag.get<std::string>().find(repository + ":") != std::string::npos) try {
            wait(engine->remove_image(tag.get<std::string>()));
          } catch (const core::EnvironmentError&) {
          }
    }
  }

  /// Runs the loop until the coroutine has finished; returns its result or throws its exception.
  template <class Result>
  Result wait(async::Task<Result> task) {
    std::optional<Result> result;
    std::exception_ptr error;
    asio::co_spawn(
        loop,
        [](async::Task<Result> inner, std::optional<Result>& out) -> async::Task<> {
          out = co_await std::move(inner);
        }(std::move(task), result),
        [&](std::exception_ptr failed) { error = failed; });
    loop.restart();
    loop.run();
    if (error) std::rethrow_exception(error);
    return std::move(*result);
  }
  void wait(async::Task<> task) {
    std::exception_ptr error;
    asio::co_spawn(loop, std::move(task), [&](std::exception_ptr failed) { error = failed; });
    loop.restart();
    loop.run();
    if (error) std::rethrow_exception(error);
  }

  /// Returns a step with these settings, and with a parent image and the test's repository if they
  /// have none.
  StepSpec step(const std::string& name, DockerSettings docker) {
    StepSpec spec;
    spec.name = name;
    spec.settings->docker = std::move(docker);
    if (!spec.settings->docker.parent_image && !spec.settings->docker.dockerfile)
      spec.settings->docker.parent_image = "python:3.11-slim-bookworm";
    if (auto& variables = spec.settings->docker.environment; !variables.empty())
      variables.emplace("PIPE_TEST", repository);
    if (!spec.settings->docker.target_repository)
      spec.settings->docker.target_repository = repository;
    return spec;
  }

  /// Builds with the builder of a separate run. A failed build is reported with its whole output.
  ImageStatus ensure(const StepSpec& spec) {
    try {
      return build(spec);
    } catch (const core::BuildError& error) {
      throw std::runtime_error(whole(error) + events.text());
    }
  }
  /// Builds with the builder of a separate run, and throws what the builder throws.
  ImageStatus build(const StepSpec& spec) {
    ImageBuilder builder(loop, *engine, options);
    return wait(builder.ensure(spec, events, cancel));
  }
  /// Returns an error with its details and advice.
  static std::string whole(const core::BuildError& error) {
    std::string text = std::string(error.what()) + "\n";
    for (auto& line : error.details()) text += "| " + line + "\n";
    for (auto& line : error.advice()) text += "= " + line + "\n";
    return text;
  }
  ImageStatus status(const StepSpec& spec) {
    ImageBuilder builder(loop, *engine, options);
    return wait(builder.status(spec));
  }

  /// Returns the output of a command in the image.
  std::string run(const std::string& image, const std::string& command) {
    auto id = wait(engine->create_container("", {{"Image", image},
                                                 {"Entrypoint", {"/bin/sh", "-c", command}},
                                                 {"HostConfig", {{"NetworkMode", "none"}}}}));
    std::string output;
    try {
      wait(engine->start_container(id));
      // An engine of 20.10 may leave out a last line without an end while the container runs.
      wait(engine->wait_container(id));
      wait(engine->follow_logs(id, [&](bool, std::string_view bytes) { output += bytes; }));
    } catch (const core::EnvironmentError& error) {
      output = error.what();
    }
    wait(engine->remove_container(id));
    return output;
  }

  /// Returns the error of a build with its details and advice; `built` if the build succeeds.
  std::string failure_of(const StepSpec& spec) {
    try {
      build(spec);
    } catch (const core::BuildError& error) {
      return whole(error);
    }
    return "built";
  }

  core::TemporaryFolder folder;
  std::string repository;
  asio::io_context loop;
  std::unique_ptr<EngineApi> engine = std::make_unique<EngineApi>(loop, find_endpoint());
  BuilderOptions options;
  BuildRecorder events;
  core::CancelSource cancel;
};

}  // namespace pipeline::docker
