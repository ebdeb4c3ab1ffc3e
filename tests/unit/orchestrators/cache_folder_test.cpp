#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "core/error.hpp"
#include "core/file.hpp"
#include "orchestrators/cache_folder.hpp"

namespace pipeline::orchestrators {
namespace {

namespace fs = std::filesystem;

/// The variables of a service: no HOME, and a folder for temporary files that others share.
class CacheFolder : public testing::Test {
 protected:
  CacheFolder() {
    for (const char* name : {"HOME", "XDG_CACHE_HOME", "PIPE_CACHE_DIR", "TMPDIR"}) {
      const char* value = std::getenv(name);
      if (value) before_[name] = value;
      ::unsetenv(name);
    }
    ::setenv("TMPDIR", shared_.path().c_str(), 1);
  }
  ~CacheFolder() override {
    ::unsetenv("TMPDIR");
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  fs::path made() const { return shared_.path() / ("pipe-cache-" + std::to_string(::geteuid())); }

 private:
  std::map<std::string, std::string> before_;
  const core::TemporaryFolder shared_;
};

TEST_F(CacheFolder, of_a_caller_without_home_is_private) {
  EXPECT_EQ(cache_folder(), made());
  EXPECT_EQ(fs::status(made()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(cache_folder(), made()) << "the next time it is there";
}

TEST_F(CacheFolder, that_another_user_may_have_made_is_not_used) {
  fs::create_directory(made());
  fs::permissions(made(), fs::perms::all);
  EXPECT_THROW(cache_folder(), core::EnvironmentError);
  fs::remove(made());
  const core::TemporaryFolder elsewhere;
  fs::create_directory_symlink(elsewhere.path(), made());
  EXPECT_THROW(cache_folder(), core::EnvironmentError);
}

}  // namespace
}  // namespace pipeline::orchestrators
