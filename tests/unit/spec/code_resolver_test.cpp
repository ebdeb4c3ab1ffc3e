#include "spec/code_resolver.hpp"

#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

class CodeResolving : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& content = "") {
    core::make_folders((folder_.path() / path).parent_path());
    core::write_file_atomically(folder_.path() / path, content);
  }

  StepSpec step(const std::string& keys) {
    pipeline_ = parse("name: x\nsteps:\n  s: {" + keys + "}\n", folder_.path() / "pipeline.yaml");
    return pipeline_.steps[0];
  }

  std::vector<std::string> code(const std::string& keys) {
    const StepSpec spec = step(keys);
    std::vector<std::string> files;
    CodeResolver resolver(pipeline_);
    for (const auto& file : resolver.code_of(spec).files) files.push_back(file.relative_path);
    return files;
  }

  std::vector<std::string> of(const std::string& command) { return code("command: " + command); }

  std::optional<std::string> advice(const std::string& keys, const std::string& output) {
    const StepSpec spec = step(keys);
    return CodeResolver(pipeline_).failure_advice(spec, output);
  }

  core::TemporaryFolder folder_;
  PipelineSpec pipeline_;
};

TEST_F(CodeResolving, files_that_the_command_names_are_found) {
  for (const char* path : {"a.py", "b.txt", "c.yaml", "sub/d.py", "other.py", "has space.txt"})
    write(path);
  EXPECT_THAT(of("[python, a.py, --config=c.yaml, ./sub/d.py, '@b.txt']"),
              ElementsAre("a.py", "b.txt", "c.yaml", "sub/d.py"));
  EXPECT_THAT(of("python a.py < b.txt && cat 'has space.txt'"),
              ElementsAre("a.py", "b.txt", "has space.txt"));
  EXPECT_THAT(of("[sh, -c, 'python a.py; cat b.txt']"), ElementsAre("a.py", "b.txt"));
  EXPECT_THAT(of("[echo, hello, ., .., /etc/passwd, ../x]"), IsEmpty());
}

TEST_F(CodeResolving, imports_are_followed) {
  write("train.py", "import helper, numpy\nfrom pkg import sub\nfrom pkg.deep.mod import thing\n");
  write("helper.py", "def f():\n  import lazy\n");
  write("lazy.py");
  write("unused.py");
  write("pkg/__init__.py", "from .core import x");
  write("pkg/core.py", "from . import sibling\nfrom .. import nothing\n");
  write("pkg/sibling.py");
  write("pkg/sub/__init__.py");
  write("pkg/deep/mod.py", "from ..sub import y\nimport pkg.late\n");
  write("pkg/late.py");
  write("pkg/unused.py");
  EXPECT_THAT(
      of("[python, train.py]"),
      ElementsAre("helper.py", "lazy.py", "pkg/__init__.py", "pkg/core.py", "pkg/deep/mod.py",
                  "pkg/late.py", "pkg/sibling.py", "pkg/sub/__init__.py", "train.py"));
}

TEST_F(CodeResolving, modules_beside_the_script_and_in_the_root_are_both_seen) {
  write("scripts/train.py", "import beside\nimport common\n");
  write("scripts/beside.py");
  write("common.py");
  EXPECT_THAT(of("[python, scripts/train.py]"),
              ElementsAre("common.py", "scripts/beside.py", "scripts/train.py"));
}

TEST_F(CodeResolving, folders_of_the_steps_pythonpath_are_code) {
  write("main.py", "import helper");
  write("lib/helper.py");
  write("more/other.py");
  EXPECT_THAT(of("[python, main.py]"), ElementsAre("main.py"));
  EXPECT_THAT(code("command: [python, main.py], environment: {PYTHONPATH: lib}"),
              ElementsAre("lib/helper.py", "main.py"));
  EXPECT_THAT(code("command: [python, main.py], environment: {PYTHONPATH: '/opt/x:./lib:more'}"),
              ElementsAre("lib/helper.py", "main.py", "more/other.py"));
}

TEST_F(CodeResolving, python_m_and_c_are_understood) {
  write("pkg/__init__.py");
  write("pkg/__main__.py", "from pkg import a");
  write("pkg/a.py");
  write("tool.py");
  EXPECT_THAT(of("[python, -m, pkg]"),
              ElementsAre("pkg/__init__.py", "pkg/__main__.py", "pkg/a.py"));
  EXPECT_THAT(of("python3 -u -m tool --x"), ElementsAre("tool.py"));
  EXPECT_THAT(of("[python, -c, 'import tool; from pkg import a']"),
              ElementsAre("pkg/__init__.py", "pkg/a.py", "tool.py"));
}

