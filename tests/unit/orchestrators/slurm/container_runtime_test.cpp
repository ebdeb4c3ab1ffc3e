// The command lines of container runtimes, and the files that a container has.
#include "orchestrators/slurm/container_runtime.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "orchestrators/slurm/image_job.hpp"
#include "orchestrators/slurm/job_status.hpp"
#include "support/attempt_builder.hpp"
#include "support/error_text.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using test::AttemptBuilder;
using test::program;
using testing::HasSubstr;
using testing::Not;

ContainerStart start_with(const std::string& runtime, bool has_gpus = false) {
  return {.runtime = runtime,
          .image = "/c/i.sqsh",
          .binds = {{"/s/pipe", "/pipe"}, {"/s/it's", "/pipe/inputs/x", true}},
          .command = {"/bin/sh", "/pipe/job/start"},
          .has_gpus = has_gpus};
}

/// Returns the words behind `set --` for this program.
std::string line_of(const std::string& commands, const std::string& program) {
  const auto begin = commands.find("  " + program + ") set -- ");
  if (begin == std::string::npos) return {};
  return commands.substr(begin, commands.find(" ;;", begin) - begin);
}

TEST(ContainerRuntime, each_has_its_own_command_line) {
  const auto plain = container_commands(start_with("any"));
  const auto gpus = container_commands(start_with("any", true));
  const std::string mounts = "--bind /s/pipe:/pipe --bind '/s/it'\\''s:/pipe/inputs/x:ro'",
                    command = " /c/i.sqsh /bin/sh /pipe/job/start";
  for (const std::string name : {"apptainer", "singularity"}) {
    EXPECT_EQ(line_of(plain, name),
              "  " + name +
                  ") set -- \"$runtime\" exec --contain --ipc --no-home "
                  "--no-mount /etc/localtime --bind \"$temporary/tmp:/tmp\" " +
                  mounts + command);
    EXPECT_THAT(line_of(gpus, name), HasSubstr("/etc/localtime --nv --bind"));
  }
  EXPECT_EQ(line_of(plain, "ch-run"),
            "  ch-run) set -- \"$runtime\" --mount=\"$temporary/image\" "
            "--bind=\"$temporary/tmp:/tmp\" --bind=/s/pipe:/pipe "
            "--bind='/s/it'\\''s:/pipe/inputs/x' /c/i.sqsh -- /bin/sh /pipe/job/start");
  EXPECT_THAT(line_of(plain, "enroot"),
              HasSubstr("ENROOT_LOGIN_SHELL=no ENROOT_MOUNT_HOME=no ENROOT_REMAP_ROOT=no "
                        "ENROOT_ROOTFS_WRITABLE=no ENROOT_UNSHARE_PID=no \"$runtime\" start --env "
                        "NVIDIA_VISIBLE_DEVICES=void $(env | sed"));
  EXPECT_THAT(line_of(plain, "enroot"),
              HasSubstr("--mount /s/pipe:/pipe:none:x-create=auto,bind,rw --mount "
                        "'/s/it'\\''s:/pipe/inputs/x:none:x-create=auto,bind,ro'" +
                        command));
  EXPECT_THAT(line_of(gpus, "enroot"), HasSubstr("NVIDIA_VISIBLE_DEVICES=all --env NVIDIA_DRIVER"));
}

