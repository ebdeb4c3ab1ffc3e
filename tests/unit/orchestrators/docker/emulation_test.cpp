#include "orchestrators/docker/emulation.hpp"

#include <gtest/gtest.h>

#include "core/file.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

class Emulation : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    core::make_folders((proc_.path() / path).parent_path());
    core::write_file_atomically(proc_.path() / path, text);
  }
  bool cannot(const std::string& platform, const std::string& architecture = "amd64") {
    return cannot_execute(platform, architecture, proc_.path());
  }
  core::TemporaryFolder proc_;
};

TEST_F(Emulation, a_kernel_without_handlers_executes_its_own_programs_only) {
  write("filesystems", "nodev\tproc\n\text4\n");
  EXPECT_TRUE(cannot("linux/arm64"));
  EXPECT_TRUE(cannot("linux/arm64/v8"));
  EXPECT_TRUE(cannot("linux/amd64", "arm64"));
  EXPECT_FALSE(cannot("linux/amd64"));
  EXPECT_FALSE(cannot("linux/amd64/v3"));
  EXPECT_FALSE(cannot("linux/386"));
  EXPECT_FALSE(cannot("linux/arm/v7", "arm64"));
  EXPECT_FALSE(cannot("linux/unheard-of"));
}

TEST_F(Emulation, handlers_that_cannot_be_seen_are_assumed) {
  write("filesystems", "nodev\tbinfmt_misc\n");
  EXPECT_FALSE(cannot("linux/arm64"));
}

TEST_F(Emulation, an_enabled_handler_of_the_architecture_is_enough) {
  write("filesystems", "nodev\tbinfmt_misc\n");
  write("sys/fs/binfmt_misc/register", "");
  write("sys/fs/binfmt_misc/status", "enabled\n");
  write("sys/fs/binfmt_misc/python3.11", "enabled\n");
  EXPECT_TRUE(cannot("linux/arm64"));
  write("sys/fs/binfmt_misc/qemu-arm", "enabled\ninterpreter /usr/bin/qemu-arm\n");
  EXPECT_TRUE(cannot("linux/arm64"));
  write("sys/fs/binfmt_misc/qemu-aarch64", "disabled\n");
  EXPECT_TRUE(cannot("linux/arm64"));
  write("sys/fs/binfmt_misc/qemu-aarch64", "enabled\ninterpreter /usr/bin/qemu-aarch64\n");
  EXPECT_FALSE(cannot("linux/arm64"));
  write("sys/fs/binfmt_misc/rosetta", "enabled\n");
  EXPECT_FALSE(cannot("linux/amd64", "arm64"));
}

}  // namespace
}  // namespace pipeline::orchestrators::docker_engine
