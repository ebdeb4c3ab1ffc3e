// Messages for images that cannot be built.
#include "engine/image_support.hpp"

namespace pipeline::docker {
namespace {

void expect_in(const std::string& text, std::initializer_list<const char*> parts) {
  for (auto* part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "missing: " << part << "\nin:\n" << text;
}

TEST_F(ImageTest, a_requirement_that_does_not_exist_is_named) {
  auto text = failure_of(step("train", {.requirements = {"six==99.99"}}));
  const bool podman = test::is_podman();  // Podman builds with another Dockerfile.
  expect_in(text, {podman ? "at line 16 of the Dockerfile" : "at line 11 of the Dockerfile",
                   "cannot build the image from python:3.11-slim-bookworm at line ",
                   "the Python packages could not be installed (exit code 1)", "| Dockerfile:",
                   podman ? "/pipe-build/python/install.sh" : "/dev/pipe/python/install.sh",
                   "there is no version of six==99.99",
                   "= there is no `six==99.99` for this Python in the package index"});
  auto with_pip = failure_of(step("train", {.python_package_installer = PackageInstaller::pip,
                                            .requirements = {"six==99.99"}}));
  expect_in(with_pip,
            {"No matching distribution found for six==99.99", "= there is no `six==99.99`"});
}

TEST_F(ImageTest, a_debian_package_that_does_not_exist_is_named) {
  auto text = failure_of(step(
      "train", {.parent_image = "debian:bookworm-slim", .apt_packages = {"no-such-package-here"}}));
  expect_in(text, {"Unable to locate package no-such-package-here",
                   "= this distribution has no such package `no-such-package-here`"});
}

TEST_F(ImageTest, requirements_on_a_parent_without_python_say_what_to_write) {
  auto text =
      failure_of(step("train", {.parent_image = "debian:bookworm-slim", .requirements = {"six"}}));
  expect_in(text, {"cannot build the image from debian:bookworm-slim: Python requirements are "
                   "asked for, and Debian GNU/Linux 12 (bookworm) has no Python",
                   "= add 'apt_packages: [python3]', or choose a parent_image that has Python"});
}

TEST_F(ImageTest, the_error_for_a_parent_without_a_shell_says_so) {
  core::write_file_atomically(
      folder.path() / "Dockerfile",
      "FROM debian:bookworm-slim AS full\nFROM scratch\nCOPY --from=full /usr/bin/true /true\n");
  auto bare = ensure(step("bare", {.dockerfile = "Dockerfile"}));
  auto text = failure_of(step("train", {.parent_image = bare.reference, .requirements = {"six"}}));
  expect_in(text, {"has no shell (/bin/sh), which every install needs",
                   "= install what the step needs in a `dockerfile` of your own"});
}

TEST_F(ImageTest, apt_packages_on_another_distribution_name_it) {
  core::write_file_atomically(
      folder.path() / "Dockerfile",
      "FROM debian:bookworm-slim\nRUN rm /usr/bin/apt-get && printf "
      "'NAME=Other\\nPRETTY_NAME=\"Other Linux 3\"\\n' > /etc/os-release\n");
  auto text = failure_of(step("train", {.dockerfile = "Dockerfile", .apt_packages = {"tini"}}));
  expect_in(text, {"apt_packages needs apt-get, which Other Linux 3 does not have",
                   "= choose a parent_image of Debian or Ubuntu"});
}

TEST_F(ImageTest, a_failing_line_of_the_users_dockerfile_is_shown_with_its_number) {
  core::write_file_atomically(folder.path() / "Dockerfile",
                              "FROM debian:bookworm-slim\n\n# why\nRUN echo before \\\n && echo "
                              "oops >&2 && exit 7\nRUN true\n");
  auto text = failure_of(step("train", {.dockerfile = "Dockerfile"}));
  expect_in(text,
            {"cannot build the image of the pipeline's own Dockerfile at line 4 of the Dockerfile",
             test::is_podman() ? "exit status 7" : "exit code: 7",
             "| Dockerfile:4: RUN echo before && echo oops", "| before", "| oops"});
}

TEST_F(ImageTest, a_dockerfile_that_does_not_parse_is_shown_with_its_line) {
  core::write_file_atomically(folder.path() / "Dockerfile",
                              "FROM debian:bookworm-slim\nRUNN true\n");
  auto text = failure_of(step("train", {.dockerfile = "Dockerfile"}));
  expect_in(text, {test::is_podman() ? "Unknown instruction" : "unknown instruction", "RUNN",
                   "| Dockerfile:2: RUNN true"});
}

TEST_F(ImageTest, a_parent_that_no_registry_has_fails_as_a_pull) {
  EXPECT_THROW(ensure(step("train", {.parent_image = "localhost:1/no/such:image",
                                     .environment = {{"A", "1"}}})),
               core::EnvironmentError);
  auto looked = status(
      step("train", {.parent_image = "localhost:1/no/such:image", .environment = {{"A", "1"}}}));
  EXPECT_EQ(looked.digest, "");
  EXPECT_NE(looked.reason.find("localhost:1/no/such:image is missing"), std::string::npos)
      << looked.reason;
}

TEST_F(ImageTest, a_failing_build_is_not_repeated_for_the_next_step) {
  ImageBuilder builder(loop, *engine, options);
  auto spec = step("train", {.parent_image = "debian:bookworm-slim", .requirements = {"six"}});
  EXPECT_THROW(wait(builder.ensure(spec, events, cancel)), core::BuildError);
  EXPECT_THROW(wait(builder.ensure(spec, events, cancel)), core::BuildError);
  EXPECT_EQ(events.builds().size(), 1u);
}

TEST_F(ImageTest, a_cancelled_build_ends_at_once_and_can_be_made_again) {
  core::write_file_atomically(folder.path() / "Dockerfile",
                              "FROM debian:bookworm-slim\nRUN sleep 600\n");
  struct StopAtSleep : BuildRecorder {
    core::CancelSource& source;
    explicit StopAtSleep(core::CancelSource& s) : source(s) {}
    void emit(const Event& event) override {
      BuildRecorder::emit(event);
      if (auto* progress = std::get_if<event::BuildProgress>(&event);
          progress && progress->text.find("RUN sleep 600") != std::string::npos)
        source.stop(core::StopLevel::graceful);
    }
  } stopping(cancel);
  ImageBuilder builder(loop, *engine, options);
  auto began = std::chrono::steady_clock::now();
  EXPECT_THROW(wait(builder.ensure(step("train", {.dockerfile = "Dockerfile"}), stopping, cancel)),
               core::EnvironmentError);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(300));
}

}  // namespace
}  // namespace pipeline::docker
