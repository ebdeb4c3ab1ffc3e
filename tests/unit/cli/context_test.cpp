#include "cli/context.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::cli {
namespace {

namespace fs = std::filesystem;

/// A folder of the test's own as working directory, and no PIPE_HOME.
class ContextTest : public testing::Test {
 protected:
  ContextTest() {
    ::unsetenv("PIPE_HOME");
    fs::current_path(folder_.path());
    here_ = fs::current_path();
  }
  ~ContextTest() override {
    ::unsetenv("PIPE_HOME");
    fs::current_path("/");
  }
  static std::string error_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const core::InputError& error) {
      return error.diagnostics().front().message + " | " + error.diagnostics().front().suggestion;
    }
    return "none";
  }
  static void touch(const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "";
  }

  core::TemporaryFolder folder_;
  fs::path here_;
};

TEST_F(ContextTest, state_folder_comes_from_the_option_else_the_variable_else_the_files_folder) {
  EXPECT_EQ(Context({}).state_beside("/p/pipeline.yaml"), "/p/.pipe");
  ::setenv("PIPE_HOME", "/from/variable", 1);
  EXPECT_EQ(Context({}).state_beside("/p/pipeline.yaml"), "/from/variable");
  Options options;
  options.state = "mine";
  EXPECT_EQ(Context(options).state_beside("/p/pipeline.yaml"), here_ / "mine");
}

TEST_F(ContextTest, an_empty_name_is_not_taken_for_a_file) {
  Options options;
  options.file = "";
  EXPECT_EQ(error_of([&] { (void)Context(options).pipeline_file(); }),
            "the name of the pipeline file is empty | a variable in the command line may be unset");
}

TEST_F(ContextTest, without_a_file_the_nearest_state_folder_above_is_used) {
  EXPECT_FALSE(Context({}).existing_state());
  touch(here_ / ".pipe" / "pipe.db");
  fs::create_directories(here_ / "a" / "b");
  fs::current_path(here_ / "a" / "b");
  EXPECT_EQ(Context({}).existing_state(), here_ / ".pipe");
  fs::create_directories(here_ / "a" / ".pipe");
  EXPECT_EQ(Context({}).existing_state(), here_ / ".pipe")
      << "a folder that only has the name is none";
  touch(here_ / "a" / ".pipe" / "pipe.db");
  EXPECT_EQ(Context({}).existing_state(), here_ / "a" / ".pipe");
}

TEST_F(ContextTest, a_missing_state_folder_is_the_users_error) {
  EXPECT_NE(error_of([] { Context({}).required_state(); }).find("--state DIR"), std::string::npos);
  Options options;
  options.state = here_ / "nowhere";
  EXPECT_NE(error_of([&] { Context(options).required_state(); }).find("nowhere"),
            std::string::npos);
}

TEST_F(ContextTest, a_missing_pipeline_file_is_reported_with_the_files_that_exist) {
  EXPECT_EQ(error_of([] { Context({}).pipeline_file(); }),
            "there is no file pipeline.yaml | `pipe init` writes a pipeline to start from");
  touch(here_ / "digits.yaml");
  EXPECT_EQ(error_of([] { Context({}).pipeline_file(); }),
            "there is no file pipeline.yaml | did you mean 'digits.yaml'?");
  touch(here_ / "pipline.yaml");
  EXPECT_EQ(error_of([] { Context({}).pipeline_file(); }),
            "there is no file pipeline.yaml | did you mean 'pipline.yaml'?");
}

TEST_F(ContextTest, a_folder_stands_for_its_pipeline_file) {
  touch(here_ / "sub" / "pipeline.yaml");
  Options options;
  options.file = "sub/";
  EXPECT_EQ(Context(options).pipeline_file(), here_ / "sub" / "pipeline.yaml");
}

TEST_F(ContextTest, a_new_state_folder_is_ignored_by_git) {
  Context context({});
  context.store(here_ / ".pipe");
  EXPECT_EQ(core::read_file(here_ / ".pipe" / ".gitignore"), "*\n");
}

TEST_F(ContextTest, paths_below_the_working_directory_are_shown_relative) {
  EXPECT_EQ(shown_path(here_ / "a" / "b"), "a/b");
  EXPECT_EQ(shown_path("/elsewhere/x"), "/elsewhere/x");
}

TEST_F(ContextTest, a_task_gives_its_result_or_throws_its_error) {
  Context context({});
  EXPECT_EQ(context.await([]() -> async::Task<int> { co_return 7; }()), 7);
  EXPECT_THROW(context.await([]() -> async::Task<> {
    throw core::EnvironmentError("no");
    co_return;
  }()),
               core::EnvironmentError);
  EXPECT_EQ(context.await([]() -> async::Task<int> { co_return 8; }()), 8)
      << "the loop can be used again";
}

}  // namespace
}  // namespace pipeline::cli
