// A C++ program as a layer on images that lack its libraries, or have wrong ones. The program is
// this test program: in a container it runs the test that is disabled here.
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <netdb.h>
#include <pwd.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "docker/context.hpp"
#include "docker/engine_api.hpp"
#include "docker/engine_connection.hpp"
#include "model/running_program.hpp"
#include "net/url.hpp"
#include "orchestrators/docker/docker_orchestrator.hpp"
#include "support/attempt_builder.hpp"
#include "support/event_recorder.hpp"
#include "support/podman.hpp"
#include "support/run_task.hpp"

namespace pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::AttemptBuilder;
using test::run_task;
using testing::HasSubstr;

/// Returns `found`, or the error of looking up a host's address.
std::string looked_up(const char* host) {
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host, "80", nullptr, &found);
  if (found) ::freeaddrinfo(found);
  return error ? ::gai_strerror(error) : "found";
}

/// The command of the steps below, which writes what it sees in its container. It is disabled,
/// because it is not a test of its own.
TEST(Inside, DISABLED_tells_what_it_sees) {
  json seen;
  seen["libc"] = ::gnu_get_libc_version();
  seen["user"] = ::getuid();
  seen["name"] = ::getpwuid(::getuid()) ? ::getpwuid(::getuid())->pw_name : "";
  seen["localhost"] = looked_up("localhost");
  seen["driver"] = ::dlopen("libcuda.so.1", RTLD_NOW) ? "found" : ::dlerror();
  try {
    std::thread([] {}).join();
    throw std::runtime_error("thrown");
  } catch (const std::exception& error) {
    seen["caught"] = error.what();
  }
  seen["shell"] = fs::exists("/bin/sh");
  std::ofstream(std::getenv("PIPE_OUTPUT_SEEN")) << seen;
}

const std::shared_ptr<const Program>& this_program() {
  static const auto program = std::make_shared<const Program>(model::running_program());
  return program;
}

/// An attempt whose step executes Inside.DISABLED_tells_what_it_sees in a container.
struct ProgramAttempt : AttemptBuilder {
  ProgramAttempt(const std::string& parent, const std::string& repository)
      : AttemptBuilder(
            test::program({"--gtest_also_run_disabled_tests", "--gtest_filter=Inside.*"})) {
    step.program = ProgramStep{this_program(), "tells_what_it_sees", ""};
    step.settings->docker.parent_image = parent;
    step.settings->docker.target_repository = repository;
    step.settings->docker.network = "none";
    step.outputs = {{"seen", "seen.json"}};
    output("seen", "seen.json");
  }
};

class ProgramImage : public testing::Test {
 protected:
  ProgramImage() {
    orchestrators::OrchestratorOptions options;
    options.root = options.state = folder_.path();
    options.run_id = "test-" + folder_.path().filename().string();
    orchestrator_ = orchestrators::make_docker_orchestrator(loop_, options);
  }
  ~ProgramImage() override {
    for (const auto& name : images()) run_task(loop_, engine_.remove_image(name));
    for (const auto& name : own_) run_task(loop_, engine_.remove_image(name));
  }