TEST_F(CodeResolving, star_imports_mean_the_whole_package) {
  write("main.py", "from models import *");
  write("models/__init__.py");
  write("models/a.py");
  write("models/deep/b.py");
  EXPECT_THAT(of("[python, main.py]"), ElementsAre("main.py", "models/__init__.py", "models/a.py"));
}

TEST_F(CodeResolving, shell_scripts_are_followed) {
  write("run.sh",
        "#!/bin/sh\n. ./env.sh\nsource \"$(dirname \"$0\")/lib.sh\"\nbash scripts/more.sh\npython "
        "train.py --data data\nmkdir -p data\n");
  write("env.sh", "export A=1 # not unused.sh\n");
  write("lib.sh");
  write("scripts/more.sh", "$HERE/beside.sh\n");
  write("scripts/beside.sh");
  write("train.py", "import helper");
  write("helper.py");
  write("unused.sh");
  write("data/large.csv");
  write("tool", "#!/usr/bin/env bash\ncat table.csv\n");
  write("table.csv");
  EXPECT_THAT(of("./run.sh"), ElementsAre("env.sh", "helper.py", "lib.sh", "run.sh",
                                          "scripts/beside.sh", "scripts/more.sh", "train.py"));
  EXPECT_THAT(of("[./tool]"), ElementsAre("table.csv", "tool"));
}

TEST_F(CodeResolving, each_file_has_the_reason_why_it_is_code) {
  write("train.py", "\nimport helper\n");
  write("helper.py");
  const StepSpec spec = step("command: [python, train.py]");
  CodeResolver resolver(pipeline_);
  const auto& files = resolver.code_of(spec).files;
  EXPECT_EQ(files[0].reason, "imported by train.py:2");
  EXPECT_EQ(files[1].reason, "named in command");
}

TEST_F(CodeResolving, folders_of_the_command_are_taken_whole_less_what_is_ignored) {
  write("src/main.py", "import util");
  write("src/util.py");
  write("src/__pycache__/main.pyc");
  write("src/.gitignore", "*.log");
  write("src/run.log");
  write(".gitignore", "data/\n");
  write("data/a.csv");
  EXPECT_THAT(of("[python, src]"), ElementsAre("src/.gitignore", "src/main.py", "src/util.py"));
  EXPECT_THAT(of("[python, main.py, data]"), ElementsAre("data/a.csv"));  // named on purpose
}

