// What a step's settings become: Dockerfile, context, digest. The Dockerfiles are
// tests/golden/dockerfiles/NAME; PIPE_ACCEPT=1 writes them again.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "docker/dockerfile.hpp"
#include "docker/image_plan.hpp"
#include "docker/package_layers.hpp"
#include "python_packages/requirements.hpp"

namespace pipeline::docker {
namespace {

struct Plans : testing::Test {
  core::TemporaryFolder folder;
  BuilderOptions options{.root = folder.path()};

  static StepSpec step(DockerSettings settings) {
    StepSpec spec;
    spec.name = "train";
    spec.settings->docker = std::move(settings);
    return spec;
  }
  ImagePlan plan(DockerSettings settings) { return plan_image(step(std::move(settings)), options); }
  std::string digest(DockerSettings settings, const std::string& parent = "sha256:1") {
    return plan_digest(plan(std::move(settings)), {parent});
  }
  void put(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    core::write_file_atomically(folder.path() / name, content);
  }
};

const ContextFile* file_in(const ImagePlan& plan, const std::string& path) {
  for (auto& file : plan.context)
    if (file.path == path) return &file;
  return nullptr;
}

std::string paths(const std::vector<ContextFile>& files) {
  std::string text;
  for (auto& file : files)
    text += file.path + (file.kind == ContextFile::Kind::directory ? "/ " : " ");
  return text;
}

void expect_golden(const std::string& name, const std::string& text) {
  auto path = std::filesystem::path(PIPELINE_SOURCE_DIR) / "tests/golden/dockerfiles" / name;
  if (std::getenv("PIPE_ACCEPT")) core::write_file_atomically(path, text);
  EXPECT_EQ(core::read_file(path), text) << "PIPE_ACCEPT=1 accepts the new text";
}

TEST_F(Plans, dockerfiles_of_typical_settings_are_as_accepted) {
  put("pyproject.toml", "[project]\nname='x'\n");
  const std::vector<std::pair<std::string, DockerSettings>> table = {
      {"environment",
       {.parent_image = "debian:bookworm-slim", .environment = {{"A", "1"}, {"B", "two words"}}}},
      {"apt", {.parent_image = "debian:bookworm-slim", .apt_packages = {"tini", "curl"}}},
      {"requirements-uv",
       {.parent_image = "python:3.12-slim", .requirements = {"numpy", "pandas"}}},
      {"requirements-pip",
       {.parent_image = "python:3.12-slim",
        .python_package_installer = PackageInstaller::pip,
        .requirements = {"numpy"}}},
      {"pyproject", {.parent_image = "python:3.12-slim", .pyproject_path = "pyproject.toml"}},
      {"project",
       {.parent_image = "python:3.12-slim", .local_project_install_command = "pip install ."}},
      {"user", {.parent_image = "debian:bookworm-slim", .user = "1000:100"}},
      {"everything",
       {.parent_image = "registry.example:5000/team/base:1.2",
        .requirements = {"numpy"},
        .local_project_install_command = "uv pip install -e .",
        .apt_packages = {"git"},
        .environment = {{"OMP_NUM_THREADS", "1"}},
        .user = "learner"}},
  };
  for (auto& [name, settings] : table) {
    auto made = plan(settings);
    expect_golden(name + ".Dockerfile", made.dockerfile);
    expect_golden(name + ".classic.Dockerfile", made.classic_dockerfile);
  }
}

lockfile::LockedPackage package(const std::string& name, std::uint64_t size) {
  return {.name = name,
          .version = "1.0",
          .file = name + "-1.0-py3-none-any.whl",
          .size = size,
          .sha256 = std::string(64, 'a')};
}

std::string names_of(const std::vector<std::vector<lockfile::LockedPackage>>& layers) {
  std::string text;
  for (const auto& layer : layers) {
    for (const auto& each : layer) text += each.name + " ";
    text += "| ";
  }
  return text;
}

TEST(package_layers, heavy_packages_have_their_own_the_heaviest_first) {
  auto without_hash = package("branch", 0);
  without_hash.sha256.clear();
  lockfile::LockedEnvironment environment;
  environment.packages = {without_hash,
                          package("cudnn", 600'000'000),
                          package("idna", 60'000),
                          package("arrow", 40'000'000),
                          package("pandas", 12'000'000),
                          package("pillow", 4'000'000),
                          package("six", 11'000),
                          package("torch", 700'000'000)};
  EXPECT_EQ(names_of(package_layers(environment)),
            "torch | cudnn | arrow | pandas pillow | idna six | branch | ");
  EXPECT_TRUE(package_layers({}).empty());
}

TEST(package_layers, are_bounded_in_number) {
  lockfile::LockedEnvironment environment;
  for (int i = 100; i < 300; ++i)
    environment.packages.push_back(package("p" + std::to_string(i), 30'000'000));
  const auto layers = package_layers(environment);
  EXPECT_LE(layers.size(), 43U);
  std::size_t count = 0;
  for (const auto& layer : layers) count += layer.size();
  EXPECT_EQ(count, 200U);
}

TEST_F(Plans, locked_packages_are_layers_and_requirements_are_not_read_again) {
  lockfile::LockedEnvironment environment;
  environment.packages = {package("six", 11'000), package("torch", 700'000'000)};
  const DockerSettings settings{
      .parent_image = "python:3.12-slim",
      .requirements = {"torch", "six", "--extra-index-url https://u:secret@packages.example/s"}};
  const auto made = plan_image(step(settings), options, "", &environment);
  expect_golden("locked.Dockerfile", made.dockerfile);
  expect_golden("locked.classic.Dockerfile", made.classic_dockerfile);
  EXPECT_FALSE(made.resolves);
  EXPECT_EQ(paths(made.context),
            "layers/0/names layers/0/requirements.txt layers/1/names layers/1/requirements.txt "
            "python/arguments python/finish.py python/install_locked.py python/layer.sh stubs.tar "
            "tools/fetch.sh tools/install_locked.py tools/tools.txt ");
  EXPECT_EQ(*file_in(made, "layers/0/requirements.txt")->content,
            "torch==1.0 --hash=sha256:" + std::string(64, 'a') + "\n");
  for (const auto& file : made.context)
    EXPECT_EQ(file.content->find("secret"), std::string::npos) << file.path;
  EXPECT_EQ(std::ranges::count(made.host_only, "host/indexes.txt", &ContextFile::path), 1);
  auto other = settings;
  other.requirements = {"torch>=1", "six"};
  EXPECT_EQ(plan_digest(plan_image(step(other), options, "", &environment), {"sha256:1"}),
            plan_digest(made, {"sha256:1"}))
      << "equal packages are an equal image, whatever asked for them";
}

TEST_F(Plans, packages_that_are_built_from_source_have_a_layer_and_are_named) {
  lockfile::LockedEnvironment environment;
  environment.parent_digest = std::string(64, 'b');
  environment.packages = {package("fast", 11'000), package("six", 11'000)};
  environment.packages[0].file = "fast-1.0.tar.gz";
  const auto made = plan_image(step({.parent_image = "debian:12", .requirements = {"fast", "six"}}),
                               options, "", &environment);
  EXPECT_EQ(*file_in(made, "layers/0/requirements.txt")->content,
            "six==1.0 --hash=sha256:" + std::string(64, 'a') + "\n");
  EXPECT_EQ(*file_in(made, "layers/0/sources.txt")->content,
            "fast==1.0 --hash=sha256:" + std::string(64, 'a') + "\n");
  EXPECT_EQ(*file_in(made, "sources/sources.txt")->content,
            *file_in(made, "layers/0/sources.txt")->content);
  EXPECT_NE(made.dockerfile.find("FROM system AS built\n"), std::string::npos);
  const auto without =
      plan_image(step({.parent_image = "debian:12",
                       .python_package_installer_args = {{"no-build-isolation", true}},
                       .requirements = {"fast", "six"}}),
                 options, "", &environment);
  EXPECT_EQ(without.dockerfile.find("AS built"), std::string::npos) << "it needs the others";
  EXPECT_EQ(made.notices, std::vector<std::string>{lockfile::notice_of_sources(environment)});
}

TEST_F(Plans, bytes_are_counted_in_a_network_of_the_builds_own_alone) {
  lockfile::LockedEnvironment environment;
  environment.packages = {package("six", 11'000)};
  DockerSettings settings{.parent_image = "debian:12", .requirements = {"six"}};
  const auto counts = [&] {
    const auto made = plan_image(step(settings), options, "", &environment);
    return std::ranges::count(made.host_only, "host/own-network", &ContextFile::path);
  };
  EXPECT_EQ(counts(), 1);
  settings.build_config.build_options.network = "host";
  EXPECT_EQ(counts(), 0);
}

TEST_F(Plans, a_template_without_layers_installs_the_locked_packages_in_one) {
  put("templates/Dockerfile.mustache", "FROM {{{parent_image}}}\n{{#python}}RUN mine\n{{/python}}");
  options.template_dir = folder.path() / "templates";
  lockfile::LockedEnvironment environment;
  environment.packages = {package("six", 11'000)};
  const auto made = plan_image(step({.parent_image = "debian:12", .requirements = {"six"}}),
                               options, "", &environment);
  EXPECT_EQ(made.dockerfile, "FROM debian:12\nRUN mine\n");
  EXPECT_FALSE(made.resolves);
  const auto file = std::ranges::find(made.context, "python/requirements.txt", &ContextFile::path);
  ASSERT_NE(file, made.context.end());
  EXPECT_EQ(*file->content, lockfile::install_lines(environment)[0] + "\n");
}

TEST_F(Plans, a_local_package_outside_of_the_folder_is_refused) {
  lockfile::LockedEnvironment environment;
  environment.packages = {package("mine", 11'000)};
  environment.packages[0].origin = lockfile::PackageOrigin::path;
  environment.packages[0].url = "../mine";
  EXPECT_THROW(plan_image(step({.parent_image = "debian:12", .requirements = {"../mine"}}), options,
                          "", &environment),
               core::InputError);
}

TEST_F(Plans, installs_in_a_parent_with_a_user_are_made_by_root_and_the_user_comes_back) {
  auto made =
      plan_image(step({.parent_image = "jupyter:1", .apt_packages = {"git"}}), options, "jovyan");
  expect_golden("parent-user.Dockerfile", made.dockerfile);
  auto plain = plan_image(step({.parent_image = "jupyter:1", .environment = {{"A", "1"}}}), options,
                          "jovyan");
  EXPECT_EQ(plain.dockerfile.find("USER"), std::string::npos);
}

TEST(requirements, resolve_unless_each_is_pinned) {
  EXPECT_FALSE(python_packages::resolves({}));
  EXPECT_FALSE(
      python_packages::resolves({"numpy==1.26.4", "torch[cuda]==2.1 ; python_version < '3.12'"}));
  EXPECT_FALSE(python_packages::resolves(
      {"--index-url=https://index.example", "six == 1.16.0 --hash=sha256:00"}));
  for (const auto* open : {"numpy", "numpy>=1.26", "numpy==1.*", "numpy ; sys_platform == 'linux'",
                           "six @ git+https://example.com/six", "./six.whl", "-r more.txt",
                           "--editable=.", "six @ https://example.com/?a==b", "six #==1.16.0"})
    EXPECT_TRUE(python_packages::resolves({"numpy==1.26.4", open})) << open;
}

TEST_F(Plans, settings_that_add_nothing_need_no_build) {
  EXPECT_FALSE(plan({.parent_image = "debian:bookworm-slim"}).build);
  EXPECT_FALSE(
      plan({.parent_image = "debian:bookworm-slim", .skip_build = true, .requirements = {"numpy"}})
          .build);
  EXPECT_FALSE(
      plan({.parent_image = "debian:bookworm-slim", .runtime_environment = {{"A", "1"}}}).build);
  EXPECT_TRUE(plan({.parent_image = "debian:bookworm-slim", .environment = {{"A", "1"}}}).build);
}

TEST_F(Plans, text_that_would_add_an_instruction_is_refused) {
  const std::vector<DockerSettings> attempts = {
      {.parent_image = "debian\nRUN evil"},
      {.parent_image = "debian RUN"},
      {.parent_image = "$(evil)"},
      {.parent_image = "--platform=x"},
      {.parent_image = ""},
      {.parent_image = "d", .target_repository = "pipe:x y"},
      {.parent_image = "d", .image_tag = "a\nb"},
      {.parent_image = "d", .requirements = {"numpy\n--index-url=http://evil"}},
      {.parent_image = "d", .local_project_install_command = "true\nfalse"},
      {.parent_image = "d", .apt_packages = {"git; evil"}},
      {.parent_image = "d", .apt_packages = {"-o=APT::x"}},
      {.parent_image = "d", .apt_packages = {"git"}, .apt_snapshot = "2026-01-31; evil"},
      {.parent_image = "d", .environment = {{"A", "1\nRUN evil"}}},
      {.parent_image = "d", .environment = {{"A B", "1"}}},
      {.parent_image = "d", .environment = {{"A", "1\r"}}},
      {.parent_image = "d", .environment = {{"A", std::string(70'000, '$')}}},
      {.parent_image = "d", .user = "root\nRUN evil"},
      {.parent_image = "d", .user = "a b"},
      {.parent_image = "d", .user = "\", \"evil"},
      {.parent_image = "d", .user = "1:2:3"},
  };
  put("x", "x");
  for (std::size_t i = 0; i < attempts.size(); ++i)
    EXPECT_THROW(plan(attempts[i]), core::InputError) << "attempt " << i;
}

TEST_F(Plans, values_of_variables_are_quoted_so_that_nothing_is_expanded) {
  EXPECT_EQ(quote_env("plain"), "\"plain\"");
  EXPECT_EQ(quote_env(R"(a "b" $C ${D} \n 'x' # y \)"), R"("a \"b\" \$C \${D} \\n 'x' # y \\")");
}

TEST_F(Plans, users_text_reaches_no_instruction_but_files) {
  put("main.py", "");
  auto made = plan({.parent_image = "python:3.12",
                    .requirements = {"evil-name; $(touch x)"},
                    .local_project_install_command = "echo \"$(id)\""});
  EXPECT_EQ(made.dockerfile.find("evil"), std::string::npos);
  EXPECT_EQ(made.dockerfile.find("$("), std::string::npos);
  EXPECT_EQ(*file_in(made, "python/requirements.txt")->content, "evil-name; $(touch x)\n");
  EXPECT_EQ(*file_in(made, "install/command.sh")->content, "echo \"$(id)\"\n");
}

TEST_F(Plans, the_context_holds_only_what_the_dockerfile_uses) {
  put("data.bin", "not wanted");
  EXPECT_EQ(paths(plan({.parent_image = "d", .apt_packages = {"git"}}).context),
            "apt/install.sh apt/packages ");
  EXPECT_EQ(paths(plan({.parent_image = "d", .apt_packages = {"git"}, .apt_snapshot = "2026-01-31"})
                      .context),
            "apt/install.sh apt/packages apt/snapshot ");
  EXPECT_FALSE(plan({.parent_image = "d", .apt_snapshot = "2026-01-31"}).build);
  EXPECT_EQ(paths(plan({.parent_image = "d", .environment = {{"A", "1"}}}).context), "");
  EXPECT_TRUE(plan({.parent_image = "d", .environment = {{"A", "1"}}}).host_only.empty());
  EXPECT_EQ(paths(plan({.parent_image = "d", .requirements = {"six"}}).context),
            "python/arguments python/install.sh python/requirements.txt tools/fetch.sh "
            "tools/install_locked.py tools/tools.txt ");
}

TEST_F(Plans, equal_content_has_an_equal_digest_whatever_its_order) {
  EXPECT_EQ(
      digest({.parent_image = "d", .requirements = {"b", "a", "a"}, .apt_packages = {"y", "x"}}),
      digest({.parent_image = "d", .requirements = {"a", "b"}, .apt_packages = {"x", "y"}}));
  EXPECT_EQ(
      digest({.parent_image = "d", .requirements = {"a"}, .runtime_environment = {{"A", "1"}}}),
      digest({.parent_image = "d", .requirements = {"a"}}));
}

TEST_F(Plans, whatever_determines_the_image_changes_its_digest) {
  put("main.py", "1");
  const DockerSettings base{.parent_image = "d", .requirements = {"a"}};
  std::set<std::string> seen{digest(base), digest(base, "sha256:2")};
  EXPECT_EQ(seen.size(), 2u);
  auto changed = [&](auto change) {
    auto settings = base;
    change(settings);
    EXPECT_TRUE(seen.insert(digest(settings)).second) << seen.size();
  };
  changed([](auto& s) { s.parent_image = "e"; });
  changed([](auto& s) { s.requirements = {"a", "b"}; });
  changed([](auto& s) { s.requirements = {"ab"}; });
  changed([](auto& s) { s.python_package_installer = PackageInstaller::pip; });
  changed([](auto& s) { s.python_package_installer_args = {{"no-deps", true}}; });
  changed([](auto& s) { s.apt_packages = {"git"}; });
  for (const auto* moment : {"2026-01-31", "2026-01-31T00:00:01Z"})
    changed([&](auto& s) { s.apt_packages = {"git"}, s.apt_snapshot = moment; });
  changed([](auto& s) { s.environment = {{"A", "1"}}; });
  changed([](auto& s) { s.user = "me"; });
  changed([](auto& s) { s.platform = "linux/arm64"; });
  changed([](auto& s) { s.build_config.build_options.labels = {{"a", "b"}}; });
  changed([](auto& s) { s.prevent_build_reuse = true; });
  changed([](auto& s) { s.local_project_install_command = "true"; });
  put("main.py", "2");
  changed([](auto& s) { s.local_project_install_command = "true"; });
  std::filesystem::permissions(folder.path() / "main.py", std::filesystem::perms::owner_exec,
                               std::filesystem::perm_options::add);
  changed([](auto& s) { s.local_project_install_command = "true"; });
}

TEST_F(Plans, code_that_no_install_command_uses_does_not_change_the_digest) {
  put("main.py", "1");
  auto before = digest({.parent_image = "d", .requirements = {"a"}});
  put("main.py", "2");
  EXPECT_EQ(digest({.parent_image = "d", .requirements = {"a"}}), before);
}

TEST_F(Plans, the_hosts_configuration_does_not_change_the_digest) {
  auto before = digest({.parent_image = "d", .requirements = {"a"}});
  setenv("UV_INDEX_PLAN_TEST_PASSWORD", "hidden", 1);
  auto made = plan({.parent_image = "d", .requirements = {"a"}});
  unsetenv("UV_INDEX_PLAN_TEST_PASSWORD");
  EXPECT_EQ(plan_digest(made, {"sha256:1"}), before);
  for (auto& file : made.context)
    EXPECT_EQ(file.content->find("hidden"), std::string::npos) << file.path;
  bool found = false;
  for (auto& file : made.host_only)
    found = found ||
            (file.content &&
             file.content->find("export UV_INDEX_PLAN_TEST_PASSWORD=hidden") != std::string::npos);
  EXPECT_TRUE(found);
}

TEST_F(Plans, passwords_in_requirements_reach_no_label) {
  auto made = plan({.parent_image = "d",
                    .requirements = {"--extra-index-url https://me:secret@example.org/simple",
                                     "a @ https://me:secret@example.org/a.whl", "b==1"}});
  for (auto& [name, items] : made.parts)
    for (auto& item : items)
      EXPECT_EQ(item.find("secret"), std::string::npos) << name << ": " << item;
  EXPECT_EQ(made.parts["requirements"].back(), "b==1");
}

TEST_F(Plans, a_users_dockerfile_is_planned_with_its_context_and_the_images_it_names) {
  put("docker/Dockerfile",
      "ARG V=3.11\nFROM python:${V} AS one\nFROM debian:bookworm-slim\nCOPY --from=one /a /b\nCOPY "
      "--from=busybox:1 /c /d\nRUN "
      "--mount=type=bind,from=alpine:3,target=/x true\n");
  put("docker/a.txt", "a");
  put("docker/b.log", "b");
  put("docker/.pipe/logs/c.txt", "c");  // our state, though the rules below let it in
  put("docker/.dockerignore", "# all but text\n*\n!*.txt\n");
  put("other/c.txt", "c");
  auto own = plan({.dockerfile = "docker/Dockerfile"});
  EXPECT_TRUE(own.for_own_dockerfile);
  EXPECT_EQ(paths(own.context), ".pipe.dockerfile a.txt ");  // As the rules say: no Dockerfile.
  EXPECT_EQ(own.dockerfile_path, ".pipe.dockerfile");
  EXPECT_EQ(own.images_used, (std::vector<std::string>{"python:3.11", "debian:bookworm-slim",
                                                       "busybox:1", "alpine:3"}));
  auto elsewhere = plan({.dockerfile = "docker/Dockerfile", .build_context_root = "other"});
  EXPECT_EQ(paths(elsewhere.context), ".pipe.dockerfile c.txt ");
  put("docker/Dockerfile.dockerignore", "*\n!b.log\n!Dockerfile\n");
  auto alone = plan({.dockerfile = "docker/Dockerfile"});
  EXPECT_EQ(paths(alone.context), "Dockerfile b.log ");  // `COPY .` copies nothing else.
  EXPECT_EQ(alone.dockerfile_path, "Dockerfile");
  put("rules", "**\n");
  DockerSettings settings{.dockerfile = "docker/Dockerfile"};
  settings.parent_image_build_config.dockerignore = "rules";
  EXPECT_EQ(paths(plan(settings).context), ".pipe.dockerfile ");
  auto more = plan({.dockerfile = "docker/Dockerfile", .requirements = {"a"}});
  ASSERT_TRUE(more.parent);
  EXPECT_TRUE(more.parent->for_own_dockerfile);
  EXPECT_TRUE(more.images_used.empty());
}

TEST_F(Plans, a_project_is_the_steps_code_without_ignored_files) {
  put("pkg/a.py", "a");
  put("pkg/b.pyc", "b");
  put("data/big.bin", "big");
  put("notes.md", "n");
  put(".gitignore", "*.pyc\n");
  put(".dockerignore", "notes.md\n");
  put(".pipe/state", "s");
  put(".git/HEAD", "h");
  auto spec = step({.parent_image = "d", .local_project_install_command = "true"});
  auto project = [&] {
    std::string text;
    for (auto& file : plan_image(spec, options).context)
      if (file.path.starts_with("project/")) text += file.path.substr(8) + " ";
    return text;
  };
  EXPECT_EQ(project(), ".dockerignore .gitignore data/big.bin pkg/a.py ");
  spec.code = StringList{"pkg"};
  EXPECT_EQ(project(), "pkg/a.py ");
  spec.code = StringList{"**/*.bin", "./pkg/"};
  EXPECT_EQ(project(), "data/big.bin pkg/a.py ");
}

TEST_F(Plans, files_of_the_state_folder_change_no_image_whatever_its_name) {
  options.state = folder.path() / "my [state]*";
  put("my [state]*/logs/a.log", "a");
  put("Dockerfile", "FROM busybox:1\nCOPY . /x\n");
  put("tool.py", "t");
  const DockerSettings own{.dockerfile = "Dockerfile"};
  const DockerSettings project{.parent_image = "d", .local_project_install_command = "true"};
  const auto before = digest(own) + digest(project);
  put("my [state]*/logs/b.log", "b");
  EXPECT_EQ(digest(own) + digest(project), before);
  EXPECT_EQ(paths(plan(own).context), "Dockerfile tool.py ");
  options.state.clear();
  EXPECT_NE(digest(own), before.substr(0, before.size() / 2));
  EXPECT_NE(digest(project), before.substr(before.size() / 2));
}

TEST_F(Plans, a_missing_file_is_an_error_that_names_it) {
  try {
    plan({.dockerfile = "nowhere/Dockerfile"});
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("nowhere"), std::string::npos);
  }
}

TEST_F(Plans, a_template_of_the_users_replaces_ours) {
  put("templates/Dockerfile.mustache", "FROM {{{parent_image}}}\n# mine\n");
  options.template_dir = folder.path() / "templates";
  EXPECT_EQ(plan({.parent_image = "d", .apt_packages = {"git"}}).dockerfile, "FROM d\n# mine\n");
  put("templates/Dockerfile.mustache", "FROM {{{parent_image}\n{{#open}}");
  EXPECT_THROW(plan({.parent_image = "d", .apt_packages = {"git"}}), core::InputError);
}

}  // namespace
}  // namespace pipeline::docker
