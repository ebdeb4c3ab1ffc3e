// Layers of images with locked packages: which of them a change makes again, and what is in them.
#include <gmock/gmock.h>

#include "engine/locked_packages.hpp"

namespace pipeline::docker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* versions =
    "python -c 'from importlib.metadata import version as v\n"
    "for name in [\"six\", \"tabulate\", \"colorama\", \"click\"]:\n"
    "  try: print(name, v(name))\n"
    "  except Exception: pass'";

/// Heavy packages have layers of their own; all light ones share the last layer.
class LayersByWeight : public LayersTest {
 protected:
  void SetUp() override {
    if (test::is_podman()) GTEST_SKIP() << "Podman makes one layer of all (docs/engines.md)";
  }
};

TEST_F(LayersByWeight, a_new_light_requirement_makes_only_the_last_layer_again) {
  const auto before = build_locked({locked("colorama", "0.4.6"), locked("six", "1.16.0", heavy),
                                    locked("tabulate", "0.9.0", heavier)});
  const auto after =
      build_locked({locked("click", "8.1.7"), locked("colorama", "0.4.6"),
                    locked("six", "1.16.0", heavy), locked("tabulate", "0.9.0", heavier)});
  const auto old_layers = layers(before), new_layers = layers(after);
  ASSERT_EQ(old_layers.size(), 4U) << events.text();  // The first has the mount points.
  ASSERT_EQ(new_layers.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(old_layers[i], new_layers[i]) << i;
  EXPECT_NE(old_layers[3], new_layers[3]);
  EXPECT_EQ(run(after.image_id, versions),
            "six 1.16.0\ntabulate 0.9.0\ncolorama 0.4.6\nclick 8.1.7\n");
}

TEST_F(LayersByWeight, a_new_version_of_a_heavy_package_keeps_the_content_of_all_others) {
  const auto before = build_locked({locked("colorama", "0.4.6"), locked("six", "1.16.0", heavy),
                                    locked("tabulate", "0.9.0", heavier)});
  const auto after = build_locked({locked("colorama", "0.4.6"), locked("six", "1.17.0", heavy),
                                   locked("tabulate", "0.9.0", heavier)});
  const auto old_layers = layers(before), new_layers = layers(after);
  ASSERT_EQ(old_layers.size(), 4U) << events.text();
  ASSERT_EQ(new_layers.size(), 4U);
  EXPECT_EQ(old_layers[1], new_layers[1]);
  EXPECT_NE(old_layers[2], new_layers[2]);
  EXPECT_EQ(old_layers[3], new_layers[3])
      << "made again with equal bytes, so it need not be pushed";
  EXPECT_EQ(run(after.image_id, versions), "six 1.17.0\ntabulate 0.9.0\ncolorama 0.4.6\n");
}

TEST_F(LayersByWeight, environments_that_share_heavy_packages_share_their_layers) {
  const auto one =
      build_locked({locked("colorama", "0.4.6"), locked("tabulate", "0.9.0", heavier)});
  const auto other = build_locked({locked("click", "8.1.7"), locked("tabulate", "0.9.0", heavier)});
  EXPECT_EQ(layers(one)[1], layers(other)[1]);
  EXPECT_NE(layers(one)[2], layers(other)[2]);
}

TEST_F(LayersByWeight, layers_built_again_without_a_cache_are_equal) {
  const std::vector packages{locked("click", "8.1.7"), locked("six", "1.16.0", heavy)};
  const auto one = build_locked(packages);
  DockerSettings again;
  again.build_config.build_options.no_cache = true;
  again.environment = {{"ANOTHER", "image"}};
  EXPECT_EQ(layers(build_locked(packages, again)), layers(one));
}

TEST_F(LayersTest, nothing_of_the_installers_stays_and_modules_are_compiled) {
  const auto made = build_locked({locked("click", "8.1.7"), locked("six", "1.16.0", heavy)});
  // The build unpacks stubs.tar: empty files, over which the engine mounts its own in /etc.
  EXPECT_EQ(run(made.image_id,
                "ls -d /pipe* /dev/pipe* /root/.cache /tmp/* /stubs* 2>/dev/null; command -v uv; "
                "cat /etc/hosts /etc/resolv.conf >/dev/null && echo mounted"),
            "mounted\n");
  EXPECT_EQ(run(made.image_id,
                "touch -d 2001-01-01 $(python -c 'import six; print(six.__file__)'); "
                "python -v -c 'import six' 2>&1 | grep -c 'matches.*six.py'"),
            "1\n")
      << "byte code does not depend on times";
}

TEST_F(LayersTest, tests_of_packages_are_there_and_not_compiled) {
  const auto made = build_locked({locked("toolz", "0.12.1")});
  EXPECT_EQ(run(made.image_id,
                "cd $(python -c 'import toolz; print(toolz.__path__[0])'); "
                "ls __pycache__ | grep -c '^dicttoolz.*pyc'; ls tests/test_dicttoolz.py; "
                "ls tests/__pycache__ 2>/dev/null; python -c 'import toolz.tests.test_dicttoolz'"),
            "1\ntests/test_dicttoolz.py\n");
}

TEST_F(LayersTest, a_file_with_another_hash_is_refused) {
  auto swapped = locked("six", "1.16.0");
  swapped.sha256 = std::string(64, '0');
  try {
    build_locked({swapped});
    FAIL() << "the file with another hash was installed";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Hash mismatch"));
  }
}

TEST_F(LayersByWeight, pip_makes_layers_too_and_packages_without_a_hash_are_the_last) {
  std::filesystem::create_directory(folder.path() / "mine");
  core::write_file_atomically(
      folder.path() / "mine/pyproject.toml",
      "[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"\n"
      "[project]\nname = \"mine\"\nversion = \"1.2\"\n[tool.setuptools]\npy-modules = "
      "[\"mine\"]\n");
  core::write_file_atomically(folder.path() / "mine/mine.py", "print('mine')\n");
  lockfile::LockedPackage mine{
      .name = "mine", .version = "1.2", .origin = lockfile::PackageOrigin::path};
  mine.url = "./mine";
  for (const auto installer : {PackageInstaller::pip, PackageInstaller::uv}) {
    const auto made =
        build_locked({mine, locked("six", "1.16.0")}, {.python_package_installer = installer});
    EXPECT_EQ(layers(made).size(), 3U) << events.text();
    EXPECT_EQ(run(made.image_id, "cd /; python -c 'import six, mine; print(six.__version__)'"),
              "mine\n1.16.0\n");
  }
}

TEST_F(LayersTest, an_image_of_locked_packages_has_everything_else_that_settings_install) {
  core::write_file_atomically(folder.path() / "tool.py", "print('tool')\n");
  const auto made = build_locked({locked("six", "1.16.0")},
                                 {.local_project_install_command = "cp tool.py /usr/local/lib/",
                                  .apt_packages = {"tini"},
                                  .environment = {{"A", "$B"}},
                                  .user = "learner"});
  EXPECT_EQ(run(made.image_id,
                "id -un; echo \"$A\"; python -c 'import six; print(six.__version__)'; command -v "
                "tini; python /usr/local/lib/tool.py; touch ~/x && echo home"),
            "learner\n$B\n1.16.0\n/usr/bin/tini\ntool\nhome\n")
      << events.text();
}

TEST_F(LayersByWeight, the_classic_builder_makes_the_same_layers_each_time) {
  setenv("DOCKER_BUILDKIT", "0", 1);
  const auto one =
      build_locked({locked("colorama", "0.4.6"), locked("tabulate", "0.9.0", heavier)});
  const auto other = build_locked({locked("click", "8.1.7"), locked("tabulate", "0.9.0", heavier)});
  unsetenv("DOCKER_BUILDKIT");
  const auto first = layers(one), second = layers(other);
  ASSERT_EQ(first.size(), second.size());
  ASSERT_GE(first.size(), 2U) << events.text();
  // The last two are the light packages, which differ, and the rest of what the build changed.
  for (std::size_t i = 0; i + 2 < first.size(); ++i) EXPECT_EQ(first[i], second[i]) << i;
  EXPECT_NE(first, second);
  EXPECT_EQ(run(other.image_id, versions), "tabulate 0.9.0\nclick 8.1.7\n");
  EXPECT_EQ(run(other.image_id, "ls -d /pipe* /tmp/* 2>/dev/null; command -v uv"), "");
}

}  // namespace
}  // namespace pipeline::docker