TEST_F(CodeResolving, rules_above_the_folder_and_in_info_exclude_hold) {
  const auto git = [&](const std::string& arguments) {
    const auto command =
        "cd '" + folder_.path().string() + "' && git " + arguments + " >/dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  };
  git("init");
  write(".gitignore", "*.log\n/ml/only_here.txt\n/only_there.txt\n!keep.log\n");
  write(".git/info/exclude", "*.tmp\n");
  write("ml/.gitignore", "!wanted.log\ndata/\n");
  for (const char* path :
       {"a.py", "a.log", "keep.log", "wanted.log", "only_here.txt", "only_there.txt", "b.tmp",
        "sub/c.log", "tracked.log", "data/x.csv", "data/tracked.csv", "data/deep/tracked.csv"})
    write(std::string("ml/") + path);
  git("add -f ml/tracked.log ml/data/tracked.csv ml/data/deep/tracked.csv");
  const auto files = [&](const std::string& code) {
    pipeline_ = parse("name: x\nsteps:\n  s: {command: [a], code: " + code + "}\n",
                      folder_.path() / "ml/pipeline.yaml");
    std::vector<std::string> found;
    CodeResolver resolver(pipeline_);
    for (const auto& file : resolver.code_of(pipeline_.steps[0]).files)
      found.push_back(file.relative_path);
    return found;
  };
  EXPECT_THAT(files("."),
              ElementsAre(".gitignore", "a.py", "data/deep/tracked.csv", "data/tracked.csv",
                          "keep.log", "only_there.txt", "tracked.log", "wanted.log"));
  EXPECT_THAT(files("data"),
              ElementsAre("data/deep/tracked.csv", "data/tracked.csv", "data/x.csv"));

  // A pipeline below a folder that git leaves out has all its files.
  write(".gitignore", "ml/\n*.py\n");
  EXPECT_THAT(files("'*.py'"), ElementsAre("a.py"));
}

TEST_F(CodeResolving, rules_around_a_submodule_do_not_count_in_it_without_a_repository) {
  write(".gitmodules", "[submodule \"x\"]\n\tpath = vendor/x\n\turl = ../x\n");
  write(".gitignore", "models/\nvendor/\n");
  write("vendor/x/.gitignore", "*.log\n");
  for (const char* path : {"models/a.py", "vendor/b.py", "vendor/x/models/net.py",
                           "vendor/x/run.py", "vendor/x/run.log", "main.py"})
    write(path);
  EXPECT_THAT(code("command: [a], code: ."),
              ElementsAre(".gitignore", ".gitmodules", "main.py", "vendor/x/.gitignore",
                          "vendor/x/models/net.py", "vendor/x/run.py"));
}

TEST_F(CodeResolving, files_with_gits_rules_are_among_the_sources) {
  ASSERT_EQ(std::system(("git -C '" + folder_.path().string() + "' init -q").c_str()), 0);
  write("ml/.gitignore", "*.log\n");
  write("ml/a.log");
  pipeline_ =
      parse("name: x\nsteps:\n  s: {command: [a], code: .}\n", folder_.path() / "ml/pipeline.yaml");
  CodeResolver resolver(pipeline_);
  const auto& looked_at = resolver.code_of(pipeline_.steps[0]).looked_at;
  const auto top = fs::canonical(folder_.path());
  for (const char* path : {".gitignore", ".git/info/exclude", ".git/index"})
    EXPECT_THAT(looked_at, testing::Contains(top / path)) << path;
}

TEST_F(CodeResolving, listed_code_is_exact) {
  for (const char* path : {"train.py", "src/a.py", "src/deep/b.py", "src/c.txt", "data/x.csv",
                           ".git/config", ".pipe/db", "secret.env", "out.log"})
    write(path);
  write(".dockerignore", "secret.env\n");
  write(".gitignore", "*.log\n");
  EXPECT_THAT(code("command: [python, train.py], code: [src/a.py]"), ElementsAre("src/a.py"));
  EXPECT_THAT(code("command: [a], code: src"),
              ElementsAre("src/a.py", "src/c.txt", "src/deep/b.py"));
  EXPECT_THAT(code("command: [a], code: ['src/**/*.py', data/]"),
              ElementsAre("data/x.csv", "src/a.py", "src/deep/b.py"));
  EXPECT_THAT(code("command: [a], code: ['*.py', 's*']"),
              ElementsAre("src/a.py", "src/c.txt", "src/deep/b.py", "train.py"));
  EXPECT_THAT(code("command: [a], code: ."),
              ElementsAre(".dockerignore", ".gitignore", "data/x.csv", "src/a.py", "src/c.txt",
                          "src/deep/b.py", "train.py"));
  EXPECT_THAT(code("command: [a], code: []"), IsEmpty());
  EXPECT_THAT(code("command: [a], code: secret.env"), ElementsAre("secret.env"));
}

TEST_F(CodeResolving, a_glob_that_matches_nothing_is_an_error) {
  write("a.py");
  EXPECT_THROW(code("command: [a], code: ['*.txt']"), core::InputError);
}

TEST_F(CodeResolving, links_are_followed_inside_and_refused_outside) {
  const core::TemporaryFolder elsewhere;
  core::write_file_atomically(elsewhere.path() / "secret", "x");
  write("real/a.py");
  fs::create_directory_symlink("real", folder_.path() / "linked");
  fs::create_directory_symlink("..", folder_.path() / "real/loop");
  fs::create_symlink(elsewhere.path() / "secret", folder_.path() / "leak");
  EXPECT_THAT(code("command: [a], code: linked/a.py"), ElementsAre("linked/a.py"));
  EXPECT_THROW(code("command: [cat, leak]"), core::InputError);
  EXPECT_THROW(code("command: [a], code: ."), core::InputError);
  fs::remove(folder_.path() / "leak");
  EXPECT_THAT(code("command: [a], code: real"), testing::Contains("real/a.py"));
}

TEST_F(CodeResolving, links_that_multiply_the_paths_to_a_folder_are_refused) {
  constexpr int depth = 16;
  const auto folder = [](int i) { return "code/d" + std::to_string(i); };
  write(folder(depth) + "/a.py");
  for (int i = 0; i < depth; ++i)
    for (const auto* link : {"/a", "/b"}) {
      core::make_folders(folder_.path() / folder(i));
      fs::create_directory_symlink("../d" + std::to_string(i + 1),
                                   folder_.path() / (folder(i) + link));
    }
  EXPECT_THAT(code("command: [a], code: code/d10"), testing::SizeIs(1 << 6));
  try {
    code("command: [a], code: code/d0");
    FAIL() << "65,536 paths to one file";
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("by more than 1000 paths"));
  }
}

