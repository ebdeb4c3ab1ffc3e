#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "orchestrators/local/local_orchestrator.hpp"
#include "orchestrators/processes/install_advice.hpp"
#include "support/attempt_builder.hpp"
#include "support/event_recorder.hpp"
#include "support/run_task.hpp"

namespace pipeline::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

/// A cache of its own, and packages from the index that this machine is configured for.
class VirtualEnvironment : public testing::Test {
 protected:
  VirtualEnvironment() { setenv("PIPE_CACHE_DIR", (root.path() / "cache").c_str(), 1); }
  ~VirtualEnvironment() override { unsetenv("PIPE_CACHE_DIR"); }

  static StepSpec step(StringList requirements, const std::string& name = "step") {
    StepSpec spec;
    spec.name = name;
    spec.command = program({"python", "-c", "import six; print(six.__version__)"});
    spec.settings->docker.requirements = std::move(requirements);
    spec.settings->docker.python_package_installer = PackageInstaller::pip;
    return spec;
  }
  orchestrators::Environment prepare(const StepSpec& spec) {
    return run_task(loop, orchestrator->prepare(spec, events, cancel));
  }
  orchestrators::Environment environment(const StepSpec& spec) {
    return run_task(loop, orchestrator->environment(spec));
  }

  asio::io_context loop;
  core::TemporaryFolder root;
  EventRecorder events;
  core::CancelSource cancel;
  std::unique_ptr<orchestrators::Orchestrator> orchestrator = [this] {
    setenv("PIPE_CACHE_DIR", (root.path() / "cache").c_str(), 1);
    return orchestrators::make_local_orchestrator(loop, {.root = root.path()});
  }();
};

TEST_F(VirtualEnvironment, unavailable_requirement_fails_with_the_installers_output_and_advice) {
  auto spec = step({"six==0.0.99"});
  try {
    prepare(spec);
    FAIL() << "no error";
  } catch (const core::BuildError& error) {
    EXPECT_THAT(error.what(), HasSubstr("six==0.0.99"));
    EXPECT_THAT(error.details(), Contains(HasSubstr("No matching distribution")));
    EXPECT_THAT(error.advice(), Contains(HasSubstr("check the name and version")));
  }
  auto finished = events.of<event::BuildFinished>();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_TRUE(finished[0].failure);
  EXPECT_FALSE(environment(spec).ready);

  // The same requirements of another step are not tried again in this run.
  EXPECT_THROW(prepare(step({"six==0.0.99"}, "other")), core::BuildError);
  EXPECT_EQ(events.of<event::BuildStarted>().size(), 1u);
}

TEST_F(VirtualEnvironment, packages_differ_by_the_installed_versions) {
  const auto loose = step({"six<1.17"}), strict = step({"six==1.15.0"});
  const auto made = prepare(loose);
  EXPECT_TRUE(made.ready && made.resolves);
  EXPECT_FALSE(prepare(strict).resolves);
  const auto packages = [&](const StepSpec& spec) {
    return run_task(loop, orchestrator->packages(spec));
  };
  EXPECT_NE(packages(loose), packages(strict));
  EXPECT_EQ(packages(loose), packages(step({"six<1.17"}, "other")));
  EXPECT_EQ(prepare(step({"six>=1.16,<1.17"})).resolves, true);
  EXPECT_EQ(packages(loose), packages(step({"six>=1.16,<1.17"})));
}

TEST_F(VirtualEnvironment, stopping_leaves_nothing_half_made) {
  auto spec = step({"six==1.16.0"});
  events.events.clear();
  core::CancelSource stop;
  struct StopAtStart : EventSink {
    explicit StopAtStart(core::CancelSource& of_run) : source(of_run) {}
    void emit(const Event& event) override {
      if (std::holds_alternative<event::BuildStarted>(event))
        source.stop(core::StopLevel::graceful);
    }
    core::CancelSource& source;
  } sink(stop);
  EXPECT_THROW(run_task(loop, orchestrator->prepare(spec, sink, stop)), core::EnvironmentError);
  EXPECT_FALSE(environment(spec).ready);
  for (auto& entry : fs::directory_iterator(root.path() / "cache/environments"))
    EXPECT_EQ(entry.path().extension(), ".lock") << entry.path();
}

TEST_F(VirtualEnvironment, is_made_once_for_equal_requirements_and_used) {
  AttemptBuilder attempt(program({"true"}));
  attempt.step = step({"six==1.16.0"});
  auto other = step({"six==1.16.0"}, "other");
  auto before = environment(attempt.step);
  EXPECT_FALSE(before.ready);
  EXPECT_THAT(before.reason, HasSubstr("six==1.16.0"));
  EXPECT_TRUE(events.events.empty());

  // Both at once.
  int made = 0;
  for (auto* spec : {&attempt.step, &other})
    asio::co_spawn(loop, orchestrator->prepare(*spec, events, cancel),
                   [&](std::exception_ptr error, orchestrators::Environment environment) {
                     EXPECT_FALSE(error);
                     EXPECT_TRUE(environment.ready);
                     ++made;
                   });
  loop.restart();
  while (made < 2 && loop.run_one() > 0) {
  }
  EXPECT_EQ(events.of<event::BuildStarted>().size(), 1u);
  ASSERT_EQ(events.of<event::BuildFinished>().size(), 1u);
  EXPECT_FALSE(events.of<event::BuildFinished>()[0].failure);
  EXPECT_FALSE(events.of<event::BuildProgress>().empty());
  EXPECT_EQ(environment(attempt.step).id, before.id);
  EXPECT_TRUE(run_task(loop, orchestrator->matches(environment(attempt.step).fingerprint)));

  auto result = run_task(loop, orchestrator->run(attempt.attempt()));
  EXPECT_FALSE(result.failure) << attempt.log.err;
  EXPECT_EQ(attempt.log.out, "1.16.0\n");
  EXPECT_THAT(result.image, HasSubstr("virtual environment"));

  // Another run finds it.
  auto later = orchestrators::make_local_orchestrator(loop, {.root = root.path()});
  EXPECT_TRUE(run_task(loop, later->environment(other)).ready);

  // A removed environment is made again.
  fs::remove_all(root.path() / "cache/environments");
  EXPECT_FALSE(environment(other).ready);
}