  ProgramAttempt step(const std::string& parent) { return ProgramAttempt(parent, repository_); }
  /// Runs the attempt, and returns what the program has seen.
  json run(AttemptBuilder& builder) {
    environment_ = run_task(loop_, orchestrator_->prepare(builder.step, events_, builder.cancel));
    const auto attempt = builder.attempt();
    const auto result = run_task(loop_, orchestrator_->run(attempt));
    run_task(loop_, orchestrator_->settle());
    EXPECT_FALSE(result.failure) << result.failure->message << builder.log.out << builder.log.err;
    if (result.failure) return {};
    return json::parse(builder.written("seen.json"));
  }
  json inspect(const std::string& reference) {
    return run_task(loop_, engine_.inspect_image(reference)).value_or(json());
  }
  /// Returns the names of the images in the test's repository.
  std::vector<std::string> images() {
    std::vector<std::string> names;
    json filters;
    filters["reference"] = json::array({repository_});
    const auto found = run_task(
        loop_, engine_.call("GET", "/images/json?filters=" + net::url_encode(filters.dump())));
    for (const auto& image : found)
      for (const auto& tag : image["RepoTags"]) names.push_back(tag);
    return names;
  }
  /// Builds an image, and returns its name. @param lines lines of its Dockerfile after Debian 12
  std::string image(const std::string& name, const std::string& lines) {
    const auto reference = repository_ + "-" + name + ":test";
    std::vector<docker::ContextFile> files;
    const std::string dockerfile = "FROM debian:bookworm-slim\n" + lines;
    files.push_back({.path = "Dockerfile", .content = dockerfile, .bytes = dockerfile.size()});
    core::CancelSource cancel;
    const std::function<void(const json&)> ignored = [](const json&) {};
    run_task(loop_, engine_.build("version=2&t=" + net::url_encode(reference), "",
                                  file_tree::tar_stream(files), ignored, cancel));
    own_.push_back(reference);
    return reference;
  }

  asio::io_context loop_;
  core::TemporaryFolder folder_;
  docker::EngineApi engine_{loop_, docker::find_endpoint()};
  std::string repository_ = "pipe-program-test-" + std::to_string(::getpid());
  std::unique_ptr<orchestrators::Orchestrator> orchestrator_;
  test::EventRecorder events_;
  orchestrators::Environment environment_;
  std::vector<std::string> own_;
};

TEST_F(ProgramImage, runs_on_the_image_that_has_all_it_needs) {
  auto builder = step("debian:bookworm-slim");
  const auto seen = run(builder);
  EXPECT_EQ(seen["libc"], ::gnu_get_libc_version());
  EXPECT_EQ(seen["caught"], "thrown");
  EXPECT_EQ(seen["shell"], true);
}

TEST_F(ProgramImage, runs_on_an_empty_image_read_only_and_as_another_user) {
  auto builder = step("scratch");
  builder.step.settings->docker.user = "1234:1234";
  builder.step.settings->docker.run_args["read_only"] = true;
  const auto seen = run(builder);
  EXPECT_EQ(seen["libc"], ::gnu_get_libc_version());
  EXPECT_EQ(seen["user"], 1234);
  EXPECT_EQ(seen["name"], "user1234") << "the image has no passwd";
  EXPECT_EQ(seen["localhost"], "found") << "/etc/hosts is the engine's";
  EXPECT_EQ(seen["caught"], "thrown");
  EXPECT_EQ(seen["shell"], false);
}

TEST_F(ProgramImage, uses_none_of_the_libraries_of_its_parent) {
  const auto parent =
      image("wrong",
            "RUN for f in /lib/*/libstdc++.so.6 /lib/*/libgcc_s.so.1 /lib/*/libm.so.6 "
            "/lib/*/libc.so.6; do "
            "echo nonsense > $f.new; done; mv -f /lib/x86_64-linux-gnu/libc.so.6.new "
            "/lib/x86_64-linux-gnu/libc.so.6\n");
  auto builder = step(parent);
  const auto seen = run(builder);
  EXPECT_EQ(seen["libc"], ::gnu_get_libc_version());
  EXPECT_EQ(seen["localhost"], "found");
}