TEST_F(CodeResolving, a_file_whose_path_is_too_long_to_be_read_is_refused) {
  const core::Descriptor top(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string name(200, 'd');
  core::Descriptor place(::dup(top.get()));
  for (int i = 0; i < 25; ++i) {
    ASSERT_EQ(::mkdirat(place.get(), name.c_str(), 0777), 0);
    place = core::Descriptor(::openat(place.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
  }
  try {
    code("command: [a], code: .");
    FAIL() << "the code has less than the folder";
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("and at most 4095 can be read"));
  }
  write(".dockerignore", "dd*\n");
  EXPECT_THAT(code("command: [a], code: ."), ElementsAre(".dockerignore"));
}

TEST_F(CodeResolving, a_folder_that_may_not_be_read_is_an_error_unless_it_is_left_out) {
  write("closed/a.py");
  fs::permissions(folder_.path() / "closed", fs::perms::none);
  if (::geteuid() == 0) {  // Who may read everything.
    fs::permissions(folder_.path(), fs::perms::all);
    ASSERT_EQ(::seteuid(65534), 0);
  }
  EXPECT_THROW(code("command: [a], code: ."), core::EnvironmentError);
  write(".dockerignore", "closed\n");
  EXPECT_THAT(code("command: [a], code: ."), ElementsAre(".dockerignore"));
  [[maybe_unused]] const int again = ::seteuid(::getuid());
}

TEST_F(CodeResolving, python_of_a_virtual_environment_in_the_folder_gets_advice) {
  write(".venv/pyvenv.cfg");
  core::make_folders(folder_.path() / ".venv/bin");
  fs::create_symlink("/bin/sh", folder_.path() / ".venv/bin/python");
  try {
    code("command: .venv/bin/python train.py");
    FAIL() << "a program outside of the folder is no code";
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.diagnostics().at(0).suggestion, HasSubstr("write `python` alone"));
  }
}

TEST_F(CodeResolving, equal_steps_share_their_answer) {
  write("a.py");
  pipeline_ = parse(
      "name: x\nsteps: {s: {command: [python, a.py, --i, 1]}, t: {command: [python, a.py, --i, "
      "2]}, u: {command: [echo]}}\n",
      folder_.path() / "pipeline.yaml");
  CodeResolver resolver(pipeline_);
  EXPECT_EQ(&resolver.code_of(pipeline_.steps[0]), &resolver.code_of(pipeline_.steps[1]));
  EXPECT_NE(&resolver.code_of(pipeline_.steps[0]), &resolver.code_of(pipeline_.steps[2]));
}

TEST_F(CodeResolving, files_that_could_change_the_answer_are_among_the_sources) {
  write("src/a.py", "import b");
  const StepSpec spec = step("command: [python, src/a.py, src/later.py]");
  CodeResolver resolver(pipeline_);
  EXPECT_THAT(resolver.code_of(spec).looked_at,
              testing::IsSupersetOf({folder_.path(), folder_.path() / "src"}));
}

TEST_F(CodeResolving, a_missing_file_of_the_folder_is_named_with_the_line_to_add) {
  write("train.py", "open(NAME)");
  write("data/table.csv");
  write("helper.py");
  write("lib.sh");
  const std::string train = "command: [python, train.py]";
  const char* line =
      "'data/table.csv' is in the pipeline's folder but is not a part of the code of step 's': add "
      "`code: [train.py, data/table.csv]` to the step";
  EXPECT_THAT(
      advice(
          train,
          "Traceback\nFileNotFoundError: [Errno 2] No such file or directory: 'data/table.csv'\n"),
      Optional(std::string(line)));
  EXPECT_THAT(advice(train, "cat: data/table.csv: No such file or directory\n"),
              Optional(std::string(line)));
  EXPECT_THAT(
      advice(train, "FileNotFoundError: No such file or directory: '/pipe/code/data/table.csv'"),
      Optional(std::string(line)));
  EXPECT_THAT(advice(train, "sh: 1: .: cannot open lib.sh: No such file"),
              Optional(HasSubstr("[train.py, lib.sh]")));
  EXPECT_THAT(advice(train, "sh: 1: ./lib.sh: not found"), Optional(HasSubstr("lib.sh")));
  EXPECT_THAT(advice(train, "ModuleNotFoundError: No module named 'helper'"),
              Optional(HasSubstr("[train.py, helper.py]")));
  EXPECT_THAT(
      advice(train, "python: can't open file '/x/helper.py': [Errno 2] No such file or directory"),
      Optional(HasSubstr("helper.py")));
  EXPECT_THAT(
      advice("command: [a], code: [train.py]", "open data/table.csv: no such file or directory"),
      Optional(HasSubstr("[train.py, data/table.csv]")));
}

TEST_F(CodeResolving, a_file_that_is_nowhere_or_already_there_gets_no_advice) {
  write("train.py");
  EXPECT_EQ(advice("command: [python, train.py]", "No such file or directory: 'gone.csv'"),
            std::nullopt);
  EXPECT_EQ(advice("command: [python, train.py]", "can't open file 'train.py': Permission denied"),
            std::nullopt);
  EXPECT_EQ(advice("command: [python, train.py]", "ValueError: 'train.py'"), std::nullopt);
  EXPECT_EQ(advice("command: [python, train.py]", "No such file or directory: '/etc/../../x'"),
            std::nullopt);
}

}  // namespace
}  // namespace pipeline::spec
