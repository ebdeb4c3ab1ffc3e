#include "orchestrators/docker/open_folders.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

namespace fs = std::filesystem;

class OpenFoldersTest : public testing::Test {
 protected:
  fs::path made(const std::string& name, unsigned mode) const {
    fs::create_directory(state_.path() / name);
    fs::permissions(state_.path() / name, fs::perms(mode));
    return state_.path() / name;
  }
  static unsigned mode_now(const fs::path& folder) {
    return static_cast<unsigned>(fs::status(folder).permissions());
  }

 private:
  const core::TemporaryFolder state_;
};

TEST_F(OpenFoldersTest, are_reached_by_no_other_user_of_the_machine) {
  const auto attempt = made("attempt", 0755), outputs = made("attempt/outputs", 0755);
  {
    const OpenFolders opened({outputs, fs::path()});
    EXPECT_EQ(mode_now(outputs), 0777U);
    EXPECT_EQ(mode_now(attempt), 0700U);
  }
  EXPECT_EQ(mode_now(outputs), 0755U)
      << "the folder may be kept in another place, which others can reach";
}

TEST_F(OpenFoldersTest, are_reached_by_a_group_that_shares_the_state) {
  const auto attempt = made("attempt", 02775), outputs = made("attempt/outputs", 02775);
  const OpenFolders opened({outputs});
  EXPECT_EQ(mode_now(attempt), 02770U);
}

TEST_F(OpenFoldersTest, that_do_not_exist_are_an_error) {
  EXPECT_THROW(OpenFolders({made("attempt", 0755) / "none"}), core::EnvironmentError);
}

}  // namespace
}  // namespace pipeline::orchestrators::docker_engine