TEST_F(ProgramImage, finds_a_drivers_libraries_where_they_are_mounted) {
  // A stand-in for the driver: any library will do, under the driver's name.
  const auto& libraries = this_program()->libraries;
  const auto libm = std::ranges::find_if(libraries, [](const fs::path& path) {
    return path.filename().string().starts_with("libm.so");
  });
  ASSERT_NE(libm, libraries.end());
  fs::copy_file(*libm, folder_.path() / "libcuda.so.1");
  for (const auto& [parent, place] :
       {std::pair("debian:bookworm-slim", "/usr/lib/x86_64-linux-gnu"),
        std::pair("scratch", "/usr/local/nvidia/lib64"), std::pair("scratch", "/usr/lib64")}) {
    auto builder = step(parent);
    EXPECT_THAT(run(builder)["driver"], HasSubstr("cannot open shared object file")) << parent;
    auto with = step(parent);
    with.number = 2;
    with.step.settings->docker.volumes = {(folder_.path() / "libcuda.so.1").string() + ":" + place +
                                          "/libcuda.so.1:ro"};
    EXPECT_EQ(run(with)["driver"], "found") << parent << " " << place;
  }
  const auto parent = image("path", "ENV LD_LIBRARY_PATH=/opt/driver\n");
  auto builder = step(parent);
  builder.step.settings->docker.volumes = {(folder_.path() / "libcuda.so.1").string() +
                                           ":/opt/driver/libcuda.so.1:ro"};
  EXPECT_EQ(run(builder)["driver"], "found") << "the image's LD_LIBRARY_PATH";
}

TEST_F(ProgramImage, is_one_layer_on_the_environment_which_a_rebuilt_program_does_not_change) {
  auto first = step("debian:bookworm-slim");
  first.step.settings->docker.environment = {{"GREETING", "hello"}};
  run(first);
  const auto before = images();
  ASSERT_EQ(before.size(), 2u) << "the environment, and the program on top";

  // A rebuilt program: other bytes behind the same code.
  auto changed = std::make_shared<Program>(*this_program());
  changed->executable = folder_.path() / this_program()->executable.filename();
  fs::copy_file(this_program()->executable, changed->executable);
  std::ofstream(changed->executable, std::ios::app | std::ios::binary) << "another build";
  auto second = step("debian:bookworm-slim");
  second.step.settings->docker.environment = {{"GREETING", "hello"}};
  second.step.program->program = changed;
  second.number = 2;
  events_.events.clear();
  run(second);
  const auto built = events_.of<event::BuildStarted>();
  ASSERT_EQ(built.size(), 1u) << "the environment is not built again";
  EXPECT_THAT(built[0].image, HasSubstr(":program-"));
  EXPECT_EQ(images().size(), 3u);

  std::vector<std::vector<std::string>> layers;
  for (const auto& name : images())
    if (name.find(":program-") != name.npos)
      layers.push_back(inspect(name)["RootFS"]["Layers"].get<std::vector<std::string>>());
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_NE(layers[0].back(), layers[1].back());
  layers[0].pop_back();
  layers[1].pop_back();
  EXPECT_EQ(layers[0], layers[1]) << "one layer differs";
  const auto parent =
      inspect("debian:bookworm-slim")["RootFS"]["Layers"].get<std::vector<std::string>>();
  if (test::is_podman()) layers[0].resize(parent.size());  // Podman makes a layer of settings, too.
  EXPECT_EQ(layers[0], parent);

  events_.events.clear();
  auto third = step("debian:bookworm-slim");
  third.step.settings->docker.environment = {{"GREETING", "hello"}};
  third.number = 3;
  run(third);
  EXPECT_EQ(events_.of<event::BuildStarted>().size(), 0u) << "an equal program is there";
}

TEST_F(ProgramImage, id_of_the_environment_does_not_depend_on_the_program) {
  auto with = step("debian:bookworm-slim");
  run(with);
  auto without = step("debian:bookworm-slim");
  without.step.program.reset();
  EXPECT_EQ(environment_.id, run_task(loop_, orchestrator_->environment(without.step)).id);
}

TEST_F(ProgramImage, empty_image_is_refused_for_commands_and_packages) {
  auto command = step("scratch");
  command.step.program.reset();
  EXPECT_THROW(run_task(loop_, orchestrator_->environment(command.step)), core::InputError);
  auto packages = step("scratch");
  packages.step.settings->docker.apt_packages = {"curl"};
  EXPECT_THROW(run_task(loop_, orchestrator_->environment(packages.step)), core::InputError);
}

}  // namespace
}  // namespace pipeline