TEST_F(VirtualEnvironment, two_programs_at_once_make_it_once) {
  auto spec = step({"six==1.16.0"});
  auto other = orchestrators::make_local_orchestrator(loop, {.root = root.path()});
  int made = 0;
  for (auto* one : {orchestrator.get(), other.get()})
    asio::co_spawn(loop, one->prepare(spec, events, cancel),
                   [&](std::exception_ptr error, orchestrators::Environment environment) {
                     EXPECT_FALSE(error);
                     EXPECT_TRUE(environment.ready);
                     ++made;
                   });
  loop.restart();
  while (made < 2 && loop.run_one() > 0) {
  }
  EXPECT_EQ(events.of<event::BuildStarted>().size(), 1u);
  EXPECT_THAT(events.of<event::Notice>()[0].text, HasSubstr("waiting"));
}

TEST_F(VirtualEnvironment, is_made_with_uv_from_the_index_where_uv_is_not_installed) {
  auto spec = step({"six==1.16.0"});
  spec.settings->docker.python_package_installer = PackageInstaller::uv;
  EXPECT_TRUE(prepare(spec).ready);
  EXPECT_EQ(events.of<event::BuildStarted>().size(), 1u);
}

TEST_F(VirtualEnvironment, project_is_installed_from_a_copy) {
  write(root.path() / "pyproject.toml",
        "[project]\nname = 'mine'\nversion = '1'\ndependencies = ['six==1.16.0']\n");
  write(root.path() / "code/own.py", "value = 5\n");
  AttemptBuilder attempt(
      program({"python", "-c", "import own, six; print(own.value, six.__version__)"}));
  auto& docker = attempt.step.settings->docker;
  docker.python_package_installer = PackageInstaller::pip;
  docker.pyproject_path = "pyproject.toml";
  docker.local_project_install_command =
      "cp code/own.py \"$(python -c 'import site; print(site.getsitepackages()[0])')\"; touch "
      "left-here";
  prepare(attempt.step);
  auto result = run_task(loop, orchestrator->run(attempt.attempt()));
  EXPECT_FALSE(result.failure) << attempt.log.err;
  EXPECT_EQ(attempt.log.out, "5 1.16.0\n");
  EXPECT_FALSE(fs::exists(root.path() / "left-here"));

  auto before = environment(attempt.step).id;
  write(root.path() / "code/own.py", "value = 6\n");
  auto later = orchestrators::make_local_orchestrator(loop, {.root = root.path()});
  EXPECT_NE(run_task(loop, later->environment(attempt.step)).id, before);
}

TEST_F(VirtualEnvironment, digest_depends_on_all_that_determines_the_packages) {
  auto base = environment(step({"six==1.16.0"})).id;
  EXPECT_EQ(environment(step({"six==1.16.0", "six==1.16.0"})).id, base);
  EXPECT_NE(environment(step({"six==1.15.0"})).id, base);
  auto options = step({"six==1.16.0"});
  options.settings->docker.python_package_installer_args = {{"no-deps", true}};
  EXPECT_NE(environment(options).id, base);
  auto variables = step({"six==1.16.0"});
  variables.settings->docker.environment = {{"CFLAGS", "-O3"}};
  EXPECT_NE(environment(variables).id, base);
  auto user = step({"six==1.16.0"}, "another");
  user.settings->docker.labels = {{"a", "b"}};
  EXPECT_EQ(environment(user).id, base);
}

TEST(install_advice, fits_the_installers_output) {
  orchestrators::processes::FoundProgram python;
  python.version = "3.12";
  auto advice = [&](const std::string& output) {
    return orchestrators::processes::advice_for_failed_install(output, python, "/project");
  };
  EXPECT_THAT(advice("ERROR: No matching distribution found for x"),
              Contains(HasSubstr("Python 3.12")));
  EXPECT_THAT(advice("The virtual environment was not created successfully because ensurepip is "
                     "not available."),
              Contains(HasSubstr("python3-venv")));
  EXPECT_THAT(advice("SSL: CERTIFICATE_VERIFY_FAILED"), Contains(HasSubstr("SSL_CERT_FILE")));
  EXPECT_THAT(advice("OSError: [Errno 28] No space left on device"),
              Contains(HasSubstr("disk is full")));
  EXPECT_THAT(advice("fatal error: Python.h: No such file"), Contains(HasSubstr("python3-dev")));
  EXPECT_FALSE(advice("something else").empty());
}

}  // namespace
}  // namespace pipeline::test