TEST(ContainerRuntime, podman_has_the_image_in_a_folder_and_no_configuration_of_the_user) {
  const auto plain = container_commands(start_with("any"));
  EXPECT_EQ(line_of(plain, "podman"),
            "  podman) set -- in_podman \"$runtime\" /c/i.sqsh --rm "
            "--conmon-pidfile=\"$temporary/podman/conmon\" --pidfile=\"$temporary/podman/agent\" "
            "--read-only --userns=host --pid=private --network=host --ipc=private --shm-size=0 "
            "--cgroups=disabled --ulimit=host --group-add=keep-groups --cap-drop=all "
            "--security-opt=no-new-privileges "
            "--security-opt=label=disable --http-proxy=false --env-host=false --unsetenv-all "
            "$(env | sed -n 's/^\\(\\(SLURM\\|CUDA\\|PIPE_NODE\\)[A-Z_0-9]*\\)=.*/--env \\1/p') "
            "$(if [ -t 0 ]; then echo --interactive --tty --log-driver=none --detach-keys=; "
            "else echo --log-driver=passthrough; fi) --volume \"$temporary/tmp:/tmp\" "
            "--volume /s/pipe:/pipe --volume '/s/it'\\''s:/pipe/inputs/x:ro' "
            "--rootfs \"$temporary/image:O\" /bin/sh /pipe/job/start");
  EXPECT_THAT(line_of(container_commands(start_with("any", true)), "podman"),
              HasSubstr("fi) --device nvidia.com/gpu=all --volume"));
  EXPECT_THAT(plain, testing::HasSubstr("in_podman() {\n"));
  EXPECT_THAT(plain, HasSubstr("for name in apptainer singularity enroot ch-run podman; do"));
  EXPECT_THAT(container_commands(start_with("enroot")), Not(HasSubstr("podman")));
  const auto path = container_commands(start_with("/opt/bin/podman"));
  EXPECT_THAT(line_of(path, "/opt/bin/podman"), HasSubstr("set -- in_podman \"$runtime\""));
}

TEST(ContainerRuntime, commands_are_those_of_a_posix_shell) {
  const core::TemporaryFolder folder;
  const auto script = folder.path() / "script";
  for (const auto has_gpus : {false, true}) {
    std::ofstream(script) << container_commands(start_with("any", has_gpus));
    EXPECT_EQ(std::system(("/bin/sh -n " + script.string()).c_str()), 0);
  }
}

TEST(ContainerRuntime, for_enroot_blanks_are_escaped_as_in_fstab) {
  auto start = start_with("enroot");
  start.binds = {{"/s/my data\\x", "/pipe/inputs/my data"}};
  EXPECT_THAT(container_commands(start),
              HasSubstr("--mount '/s/my\\040data\\134x:/pipe/inputs/my\\040data:none:"));
}

TEST(ContainerRuntime, a_configured_one_is_the_only_one) {
  const auto named = container_commands(start_with("charliecloud"));
  EXPECT_THAT(named, HasSubstr("for name in ch-run; do"));
  EXPECT_EQ(line_of(named, "apptainer"), "");
  const auto path = container_commands(start_with("/apps/apptainer/1.4/bin/apptainer"));
  EXPECT_THAT(path, HasSubstr("for name in /apps/apptainer/1.4/bin/apptainer; do"));
  EXPECT_THAT(line_of(path, "/apps/apptainer/1.4/bin/apptainer"), HasSubstr("exec --contain"));
}

TEST(ContainerRuntime, an_unknown_name_is_an_error_with_a_suggestion) {
  for (const auto* known : {"any", "apptainer", "enroot", "charliecloud", "podman", "/bin/ch-run"})
    EXPECT_NO_THROW(check_container_runtime(known)) << known;
  EXPECT_THROW(check_container_runtime("/opt/bin/docker"), core::InputError);
  const auto text = test::error_text([] { check_container_runtime("aptainer"); });
  EXPECT_THAT(text, HasSubstr("'aptainer' is not a container runtime of Slurm's jobs; they are "
                              "any, apptainer, enroot, charliecloud, podman, or the path"));
  EXPECT_THAT(text, HasSubstr("did you mean 'apptainer'?"));
}

TEST(ContainerRuntime, a_path_that_no_runtime_can_mount_is_an_error) {
  auto start = start_with("any");
  start.binds.push_back({"/s/a:b", "/pipe/outputs"});
  EXPECT_THROW(container_commands(start), core::EnvironmentError);
}

