#include "spec/failure_advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"
#include "spec/code_resolver.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::spec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A pipeline's folder with a file `lib/helpers.py`.
struct Folder {
  Folder() {
    core::make_folders(folder.path() / "lib");
    core::write_file_atomically(folder.path() / "lib/helpers.py", "");
    core::write_file_atomically(folder.path() / "train.py", "import helpers\n");
  }
  PipelineSpec pipeline(const std::string& command) const {
    return parse("name: x\nsteps: {a: {command: " + command + "}}\n",
                 folder.path() / "pipeline.yaml");
  }
  std::string advice(const std::string& output) const {
    const auto one = pipeline("[python, train.py]");
    return CodeResolver(one).failure_advice(one.steps[0], output).value_or("none");
  }
  std::vector<std::string> missing(const std::string& command) const {
    const auto one = pipeline(command);
    return CodeResolver(one).missing_scripts(one.steps[0]);
  }
  core::TemporaryFolder folder;
};

TEST(FailureAdvice, a_missing_package_has_the_name_of_the_index) {
  const Folder folder;
  EXPECT_THAT(folder.advice("ModuleNotFoundError: No module named 'cv2'\n"),
              HasSubstr("requirements: [opencv-python-headless]"));
  EXPECT_THAT(folder.advice("ModuleNotFoundError: No module named 'sklearn.svm'\n"),
              HasSubstr("requirements: [scikit-learn]"));
  EXPECT_THAT(folder.advice("ModuleNotFoundError: No module named 'pandas'\n"),
              HasSubstr("requirements: [pandas]"));
}

TEST(FailureAdvice, a_module_of_another_folder_is_to_be_added_to_the_code) {
  const Folder folder;
  EXPECT_THAT(folder.advice("ModuleNotFoundError: No module named 'helpers'\n"),
              HasSubstr("add `code: [train.py, lib/helpers.py]`"));
}

TEST(FailureAdvice, a_file_named_by_its_absolute_path_is_to_be_read_by_its_relative_one) {
  const Folder folder;
  core::write_file_atomically(folder.folder.path() / "data.csv", "");
  const auto data = (folder.folder.path() / "data.csv").string();
  for (const auto& line :
       {"PermissionError: [Errno 13] Permission denied: '" + data + "'\n",
        "FileNotFoundError: [Errno 2] No such file or directory: '" + data + "'\n"}) {
    EXPECT_THAT(folder.advice(line), HasSubstr("read 'data.csv', relative"));
    EXPECT_THAT(folder.advice(line), HasSubstr("add `code: [train.py, data.csv]`"));
  }
  const auto script = (folder.folder.path() / "train.py").string();
  EXPECT_THAT(folder.advice("cat: " + script + ": Permission denied\n"),
              AllOf(HasSubstr("read 'train.py', relative"), Not(HasSubstr("code:"))));
}

TEST(FailureAdvice, a_file_outside_of_the_folder_is_to_be_an_input) {
  const Folder folder;
  const core::TemporaryFolder other;
  core::write_file_atomically(other.path() / "data.csv", "");
  const auto data = (other.path() / "data.csv").string();
  EXPECT_THAT(folder.advice("cat: " + data + ": Permission denied\n"),
              HasSubstr("add `inputs: {NAME: " + data + "}`"));
  EXPECT_EQ(folder.advice("cat: /etc/shadow: Permission denied\n"), "none");
  EXPECT_EQ(folder.advice("cat: " + data + ".gone: Permission denied\n"), "none");
}

TEST(FailureAdvice, a_missing_script_is_not_taken_for_a_missing_interpreter) {
  const Folder folder;
  const core::TemporaryFolder other;
  core::write_file_atomically(other.path() / "python", "");
  const auto one = folder.pipeline("[python, trian.py]");
  const auto said =
      (other.path() / "python").string() +
      ": can't open file '/pipe/code/trian.py': [Errno 2] No such file or directory\n";
  EXPECT_EQ(CodeResolver(one).failure_advice(one.steps[0], said),
            "there is no file 'trian.py' in the pipeline's folder: did you mean 'train.py'?");
  EXPECT_EQ(folder.advice(said), "none");
  EXPECT_THAT(folder.advice("lib/helpers.py: No such file or directory\n"),
              HasSubstr("add `code: [train.py, lib/helpers.py]`"));
}

TEST(FailureAdvice, a_write_into_the_code_has_the_folder_for_outputs_as_advice) {
  const Folder folder;
  for (const char* line : {"OSError: [Errno 30] Read-only file system: 'out.csv'\n",
                           "sh: 1: cannot create out.csv: Read-only file system\n",
                           "PermissionError: [Errno 13] Permission denied: 'out.csv'\n"}) {
    EXPECT_THAT(folder.advice(line), HasSubstr("'out.csv' cannot be written"));
    EXPECT_THAT(folder.advice(line), HasSubstr("$PIPE_SCRATCH"));
  }
  for (const char* line : {"ValueError: no\n", "sh: 1: ./run.sh: Permission denied\n",
                           "PermissionError: [Errno 13] Permission denied: '/etc/shadow'\n"})
    EXPECT_EQ(folder.advice(line), "none") << line;
}

TEST(MissingScripts, are_found) {
  const Folder folder;
  EXPECT_THAT(folder.missing("[python, trian.py]"), ElementsAre("trian.py"));
  EXPECT_THAT(folder.missing("python3 trian.py && bash run.sh"), ElementsAre("trian.py", "run.sh"));
  EXPECT_THAT(folder.missing("./run.sh --fast"), ElementsAre("./run.sh"));
  for (const char* fine :
       {"./train.py", "[python, train.py]", "[python, /opt/x.py]", "[python, -m, train]",
        "cd lib && python x.py", "\"python ${step.name}.py\"", "[cat, x.py]"})
    EXPECT_THAT(folder.missing(fine), IsEmpty()) << fine;
}

}  // namespace
}  // namespace pipeline::spec
