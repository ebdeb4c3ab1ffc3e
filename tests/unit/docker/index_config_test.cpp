// The machine's package index configuration, and the requirements that come from commands.
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "docker/index_config.hpp"
#include "python_packages/requirements.hpp"

namespace pipeline::docker {
namespace {

struct IndexConfigs : testing::Test {
  core::TemporaryFolder folder;
  StringMap environment;
  IndexSources sources() {
    IndexSources result;
    result.variable = [this](const std::string& name) -> std::optional<std::string> {
      auto found = environment.find(name);
      return found == environment.end() ? std::nullopt : std::optional(found->second);
    };
    for (auto& [name, value] : environment) result.variable_names.push_back(name);
    result.pip_files = {folder.path() / "pip.conf"};
    result.own_certificates = folder.path() / "none";
    result.system_bundle = folder.path() / "system.crt";
    return result;
  }
  std::string put(const std::string& name, const std::string& text) {
    core::write_file_atomically(folder.path() / name, text);
    return (folder.path() / name).string();
  }
};

TEST_F(IndexConfigs, a_machine_without_configuration_gives_nothing_to_builds) {
  put("system.crt", "the default bundle");
  auto config = read_index_config(sources());
  EXPECT_TRUE(config.variables.empty());
  EXPECT_FALSE(config.ca);
  auto files = host_files(config);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].path, "host/env.sh");
}

TEST_F(IndexConfigs, pip_conf_reaches_pip_and_uv) {
  auto bundle = put("corp.pem", "pem");
  put("pip.conf",
      "# c\n[global]\nindex-url = https://u:p@index.example/simple\nextra_index_url =\n    "
      "https://a.example\n    https://b.example\ncert = " +
          bundle +
          "\ntarget = /x\n[freeze]\nindex-url = no\n[install]\ntrusted-host: h.example\nfind-links "
          "= /opt/wheels https://wheels.example\n");
  auto config = read_index_config(sources());
  EXPECT_EQ(config.variables,
            (StringMap{{"PIP_INDEX_URL", "https://u:p@index.example/simple"},
                       {"UV_INDEX_URL", "https://u:p@index.example/simple"},
                       {"PIP_EXTRA_INDEX_URL", "https://a.example https://b.example"},
                       {"UV_EXTRA_INDEX_URL", "https://a.example https://b.example"},
                       {"PIP_TRUSTED_HOST", "h.example"},
                       {"UV_INSECURE_HOST", "h.example"},
                       {"PIP_FIND_LINKS", "https://wheels.example"},
                       {"UV_FIND_LINKS", "https://wheels.example"}}));
  EXPECT_EQ(config.ca, bundle);
}

TEST_F(IndexConfigs, what_pip_conf_says_of_install_wins_over_what_any_file_says_of_all) {
  put("system.conf", "[install]\nindex-url = https://install.example\nproxy =\n");
  put("user.conf",
      "[install]\ntimeout = 5\n[global]\nindex-url = https://all.example\ntimeout = 9\n"
      "proxy = http://proxy.example\n");
  auto files = sources();
  files.pip_files = {folder.path() / "system.conf", folder.path() / "user.conf"};
  EXPECT_EQ(read_index_config(files).variables,
            (StringMap{{"PIP_INDEX_URL", "https://install.example"},
                       {"UV_INDEX_URL", "https://install.example"},
                       {"PIP_TIMEOUT", "5"},
                       {"PIP_PROXY", "http://proxy.example"}}));
}

TEST_F(IndexConfigs, variables_win_over_files_and_local_folders_stay_out) {
  put("pip.conf", "[global]\nindex-url = https://file.example\n");
  environment = {{"PIP_INDEX_URL", "https://variable.example"},
                 {"PIP_FIND_LINKS", "/opt/wheels"},
                 {"UV_DEFAULT_INDEX", "https://uv.example"},
                 {"https_proxy", "http://proxy:3128"},
                 {"PIPE_APT_SNAPSHOT_MIRROR", "https://mirror.example"},
                 {"UV_INDEX_CORP_PASSWORD", "it's secret"}};
  auto config = read_index_config(sources());
  EXPECT_EQ(config.variables, (StringMap{{"PIP_INDEX_URL", "https://variable.example"},
                                         {"UV_DEFAULT_INDEX", "https://uv.example"},
                                         {"https_proxy", "http://proxy:3128"},
                                         {"PIPE_APT_SNAPSHOT_MIRROR", "https://mirror.example"},
                                         {"UV_INDEX_CORP_PASSWORD", "it's secret"}}));
  EXPECT_EQ(config.proxies, (StringMap{{"https_proxy", "http://proxy:3128"}}));
  EXPECT_NE(
      host_files(config).back().content->find("export UV_INDEX_CORP_PASSWORD='it'\\''s secret'\n"),
      std::string::npos);
}