TEST(ContainerRuntime, files_have_their_places_and_variables_come_from_image_and_step) {
  AttemptBuilder step(program({"train", "x"}));
  step.input("data", "data.csv", "1").output("model", "model");
  const core::TemporaryFolder folder;
  const JobPaths paths{folder.path() / "job", folder.path() / "events", "n"};
  core::make_folders(paths.folder);
  const ImageFile image{"/c/i.sqsh", {{"PATH", "/opt/bin"}, {"HOME", "/root"}}};
  const auto attempt = step.attempt();
  const auto start = write_image_job(attempt, image, {"any", "/s/agent"}, paths, attempt.code);
  EXPECT_EQ(start.binds.front().target, "/pipe");
  for (const auto& bind : start.binds)
    EXPECT_EQ(bind.is_read_only, bind.target == "/pipe" || bind.target == "/pipe/code" ||
                                     bind.target == "/pipe/inputs/data.csv" ||
                                     bind.target == "/pipe/agent")
        << bind.target;
  EXPECT_TRUE(std::filesystem::is_regular_file(paths.folder / "pipe/inputs/data.csv"));
  EXPECT_TRUE(std::filesystem::is_directory(paths.folder / "pipe/outputs"));
  const auto variables = core::read_file(paths.variables());
  for (const auto* line : {"PATH=/opt/bin\n", "HOME=/pipe/scratch\n", "TMPDIR=/tmp\n",
                           "PIPE_INPUT_DATA=/pipe/inputs/data.csv\n", "CUDA_VISIBLE_DEVICES=''\n"})
    EXPECT_THAT(variables, HasSubstr(std::string("export ") + line));
  EXPECT_THAT(core::read_file(paths.folder / "start"),
              HasSubstr("exec /pipe/agent --status /pipe/events/n.ended /pipe/job/stop train x\n"));
  const auto script = container_script(paths, start);
  EXPECT_THAT(script, HasSubstr("no_container"));
  EXPECT_THAT(script, Not(HasSubstr("PIPE_INPUT_DATA")));  // Secrets are in the private file.
}

TEST(ContainerRuntime, a_container_that_did_not_start_differs_from_one_that_ended) {
  EXPECT_TRUE(parse_status(R"({"no_container":true})")->no_container);
  EXPECT_FALSE(parse_status(R"({"code":1})")->no_container);
}

TEST(ImageFiles, incomplete_ones_are_not_used) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "x.sqsh";
  EXPECT_FALSE(is_whole_squashfs(file));
  std::string block(96, '\0');
  block.replace(0, 4, "hsqs");
  block[40] = 100;  // Bytes that it has, of which four are missing.
  std::ofstream(file, std::ios::binary) << block;
  EXPECT_FALSE(is_whole_squashfs(file));
  std::ofstream(file, std::ios::binary) << block << "more";
  EXPECT_TRUE(is_whole_squashfs(file));
  block[0] = 'x';
  std::ofstream(file, std::ios::binary) << block << "more";
  EXPECT_FALSE(is_whole_squashfs(file));
}

TEST(ImageFiles, with_other_content_than_recorded_are_not_used) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "x.sqsh";
  std::ofstream(file) << "made";
  EXPECT_FALSE(has_recorded_content(file));  // Nobody knows what was made.
  record_content(file, file);
  EXPECT_TRUE(has_recorded_content(file));
  std::filesystem::last_write_time(
      file, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_TRUE(has_recorded_content(file));  // Read again.
  std::ofstream(file) << "Made";
  EXPECT_FALSE(has_recorded_content(file));
  EXPECT_TRUE(remove_squashfs(file));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_FALSE(has_recorded_content(file));
}

TEST(ImageFiles, have_the_time_of_their_image) {
  EXPECT_EQ(seconds_of("2026-11-27T21:23:01.711123395Z"), 1795814581);
  EXPECT_EQ(seconds_of("0001-01-01T00:00:00Z"), 0);
  EXPECT_EQ(seconds_of(""), 0);
}

}  // namespace
}  // namespace pipeline::orchestrators::slurm
