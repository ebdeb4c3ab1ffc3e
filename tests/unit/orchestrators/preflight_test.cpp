#include "orchestrators/preflight.hpp"

#include <sys/wait.h>

#include <cstdio>

#include <gtest/gtest.h>

#include "core/identifier.hpp"
#include "support/attempt_builder.hpp"

namespace pipeline::orchestrators {
namespace {

namespace fs = std::filesystem;

const std::string list =
    "GPU 0: NVIDIA A100 (UUID: GPU-a)\n"
    "  MIG 1g.5gb      Device  0: (UUID: MIG-1)\n"
    "  MIG 2g.10gb     Device  1: (UUID: MIG-2)\n"
    "GPU 1: NVIDIA A100 (UUID: GPU-b)\n";

std::vector<AssignedGpu> gpus(const std::vector<std::string>& uuids) {
  std::vector<AssignedGpu> result;
  for (const auto& uuid : uuids) result.push_back({.uuid = uuid});
  return result;
}

/// A command behind the gate, with a stand-in for nvidia-smi.
class Gate : public testing::Test {
 protected:
  void smi(const std::string& script) {
    test::write(folder.path() / "nvidia-smi", "#!/bin/sh\n" + script);
    fs::permissions(folder.path() / "nvidia-smi", fs::perms(0755));
  }
  void lists(const std::string& gpus) {
    smi("if [ \"$1\" = -L ]; then printf '" + gpus + "'; else echo the table; fi\n");
  }
  /// Runs it by this shell; what it prints goes through PreflightLog.
  int run(const std::vector<std::string>& command, const std::vector<std::string>& uuids,
          const std::string& shell = "/bin/sh") {
    std::string line = "cd " + folder.path().string() + " && PATH=" + folder.path().string() +
                       ":/usr/bin:/bin exec";
    auto words = behind_gate(command, gpus(uuids));
    words[0] = shell;
    for (const auto& word : words) line += " " + core::shell_quote(word);
    std::FILE* pipe = popen((line + " 2>err").c_str(), "re");
    char buffer[7];  // so that lines come in pieces
    while (const auto got = std::fread(buffer, 1, sizeof buffer, pipe))
      gate.write(Stream::out, {buffer, got});
    gate.finish();
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  core::TemporaryFolder folder;
  test::Log log;
  PreflightLog gate{log};
};

TEST_F(Gate, runs_the_command_unchanged) {
  lists("GPU 0: A (UUID: GPU-a)\\nGPU 1: B (UUID: GPU-b)\\n");
  EXPECT_EQ(
      run({"sh", "-c", "printf '%s|' \"$@\"; echo; exit 3", "x", "a b", "", "it's $HOME", "*"},
          {"GPU-b", "GPU-a"}),
      3);
  EXPECT_TRUE(gate.is_open());
  EXPECT_EQ(log.out,
            "[preflight] the table\n[preflight] GPU 0: A (UUID: GPU-a)\n[preflight] GPU 1: B "
            "(UUID: GPU-b)\na b||it's $HOME|*|\n");
  EXPECT_FALSE(preflight_failure(gate.report(), gpus({"GPU-a", "GPU-b"}), GpuVisibility::its_own));
}

TEST_F(Gate, is_replaced_by_the_command) {
  lists("GPU 0: A (UUID: GPU-a)\\n");
  EXPECT_EQ(run({"sh", "-c", "kill -TERM $$"}, {"GPU-a"}), -SIGTERM)
      << "no shell in between turns the signal into exit code 143";
}

TEST_F(Gate, leaves_no_variable_behind) {
  lists("GPU 0: A (UUID: GPU-a)\\n");
  for (const char* name : {"code", "list", "seen", "own", "wanted", "whole", "word", "hit"})
    setenv(name, "mine", 1);
  EXPECT_EQ(run({"sh", "-c", "echo $code $list $seen $own $wanted $whole $word $hit"}, {"GPU-a"}),
            0);
  for (const char* name : {"code", "list", "seen", "own", "wanted", "whole", "word", "hit"})
    unsetenv(name);
  EXPECT_TRUE(log.out.ends_with("]\nmine mine mine mine mine mine mine mine\n") ||
              log.out.ends_with(")\nmine mine mine mine mine mine mine mine\n"))
      << log.out;
}

TEST_F(Gate, stays_closed_unless_exactly_the_attempts_gpus_are_visible) {
  lists(
      "GPU 0: A (UUID: GPU-a)\\n  MIG 1g Device 0: (UUID: MIG-1)\\n  MIG 2g Device 1: (UUID: "
      "MIG-2)\\nGPU 1: B (UUID: GPU-b)\\n");
  const std::vector<std::vector<std::string>> wrong{
      {"GPU-b"}, {"GPU-a"}, {"GPU-a", "GPU-b"}, {"MIG-1", "GPU-b"}, {"GPU-a", "MIG-1", "MIG-2"},
      {"GPU-c"}};
  for (const auto& own : wrong) {
    EXPECT_EQ(run({"echo", "started"}, own), gate_closed) << own[0];
    EXPECT_EQ(log.out.find("started"), std::string::npos);
    EXPECT_TRUE(preflight_failure(gate.report(), gpus(own), GpuVisibility::its_own));
  }
  EXPECT_FALSE(gate.is_open());
  EXPECT_EQ(run({"echo", "started"}, {"MIG-2", "GPU-b", "MIG-1"}), 0);
  EXPECT_TRUE(gate.is_open());
}

TEST_F(Gate, a_failing_nvidia_smi_keeps_the_gate_closed) {
  smi("echo 'NVIDIA-SMI has failed because it could not'; exit 9\n");
  EXPECT_EQ(run({"echo", "started"}, {"GPU-a"}), gate_closed);
  EXPECT_EQ(gate.report().code, 9);
  EXPECT_EQ(log.out, "[preflight] NVIDIA-SMI has failed because it could not\n");
}

TEST_F(Gate, a_missing_nvidia_smi_keeps_the_gate_closed) {
  EXPECT_EQ(run({"echo", "started"}, {"GPU-a"}), gate_closed);
  EXPECT_EQ(gate.report().code, 127);
}

TEST_F(Gate, a_table_without_a_last_line_end_is_whole) {
  smi("[ \"$1\" = -L ] && printf 'GPU 0: A (UUID: GPU-a)' || printf 'the table'\n");
  EXPECT_EQ(run({"echo", "started"}, {"GPU-a"}), 0);
  EXPECT_EQ(log.out, "[preflight] the table\n[preflight] GPU 0: A (UUID: GPU-a)\nstarted\n");
}

TEST_F(Gate, does_not_take_output_of_the_command_for_its_own) {
  lists("GPU 0: A (UUID: GPU-a)\\n");
  EXPECT_EQ(run({"printf", "pipe-preflight list 9\\nno end"}, {"GPU-a"}), 0);
  EXPECT_TRUE(log.out.ends_with(")\npipe-preflight list 9\nno end")) << log.out;
  EXPECT_EQ(gate.report().code, 0);
}

TEST_F(Gate, works_in_other_shells) {
  lists("GPU 0: A (UUID: GPU-a)\\n");
  for (const char* shell : {"/bin/bash", "/bin/dash", "/bin/ksh", "/bin/zsh"})
    if (fs::exists(shell)) {
      EXPECT_EQ(run({"true"}, {"GPU-a"}, shell), 0) << shell;
    }
}

TEST(Preflight, a_divided_gpu_counts_by_its_slices) {
  EXPECT_EQ(visible_gpus(list), (std::vector<std::string>{"MIG-1", "MIG-2", "GPU-b"}));
  EXPECT_TRUE(visible_gpus("").empty());
  EXPECT_TRUE(visible_gpus("GPU 0: (UUID: ").size() <= 1);
}

TEST(Preflight, a_process_of_this_machine_may_see_the_others) {
  const SmiReport report{0, "", list};
  EXPECT_FALSE(preflight_failure(report, gpus({"GPU-b"}), GpuVisibility::all));
  EXPECT_FALSE(preflight_failure(report, gpus({"MIG-2"}), GpuVisibility::all));
  EXPECT_EQ(preflight_failure(report, gpus({"GPU-c"}), GpuVisibility::all)->kind,
            FailureKind::infrastructure);
}

TEST(Preflight, only_temporary_failures_can_be_tried_again) {
  EXPECT_EQ(
      preflight_failure({15, "GPU is lost", ""}, gpus({"GPU-a"}), GpuVisibility::its_own)->kind,
      FailureKind::infrastructure);
  EXPECT_EQ(preflight_failure({9, "couldn't communicate with the NVIDIA driver", ""},
                              gpus({"GPU-a"}), GpuVisibility::its_own)
                ->kind,
            FailureKind::not_started);
  EXPECT_EQ(preflight_hangs(std::chrono::seconds(120)).kind, FailureKind::infrastructure);
}

}  // namespace
}  // namespace pipeline::orchestrators