TEST_F(IndexConfigs, a_bundle_is_taken_from_variables_or_from_certificates_added_to_the_system) {
  environment = {{"PIP_CERT", "/no/such/file"}, {"SSL_CERT_FILE", put("ssl.pem", "x")}};
  EXPECT_EQ(read_index_config(sources()).ca, folder.path() / "ssl.pem");
  environment.clear();
  auto with_own = sources();
  put("system.crt", "bundle");
  put("own.crt", "mine");
  with_own.own_certificates = folder.path();
  EXPECT_EQ(read_index_config(with_own).ca, folder.path() / "system.crt");
}

TEST(Requirements, lists_are_sorted_and_options_come_first) {
  std::vector<std::string> notices;
  DockerSettings settings{.requirements = {"b==1", "--extra-index-url https://x", "a", "b==1"}};
  EXPECT_EQ(python_packages::requirement_lines(settings, "/", notices),
            (std::vector<std::string>{"--extra-index-url https://x", "a", "b==1"}));
}

TEST(Requirements, a_requirement_that_is_only_on_this_machine_is_left_out_and_reported) {
  std::vector<std::string> notices;
  EXPECT_EQ(python_packages::portable_freeze(
                "a==1\n# comment\n-e git+https://x#egg=y\nz @ file:///tmp/z.whl\nb==2\n", notices),
            (std::vector<std::string>{"a==1", "b==2"}));
  EXPECT_EQ(notices.size(), 2u);
}

TEST(Requirements, an_export_command_runs_beside_the_pyproject_file) {
  core::TemporaryFolder folder;
  core::write_file_atomically(folder.path() / "list", "numpy==1 \\\n    --hash=sha256:1\n-e .\n");
  std::vector<std::string> notices;
  DockerSettings settings{.pyproject_path = "pyproject.toml",
                          .pyproject_export_command = {"cat", "list"}};
  EXPECT_EQ(python_packages::requirement_lines(settings, folder.path(), notices),
            std::vector<std::string>{"numpy==1      --hash=sha256:1"});
  EXPECT_EQ(notices.size(), 1u);
  settings.pyproject_export_command = {"sh", "-c", "echo broken >&2; exit 5"};
  try {
    python_packages::requirement_lines(settings, folder.path(), notices);
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("failed with exit code 5"), std::string::npos);
    EXPECT_EQ(error.advice(), std::vector<std::string>{"broken"});
  }
}

TEST(Requirements, installer_arguments_become_options) {
  EXPECT_EQ(python_packages::installer_arguments({{"index-url", "https://x"},
                                                  {"no-deps", true},
                                                  {"pre", nullptr},
                                                  {"off", false},
                                                  {"find-links", {"a", "b"}},
                                                  {"retries", 3}}),
            (std::vector<std::string>{"--find-links=a", "--find-links=b", "--index-url=https://x",
                                      "--no-deps", "--pre", "--retries=3"}));
  EXPECT_THROW(python_packages::installer_arguments({{"a b", true}}), core::InputError);
  EXPECT_THROW(python_packages::installer_arguments({{"a", "x\ny"}}), core::InputError);
}

TEST_F(IndexConfigs, logins_reach_only_images_that_the_user_trusts_with_them) {
  environment = {{"PIP_INDEX_URL", "https://ann:geheim@packages.example/simple"},
                 {"UV_INDEX_LAB_PASSWORD", "geheim"},
                 {"https_proxy", "http://ann:proxy@proxy.example"}};
  const auto given = [&](const std::vector<std::string>& images) {
    std::vector<std::string> notices;
    std::string text;
    for (const auto& [name, value] : config_for_build(sources(), images, notices).variables)
      text += name + "=" + value + "\n";
    EXPECT_EQ(notices.empty(), text.find("geheim") != text.npos);
    EXPECT_NE(text.find("packages.example/simple"), text.npos);
    EXPECT_NE(text.find("ann:proxy@"), text.npos);
    return text.find("geheim") != text.npos;
  };
  EXPECT_TRUE(given({"python:3.12-slim"}));
  EXPECT_FALSE(given({"evil.example/python:3.12-slim"}));
  EXPECT_FALSE(given({"python:3.12-slim", "somebody/tools"}));
  environment["PIPE_INDEX_PARENTS"] = "lab.example/** somebody/tools";
  EXPECT_TRUE(given({"python:3.12-slim", "somebody/tools", "lab.example/team/base:1"}));
  EXPECT_FALSE(given({"elsewhere.example/somebody/tools"}));
}

}  // namespace
}  // namespace pipeline::docker
