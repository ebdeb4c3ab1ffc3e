#include "agent/programs.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "support/agent_file.hpp"

namespace pipeline::kubernetes_api {
namespace {

class Agent : public testing::Test {
 protected:
  Agent() { test::write_agent(program); }
  /// Exit code of the agent, which copies itself there; what it says is in `said`.
  int install(const std::filesystem::path& target) {
    FILE* output =
        popen(("'" + program.string() + "' install '" + target.string() + "' 2>&1").c_str(), "r");
    char bytes[1000];
    said.assign(bytes, fread(bytes, 1, sizeof bytes, output));
    const int status = pclose(output);
    return WEXITSTATUS(status);
  }

  core::TemporaryFolder folder;
  std::filesystem::path program = folder.path() / "program";
  std::string said;
};

TEST_F(Agent, copies_itself_for_later_containers) {
  const auto target = folder.path() / "agent";
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(install(target), 0) << said;
    EXPECT_EQ(core::read_file(target), agent::agent_program());
    struct stat status {};
    EXPECT_EQ(stat(target.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0555u);
  }
  EXPECT_FALSE(std::filesystem::exists(target.string() + ".new"));
}

TEST_F(Agent, says_why_it_cannot_copy_itself) {
  const auto target = folder.path() / "missing" / "agent";
  EXPECT_EQ(install(target), 1);
  EXPECT_EQ(said, "pipe-agent: cannot install itself as " + target.string() +
                      ": No such file or directory\n");
}

TEST_F(Agent, samples_the_gpus_and_does_not_count_the_samplers_own_use) {
  const auto smi = folder.path() / "nvidia-smi", sampled = folder.path() / "sampled";
  core::write_file_atomically(
      smi,
      "#!/bin/sh\n"
      "[ \"$3\" = -lms ] || exit 2\n"
      "i=0; while [ $i -lt 500000 ]; do i=$((i + 1)); done\n"
      "echo '0, GPU-1, H100, 50, 10, 80'; echo '0, GPU-1, H100, 100, 20, 80'\n"
      "touch '" +
          sampled.string() + "'; exec sleep 60\n");
  chmod(smi.c_str(), 0700);
  const auto run = [&](const std::string& options, const std::string& step) {
    FILE* output = popen(("PATH='" + folder.path().string() + "':$PATH '" + program.string() +
                          "' " + options + " /stop " + step)
                             .c_str(),
                         "r");
    std::string text(4096, ' ');
    text.resize(fread(text.data(), 1, text.size(), output));
    EXPECT_EQ(pclose(output), 0);
    return text;
  };
  const auto text =
      run("--gpus", "sh -c 'until [ -e " + sampled.string() + " ]; do sleep 0.2; done'");
  EXPECT_NE(text.find(R"("gpus":[{"index":0,"uuid":"GPU-1","model":"H100","mean_load":0.7500,)"
                      R"("peak_load":1.00,"mean_memory":15728640,"peak_memory":20971520,)"
                      R"("memory":83886080}])"),
            std::string::npos)
      << text;
  const auto user = text.find("\"user_us\":");
  ASSERT_NE(user, std::string::npos);
  EXPECT_LT(std::stol(text.substr(user + 10)), 150'000) << text;
  EXPECT_EQ(run("", "true").find("gpus"), std::string::npos);
}

/// What a driver does that gives an attempt up, since its node is lost to the cluster.
TEST_F(Agent, ends_a_step_whose_folder_was_removed_and_writes_no_end) {
  const auto job = folder.path() / "job", status = folder.path() / "ended";
  core::make_folders(job);
  const auto line = "'" + program.string() + "' --status '" + status.string() + "' '" +
                    (job / "stop").string() + "' sh -c 'rm -r " + job.string() +
                    "; sleep 1000' >/dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 128 + SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(status));
}

/// With a stager that notes what it is asked for and says something.
TEST_F(Agent, has_the_checkpoint_sent_while_the_step_runs_and_when_it_has_failed_or_was_stopped) {
  const auto stager = folder.path() / "stager", asked = folder.path() / "asked";
  core::write_file_atomically(stager,
                              "#!/bin/sh\n"
                              "echo $1 $3 >> '" +
                                  asked.string() +
                                  "'\n"
                                  "[ $1 = collect ] || echo said-by-$1 >&2\n"
                                  "[ $1 != keep ] || exec sleep 1000\n");
  chmod(stager.c_str(), 0700);
  const auto run = [&](const std::string& step) {
    core::write_file_atomically(asked, "");
    const auto line = "'" + program.string() + "' --collect '" + stager.string() +
                      "' document --checkpoint /stop sh -c 'until grep -q keep " + asked.string() +
                      "; do sleep 0.01; done; " + step + "'";
    FILE* output = popen(line.c_str(), "r");
    std::string text(4096, ' ');
    text.resize(fread(text.data(), 1, text.size(), output));
    said = text;
    return WEXITSTATUS(pclose(output));
  };
  EXPECT_EQ(run("exit 0"), 0);
  EXPECT_EQ(core::read_file(asked), "keep\ncollect 0\n");
  EXPECT_NE(said.find("said-by-keep"), said.npos)
      << "the output of the program is in the step's log";
  EXPECT_EQ(run("exit 3"), 3);
  EXPECT_EQ(core::read_file(asked), "keep\nsave\ncollect 3\n");
  EXPECT_NE(said.find("said-by-save"), said.npos);
  EXPECT_EQ(run("kill -TERM $PPID; exec sleep 1000"), 128 + 15);
  EXPECT_EQ(core::read_file(asked), "keep\nsave\ncollect 143\n");
  EXPECT_LT(said.find("said-by-save"), said.rfind("\n."));
}

TEST_F(Agent, waits_for_the_services_of_a_step_and_tells_them_when_it_has_ended) {
  const auto services = folder.path() / "services";
  std::filesystem::create_directory(services);
  const auto run = [&](const std::string& words) {
    FILE* output = popen(("'" + program.string() + "' " + words + " 2>&1").c_str(), "r");
    char bytes[1000];
    said.assign(bytes, fread(bytes, 1, sizeof bytes, output));
    return WEXITSTATUS(pclose(output));
  };
  const auto step =
      "--services '" + services.string() + "' 2 /stop sh -c 'ls " + services.string() + "; exit 3'";
  const auto probe = [&](const std::string& name, const std::string& check) {
    return "probe '" + (services / name).string() + "' " + check;
  };
  EXPECT_EQ(run(probe("db", "run false")), 1);
  EXPECT_EQ(run(probe("db", "run /no/such/program")), 127);
  EXPECT_EQ(said, "/no/such/program: No such file or directory\n");
  EXPECT_EQ(run(probe("db", "port 1")), 1);
  EXPECT_TRUE(std::filesystem::is_empty(services)) << "no service is ready";
  EXPECT_EQ(run("needed '" + services.string() + "'"), 0);
  EXPECT_EQ(run(probe("db", "run true")), 0);
  FILE* waiting = popen(("'" + program.string() + "' " + step).c_str(), "r");
  EXPECT_EQ(run(probe("web", "run true")), 0);
  char bytes[1000];
  said.assign(bytes, fread(bytes, 1, sizeof bytes, waiting));
  EXPECT_EQ(WEXITSTATUS(pclose(waiting)), 3);
  EXPECT_EQ(said.substr(0, 5), "w0 0 ") << "both services are ready";
  EXPECT_NE(said.find(" 3 web\n"), said.npos) << said;
  EXPECT_EQ(run("needed '" + services.string() + "'"), 1) << "the step has ended";
}

TEST_F(Agent, reports_once_for_each_silence_of_a_step_where_it_waits) {
  const auto go_on = folder.path() / "go_on";
  core::write_file_atomically(
      folder.path() / "step",
      "#!/bin/sh\nuntil [ -e \"$1\" ]; do sleep 0.1; done; rm \"$1\"; echo noise\n"
      "until [ -e \"$1\" ]; do sleep 0.1; done\n");
  chmod((folder.path() / "step").c_str(), 0700);
  FILE* output = popen(("'" + program.string() + "' --stalled-after 100 /stop '" +
                        folder.path().string() + "/step' '" + go_on.string() + "'")
                           .c_str(),
                       "r");
  std::string frames;
  char line[8192];
  while (fgets(line, sizeof line, output)) {
    frames += line[0];
    if (line[0] == 'w') {
      EXPECT_NE(std::string(line).find("/step " + go_on.string() + "\t"), std::string::npos)
          << line;
      core::write_file_atomically(go_on, "");
    }
  }
  EXPECT_EQ(pclose(output), 0);
  EXPECT_EQ(frames, "wowu.");
}

TEST_F(Agent, does_not_call_a_step_stalled_that_computes_in_silence) {
  const auto idle = folder.path() / "idle", gate = folder.path() / "gate";
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  core::write_file_atomically(folder.path() / "step",
                              "#!/bin/sh\nend=$(($(date +%s%N) / 1000000 + 1600))\n"
                              "while [ $(($(date +%s%N) / 1000000)) -lt $end ]; do :; done\n"
                              "touch \"$1\"; read -r line < \"$2\"\n");
  chmod((folder.path() / "step").c_str(), 0700);
  FILE* output =
      popen(("'" + program.string() + "' --stalled-after 800 --progress /stop '" +
             folder.path().string() + "/step' '" + idle.string() + "' '" + gate.string() + "'")
                .c_str(),
            "r");
  std::string frames;
  char line[8192];
  while (fgets(line, sizeof line, output)) {
    if (frames.empty() || frames.back() != line[0]) frames += line[0];
    if (line[0] != 'w') continue;
    EXPECT_TRUE(std::filesystem::exists(idle)) << "called stalled while it computed";
    std::ofstream(gate) << "\n";
  }
  EXPECT_EQ(pclose(output), 0);
  EXPECT_TRUE(frames.starts_with("aw") && frames.ends_with("u.")) << frames;
  EXPECT_EQ(std::ranges::count(frames, 'w'), 1) << frames;
}

/// The processor that an executable of Linux names (ELF's e_machine).
int machine_of(std::string_view program) {
  return program.size() < 20 || !program.starts_with(
                                    "\x7f"
                                    "ELF")
             ? 0
             : static_cast<unsigned char>(program[18]) +
                   (static_cast<unsigned char>(program[19]) << 8);
}

TEST(PodPrograms, are_for_the_architecture_that_was_asked_for) {
  constexpr int x86_64 = 62, aarch64 = 183;
  for (const auto& [architecture, machine] : {std::pair("amd64", x86_64), {"arm64", aarch64}}) {
    try {
      EXPECT_EQ(machine_of(agent::agent_program(architecture)), machine);
      EXPECT_EQ(machine_of(agent::stager_program(architecture)), machine);
    } catch (const core::EnvironmentError& error) {
      EXPECT_NE(architecture, agent::own_architecture) << error.what();
    }
  }
  EXPECT_THROW(agent::agent_program("s390x"), core::EnvironmentError);
  EXPECT_THROW(agent::stager_program("s390x"), core::EnvironmentError);
}

/// A folder as Slurm's jobs have it, and the agent that begins one of them.
class AgentJob : public Agent {
 protected:
  AgentJob() {
    core::make_folders(folder.path() / "jobs/a job");
    core::make_folders(folder.path() / "events");
    core::write_file_atomically(folder.path() / "jobs/a job/script",
                                "env\necho \"[$PIPE_TEMPORARY]\"\nrmdir \"$PIPE_TEMPORARY\"\n");
    core::write_file_atomically(folder.path() / "list", "another\na job\n");
  }
  /// Returns the exit code; what the script has printed is in `said`.
  int begin(const std::string& variables, const std::string& which) {
    FILE* output =
        popen(("cd '" + folder.path().string() + "' && env TOKEN=secret SLURM_JWT=s " + variables +
               " '" + program.string() + "' job jobs events " + which + " 2>&1")
                  .c_str(),
              "r");
    char bytes[8000];
    said.assign(bytes, fread(bytes, 1, sizeof bytes, output));
    const int status = pclose(output);
    return WEXITSTATUS(status);
  }
};

TEST_F(AgentJob, begins_once_with_slurms_variables_alone) {
  const std::string variables =
      "SLURM_JOB_ID=7 SLURMD_NODENAME=n1 SLURM_JOB_NAME=x CUDA_VISIBLE_DEVICES=0";
  EXPECT_EQ(begin(variables, "'a job'"), 0) << said;
  EXPECT_EQ(core::read_file(folder.path() / "events/a job.begun"), "7 n1 a job\n");
  EXPECT_EQ(said.find("TOKEN"), said.npos) << said;
  EXPECT_EQ(said.find("SLURM_JWT"), said.npos) << said;
  EXPECT_NE(said.find("CUDA_VISIBLE_DEVICES=0\n"), said.npos) << said;
  EXPECT_NE(said.find("[/tmp/pipe-slurm-"), said.npos) << said;
  EXPECT_EQ(begin(variables, "'a job'"), 0);
  EXPECT_EQ(said, "");  // Another job has begun it.
}

TEST_F(AgentJob, in_an_array_has_the_name_of_its_task) {
  const std::string task = "SLURM_ARRAY_JOB_ID=5 SLURMD_NODENAME=n2 SLURM_JOB_NAME=x ";
  EXPECT_EQ(begin(task + "SLURM_ARRAY_TASK_ID=1", "--list list"), 0) << said;
  EXPECT_EQ(core::read_file(folder.path() / "events/a job.begun"), "5_1 n2 x\n");
  EXPECT_NE(said.find("SLURM_JOB_NAME=a job\n"), said.npos) << said;
  EXPECT_EQ(said.find("SLURM_ARRAY_"), said.npos) << said;
  EXPECT_EQ(begin(task + "SLURM_ARRAY_TASK_ID=2", "--list list"), 1);
  EXPECT_EQ(begin(task + "SLURM_ARRAY_TASK_ID=0", "--list list"), 1);  // It has no folder.
  EXPECT_NE(said.find("jobs/another/claim: No such file"), said.npos) << said;
}

}  // namespace
}  // namespace pipeline::kubernetes_api
