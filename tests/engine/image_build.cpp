// Images of steps, built on a real engine: what is in them, what is not, and when nothing is built.
#include <algorithm>

#include <gmock/gmock.h>

#include "engine/image_support.hpp"
#include "orchestrators/containers/installed_packages.hpp"

namespace pipeline::docker {
namespace {

TEST_F(ImageTest, requirements_are_installed_with_uv_and_uv_is_not_in_the_image) {
  auto made = ensure(step("train", {.requirements = {"six==1.16.0"}}));
  EXPECT_EQ(run(made.image_id, "python -c 'import six; print(six.__version__)'"), "1.16.0\n")
      << events.text();
  EXPECT_EQ(
      run(made.image_id,
          "ls -d /pipe* /dev/pipe* /root/.cache /opt/project /tmp/* 2>/dev/null; command -v uv"),
      "");
}

TEST_F(ImageTest, requirements_are_installed_with_pip) {
  auto made = ensure(step("train", {.python_package_installer = PackageInstaller::pip,
                                    .requirements = {"six==1.16.0"}}));
  EXPECT_EQ(run(made.image_id, "python -c 'import six; print(six.__version__)'"), "1.16.0\n")
      << events.text();
}

TEST_F(ImageTest, installed_packages_are_listed_and_an_image_without_python_has_its_id_instead) {
  using orchestrators::containers::installed_packages;
  DockerSettings loose;
  loose.requirements = {"six<1.17"};
  const auto made = ensure(step("loose", loose));
  EXPECT_TRUE(made.resolves);
  const StringMap labels{{"pipe.run", repository}};
  const auto list = wait(installed_packages(*engine, made.image_id, labels));
  EXPECT_THAT(list, testing::HasSubstr("six 1.16.0"));
  EXPECT_THAT(list, testing::HasSubstr("pip "));
  EXPECT_FALSE(status(step("plain", {})).resolves);
  const auto other = status(step("other", {.parent_image = "debian:bookworm-slim"})).image_id;
  EXPECT_EQ(wait(installed_packages(*engine, other, labels)), other) << "the image has no Python";
}

TEST_F(ImageTest, debian_packages_are_installed_and_no_lists_are_left) {
  auto made =
      ensure(step("train", {.parent_image = "debian:bookworm-slim", .apt_packages = {"tini"}}));
  EXPECT_EQ(run(made.image_id,
                "tini --version | cut -c1-12; ls /var/lib/apt/lists /var/cache/apt/archives | grep "
                "-v -e lock -e partial -e ^/ -e '^$'"),
            "tini version\n")
      << events.text();
}

TEST_F(ImageTest, a_parent_that_gets_python_from_apt_takes_requirements) {
  auto made = ensure(step("train", {.parent_image = "debian:bookworm-slim",
                                    .requirements = {"six==1.16.0"},
                                    .apt_packages = {"python3"}}));
  EXPECT_EQ(run(made.image_id,
                "python3 -c 'import six; print(six.__version__)'; python3 -m pip --version 2>&1 | "
                "tail -1"),
            "1.16.0\n/usr/bin/python3: No module named pip\n")
      << events.text();
}

TEST_F(ImageTest, pip_installs_into_a_parent_without_pip) {
  auto made = ensure(step("train", {.parent_image = "debian:bookworm-slim",
                                    .python_package_installer = PackageInstaller::pip,
                                    .requirements = {"six==1.16.0"},
                                    .apt_packages = {"python3"}}));
  EXPECT_EQ(run(made.image_id, "python3 -c 'import six; print(six.__version__)'"), "1.16.0\n")
      << events.text();
}

TEST_F(ImageTest, a_user_that_the_parent_lacks_is_created) {
  auto made = ensure(step("train", {.parent_image = "debian:bookworm-slim", .user = "learner"}));
  EXPECT_EQ(run(made.image_id, "id -un; id -gn; echo $HOME; touch ~/x && echo writes"),
            "learner\nlearner\n/home/learner\nwrites\n")
      << events.text();
  auto numeric = ensure(step("train", {.parent_image = "debian:bookworm-slim", .user = "4321:99"}));
  EXPECT_EQ(run(numeric.image_id, "id -u; id -g; id -un"), "4321\n99\nuser4321\n");
  auto known = ensure(step("train", {.parent_image = "debian:bookworm-slim", .user = "nobody"}));
  EXPECT_EQ(run(known.image_id, "id -un; grep -c nobody: /etc/passwd"), "nobody\n1\n");
}

TEST_F(ImageTest, values_of_variables_arrive_as_they_are) {
  auto made = ensure(
      step("train",
           {.parent_image = "debian:bookworm-slim",
            .environment = {{"A", "$HOME ${PATH} \\n \\\" 'q' \"x\" # \xc3\xa9 \\"}, {"B", ""}}}));
  EXPECT_EQ(run(made.image_id, "printf '%s|%s' \"$A\" \"$B\""),
            "$HOME ${PATH} \\n \\\" 'q' \"x\" # \xc3\xa9 \\|");
}

TEST_F(ImageTest, unchanged_settings_cause_no_build_and_changed_ones_say_why) {
  auto first = step("train", {.parent_image = "debian:bookworm-slim", .environment = {{"A", "1"}}});
  EXPECT_EQ(status(first).image_id, "");
  auto made = ensure(first);
  ASSERT_EQ(events.builds().size(), 1u);
  auto again = ensure(first);
  EXPECT_EQ(events.builds().size(), 1u);
  EXPECT_EQ(again.image_id, made.image_id);
  EXPECT_EQ(status(first).reason, "");
  EXPECT_EQ(status(first).image_id, made.image_id);
  auto other = status(step(
      "train", {.parent_image = "debian:bookworm-slim", .environment = {{"A", "1"}, {"B", "2"}}}));
  EXPECT_EQ(other.image_id, "");
  EXPECT_NE(other.reason.find("environment changed (added B=2)"), std::string::npos)
      << other.reason;
}

TEST_F(ImageTest, a_step_that_adds_nothing_runs_its_parent) {
  auto made = ensure(step("train", {.parent_image = "debian:bookworm-slim"}));
  EXPECT_EQ(made.reference, "debian:bookworm-slim");
  EXPECT_FALSE(made.image_id.empty());
  auto skipped = ensure(
      step("train",
           {.parent_image = "debian:bookworm-slim", .skip_build = true, .requirements = {"six"}}));
  EXPECT_EQ(skipped.image_id, made.image_id);
  EXPECT_TRUE(events.builds().empty());
}

TEST_F(ImageTest, equal_environments_build_once_and_different_ones_side_by_side) {
  ImageBuilder builder(loop, *engine, options);
  std::vector<StepSpec> steps;
  for (auto* value : {"1", "1", "2", "1"})
    steps.push_back(step("s" + std::to_string(steps.size()),
                         {.parent_image = "debian:bookworm-slim", .environment = {{"A", value}}}));
  steps[3].settings->docker.runtime_environment = {{"ONLY", "at run"}};
  std::vector<ImageStatus> made(steps.size());
  int failures = 0;
  for (std::size_t i = 0; i < steps.size(); ++i)
    asio::co_spawn(
        loop,
        [](ImageBuilder& b, const StepSpec& s, ImageStatus& out, EventSink& e,
           core::CancelSource& c) -> async::Task<> {
          out = co_await b.ensure(s, e, c);
        }(builder, steps[i], made[i], events, cancel),
        [&](std::exception_ptr error) { failures += error != nullptr; });
  loop.restart();
  loop.run();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(events.builds().size(), 2u);
  EXPECT_EQ(made[0].image_id, made[1].image_id);
  EXPECT_EQ(made[0].image_id, made[3].image_id);
  EXPECT_NE(made[0].image_id, made[2].image_id);
  // Both builds had started before the first of them ended.
  const auto is_end = [](const Event& each) {
    return std::holds_alternative<event::BuildFinished>(each);
  };
  const auto first_end = std::ranges::find_if(events.events, is_end);
  EXPECT_EQ(std::count_if(events.events.begin(), first_end,
                          [](const Event& each) {
                            return std::holds_alternative<event::BuildStarted>(each);
                          }),
            2);
}

TEST_F(ImageTest, prevent_build_reuse_builds_again_once_in_each_run) {
  auto spec = step("train", {.parent_image = "debian:bookworm-slim",
                             .prevent_build_reuse = true,
                             .environment = {{"A", "1"}}});
  options.run_id = "run-1";
  auto first = ensure(spec);
  EXPECT_EQ(ensure(spec).image_id, first.image_id);
  options.run_id = "run-2";
  EXPECT_NE(ensure(spec).image_id, first.image_id);
  EXPECT_EQ(events.builds().size(), 2u);
}

TEST_F(ImageTest, image_tag_names_the_newest_image) {
  auto one = ensure(step("a", {.parent_image = "debian:bookworm-slim",
                               .image_tag = "latest",
                               .environment = {{"A", "1"}}}));
  auto two = ensure(step("a", {.parent_image = "debian:bookworm-slim",
                               .image_tag = "latest",
                               .environment = {{"A", "2"}}}));
  EXPECT_EQ(run(repository + ":latest", "echo $A"), "2\n");
  ensure(step("a", {.parent_image = "debian:bookworm-slim",
                    .image_tag = "latest",
                    .environment = {{"A", "1"}}}));
  EXPECT_EQ(run(repository + ":latest", "echo $A"), "1\n");
  ASSERT_EQ(events.builds().size(), 2u) << events.builds().back().reason << "\n" << events.text();
}

TEST_F(ImageTest, a_dockerfile_of_the_user_makes_the_parent) {
  core::write_file_atomically(
      folder.path() / "Dockerfile",
      "ARG BASE=debian:bookworm-slim\nFROM ${BASE}\nCOPY . /in\nUSER nobody\n");
  core::write_file_atomically(folder.path() / "kept.txt", "kept");
  core::write_file_atomically(folder.path() / "left.tmp", "left");
  core::write_file_atomically(folder.path() / ".dockerignore", "*.tmp\n");
  auto own = ensure(step("a", {.dockerfile = "Dockerfile"}));
  EXPECT_EQ(run(own.image_id, "ls /in"), "Dockerfile\nkept.txt\n");
  auto more = step("a", {.dockerfile = "Dockerfile", .apt_packages = {"tini"}});
  auto made = ensure(more);
  EXPECT_EQ(run(made.image_id, "command -v tini; id -un; cat /in/kept.txt"),
            "/usr/bin/tini\nnobody\nkept")
      << events.text();
  EXPECT_EQ(events.builds().size(), 2u);
  EXPECT_EQ(ensure(more).image_id, made.image_id);
  core::write_file_atomically(folder.path() / "left.tmp", "changed");
  EXPECT_EQ(ensure(more).image_id, made.image_id);
  EXPECT_EQ(events.builds().size(), 2u);
  core::write_file_atomically(folder.path() / "kept.txt", "changed");
  EXPECT_EQ(status(more).image_id, "");
}

TEST_F(ImageTest, a_local_project_is_installed_in_a_copy_of_the_code) {
  core::write_file_atomically(
      folder.path() / "pyproject.toml",
      "[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"\n"
      "[project]\nname = \"mine\"\nversion = \"1.2\"\ndependencies = "
      "[\"six==1.16.0\"]\n[tool.setuptools]\npy-modules = [\"mine\"]\n");
  core::write_file_atomically(folder.path() / "mine.py",
                              "import six\nprint('mine', six.__version__)\n");
  auto made = ensure(step("a", {.pyproject_path = "pyproject.toml",
                                .local_project_install_command = "uv pip install --no-deps -e ."}));
  EXPECT_EQ(run(made.image_id, "cd / && python -c 'import mine'"), "mine 1.16.0\n")
      << events.text();
  auto with_pip = ensure(step("a", {.python_package_installer = PackageInstaller::pip,
                                    .pyproject_path = "pyproject.toml"}));
  EXPECT_EQ(run(with_pip.image_id, "python -c 'import six; print(six.__version__)'"), "1.16.0\n")
      << events.text();
}

}  // namespace
}  // namespace pipeline::docker
