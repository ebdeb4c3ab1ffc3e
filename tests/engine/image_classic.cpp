// Builds of images by the classic builder, for engines without BuildKit. DOCKER_BUILDKIT=0 asks an
// engine for this builder.
#include "engine/image_support.hpp"

namespace pipeline::docker {
namespace {

class ClassicImageTest : public ImageTest {
 protected:
  void SetUp() override { setenv("DOCKER_BUILDKIT", "0", 1); }
  void TearDown() override {
    unsetenv("DOCKER_BUILDKIT");
    ImageTest::TearDown();
  }
};

TEST_F(ClassicImageTest, everything_is_installed_and_nothing_else_is_left) {
  core::write_file_atomically(folder.path() / "tool.py", "print('tool')\n");
  auto made =
      ensure(step("train", {.requirements = {"six==1.16.0"},
                            .local_project_install_command = "cp tool.py /usr/local/lib/tool.py",
                            .apt_packages = {"tini"},
                            .environment = {{"A", "$B"}},
                            .user = "learner"}));
  EXPECT_EQ(run(made.image_id,
                "id -un; echo \"$A\"; python -c 'import six; print(six.__version__)'; command -v "
                "tini; python /usr/local/lib/tool.py; dpkg -s tini | "
                "grep Status; "
                "touch ~/x && echo home; ls -d /pipe* /tmp/* 2>/dev/null; stat -c '%a %U' /tmp "
                "/home/learner /etc"),
            "learner\n$B\n1.16.0\n/usr/bin/tini\ntool\nStatus: install ok installed\nhome\n1777 "
            "root\n755 learner\n755 root\n")
      << events.text();
  // The intermediate images, which had the host's configuration, are removed.
  std::vector<std::string> stages;
  for (auto& image : wait(engine->call(
           "GET", "/images/json?all=1&filters=%7B%22label%22%3A%5B%22pipe.stage%22%5D%7D"))) {
    auto& labels = image["Labels"];
    if (labels.is_object() && labels.value("pipe.stage", "").starts_with(made.digest))
      stages.push_back(image["Id"]);
  }
  EXPECT_TRUE(stages.empty());
}

TEST_F(ClassicImageTest, a_failing_line_is_shown_with_its_number) {
  core::write_file_atomically(folder.path() / "Dockerfile",
                              "FROM debian:bookworm-slim\n\nRUN echo oops && exit 7\n");
  auto text = failure_of(step("train", {.dockerfile = "Dockerfile"}));
  for (auto* part :
       {"at line 3 of the Dockerfile", "| Dockerfile:3: RUN echo oops && exit 7", "| oops"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_TRUE(text.find("non-zero code: 7") != text.npos || text.find("exit status 7") != text.npos)
      << text;  // Podman's words.
}

TEST_F(ClassicImageTest, the_error_for_a_parent_without_python_says_so) {
  auto text =
      failure_of(step("train", {.parent_image = "debian:bookworm-slim", .requirements = {"six"}}));
  EXPECT_NE(text.find("Debian GNU/Linux 12 (bookworm) has no Python"), std::string::npos) << text;
}

}  // namespace
}  // namespace pipeline::docker
