// The texts that Slurm's commands read and print, and the files of the agent.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "core/identifier.hpp"
#include "orchestrators/nodes.hpp"
#include "orchestrators/slurm/client.hpp"
#include "orchestrators/slurm/gang_job.hpp"
#include "orchestrators/slurm/job_script.hpp"
#include "orchestrators/slurm/job_status.hpp"
#include "orchestrators/slurm/preflight.hpp"
#include "support/attempt_builder.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using test::AttemptBuilder;
using test::program;
namespace fs = std::filesystem;

TEST(SlurmTexts, job_number_is_found_in_output_of_sbatch_and_wrappers) {
  EXPECT_EQ(parse_job_id("4711\n"), "4711");
  EXPECT_EQ(parse_job_id("4711;cluster\n"), "4711");
  EXPECT_EQ(parse_job_id("*** Welcome to 2 clusters ***\n4711\n"), "4711");
  EXPECT_EQ(parse_job_id(""), "");
  EXPECT_EQ(parse_job_id("Submitted batch job 12\n"), "");
}

TEST(SlurmTexts, an_answer_follows_the_lines_of_a_login_shell) {
  EXPECT_EQ(last_line("*** Welcome ***\n\n1000\n"), "1000");
  EXPECT_EQ(last_line("1000"), "1000");
  EXPECT_EQ(last_line(""), "");
}

std::string output_of(const std::vector<std::string>& command) {
  std::string line;
  for (const auto& word : command) line += core::shell_quote(word) + " ";
  FILE* pipe = popen(line.c_str(), "r");
  std::array<char, 256> text{};
  const auto size = fread(text.data(), 1, text.size(), pipe);
  pclose(pipe);
  return {text.data(), size};
}

TEST(SlurmTexts, squeue_and_scancel_get_none_of_the_users_filters) {
  setenv("SQUEUE_PARTITION", "a", 1);
  setenv("SCANCEL_INTERACTIVE", "true", 1);
  setenv("SLURM_CLUSTERS", "c", 1);
  const auto* script = "echo ${SQUEUE_PARTITION-none} ${SCANCEL_INTERACTIVE-none} $SLURM_CLUSTERS";
  EXPECT_EQ(output_of(queue_command({"sh", "-c", script})), "none none c\n");
  for (const auto* name : {"SQUEUE_PARTITION", "SCANCEL_INTERACTIVE", "SLURM_CLUSTERS"})
    unsetenv(name);
}

TEST(SlurmTexts, sbatch_gets_no_variables_of_an_allocation_and_no_secrets) {
  const core::TemporaryFolder folder;
  const auto sbatch = folder.path() / "sbatch";
  std::ofstream(sbatch) << "#!/bin/sh\n"
                           "echo ${SLURM_MEM_PER_CPU-none} ${TOKEN-none} $SLURM_CONF \"$@\"\n";
  fs::permissions(sbatch, fs::perms::owner_all);
  setenv("SLURM_MEM_PER_CPU", "50", 1);
  setenv("SLURM_CONF", "conf", 1);
  setenv("TOKEN", "secret", 1);
  auto command = sbatch_command({"--parsable"});
  command.insert(command.begin(),
                 {"env", "PATH=" + folder.path().string() + ":/usr/local/bin:/usr/bin:/bin"});
  EXPECT_EQ(output_of(command), "none none conf --parsable\n");
  for (const auto* name : {"SLURM_MEM_PER_CPU", "SLURM_CONF", "TOKEN"}) unsetenv(name);
}

TEST(SlurmTexts, commands_have_no_line_ends_because_csh_takes_none_in_quotes) {
  for (const auto& command : {sbatch_command({"--parsable"}), queue_command({"squeue"})})
    for (const auto& word : command) EXPECT_EQ(word.find('\n'), word.npos) << word;
}

TEST(SlurmTexts, lost_answers_differ_from_refusals) {
  EXPECT_TRUE(
      is_lost_answer("sbatch: error: Batch job submission failed: Socket timed out on "
                     "send/recv operation"));
  for (const auto* lost :
       {"Unable to contact slurm controller (connect failure)", "Unexpected missing socket error",
        "Communication connection failure", "Communication shutdown failure",
        "Message send failure", "Message receive failure", "Munged communication error",
        "Protocol authentication error"})
    EXPECT_TRUE(is_lost_answer(lost)) << lost;
  EXPECT_FALSE(is_lost_answer("Invalid partition name specified"));
  EXPECT_FALSE(is_lost_answer("Requested node configuration is not available"));
}

TEST(SlurmTexts, wrong_options_differ_from_a_cluster_that_is_full_or_down) {
  EXPECT_TRUE(is_permanent_refusal("allocation failure: Invalid feature specification"));
  EXPECT_TRUE(is_permanent_refusal("allocation failure: Requested reservation is invalid"));
  EXPECT_TRUE(
      is_permanent_refusal("sbatch: error: Batch job submission failed: Invalid account or "
                           "account/partition combination specified"));
  EXPECT_FALSE(
      is_permanent_refusal("allocation failure: Requested node configuration is not available"));
  EXPECT_FALSE(is_permanent_refusal("Unable to contact slurm controller (connect failure)"));
  EXPECT_FALSE(is_permanent_refusal(""));
}

TEST(SlurmTexts, a_wrong_account_or_qos_is_explained_by_those_that_the_user_has) {
  const auto known = parse_associations("lab|brief,normal\nlab2|normal\nroot|\n");
  EXPECT_EQ(known.accounts, (std::vector<std::string>{"lab", "lab2", "root"}));
  EXPECT_EQ(known.qos, (std::vector<std::string>{"brief", "normal"}));
  EXPECT_FALSE(names_association("allocation failure: Invalid feature specification"));
  core::Diagnostic account{.message = "Invalid account or account/partition combination specified"};
  ASSERT_TRUE(names_association(account.message));
  explain_association(known, {"--account=rot", "--qos=brief"}, account);
  EXPECT_EQ(account.suggestion, "did you mean 'root'?");
  EXPECT_EQ(account.notes, std::vector<std::string>{"you have the accounts: lab, lab2, root"});
  core::Diagnostic qos{.message = "Invalid qos specification"};
  explain_association(known, {"--qos=breif"}, qos);
  EXPECT_EQ(qos.suggestion, "did you mean 'brief'?");
  // The account is the user's, and not for this partition.
  account = {.message = "Invalid account or account/partition combination specified"};
  explain_association(known, {"--account=lab"}, account);
  EXPECT_EQ(account.suggestion, "");
  core::Diagnostic unknown{.message = "Invalid qos specification"};
  explain_association({}, {"--qos=x"}, unknown);  // No accounting.
  EXPECT_TRUE(unknown.notes.empty());
}

TEST(SlurmTexts, job_names_are_unique_and_names_of_files) {
  EXPECT_EQ(job_name("r1", "train", 2), "pipe-r1-train-2");
  const auto one = job_name("r1", "train[lr=0.1]", 1), two = job_name("r1", "train(lr=0.1)", 1);
  EXPECT_NE(one, two);
  EXPECT_EQ(one.find_first_of("[]= /|,"), std::string::npos) << one;
  EXPECT_LT(job_name("r1", std::string(5000, 'x'), 1).size(), 200u);
}

TEST(SlurmTexts, a_run_is_known_by_its_owners_comment) {
  EXPECT_EQ(run_of_comment(job_comment("abc", "r1"), "abc"), "r1");
  EXPECT_EQ(run_of_comment(job_comment("abc", "r1"), "xyz"), std::nullopt);
  EXPECT_EQ(run_of_comment("(null)", "abc"), std::nullopt);
}

std::string options_of(const AttemptBuilder& step, const StringMap& connection = {}) {
  AttemptBuilder& builder = const_cast<AttemptBuilder&>(step);
  std::string text;
  for (const auto& option : job_options(builder.attempt(), "me", connection, {"a100", "h100_80gb"}))
    text += option + "\n";
  return text;
}

TEST(SlurmTexts, resources_become_options_of_sbatch) {
  AttemptBuilder step(program({"true"}));
  auto& resources = step.step.settings->resources;
  resources.cpu_count = 2.5;
  resources.memory = (Bytes{1} << 30) + 1;
  resources.gpu_count = 2;
  resources.gpu_class = "H100";
  step.step.timeout = Duration(90'000);
  const auto options = options_of(step, {{"partition", "gpu"}});
  for (const auto* option : {"--cpus-per-task=3\n", "--mem=1025M\n", "--gres=gpu:h100_80gb:2\n",
                             "--time=4\n", "--partition=gpu\n", "--no-requeue\n"})
    EXPECT_NE(options.find(option), std::string::npos) << option << options;
  EXPECT_EQ(options_of(AttemptBuilder(program({"true"}))).find("--time"), std::string::npos);
}

TEST(SlurmTexts, words_of_a_step_precede_those_of_the_profile) {
  AttemptBuilder step(program({"true"}));
  auto& own = step.step.settings->slurm;
  own.partition = "gpu";
  own.nice = "5";
  own.time = Duration(90'000);
  own.extra_args = {"--exclusive"};
  step.step.timeout = Duration(3600'000);
  const auto options = options_of(step, {{"partition", "main"}, {"account", "lab7"}});
  for (const auto* option :
       {"--partition=gpu\n", "--account=lab7\n", "--nice=5\n", "--exclusive\n", "--time=2\n"})
    EXPECT_NE(options.find(option), std::string::npos) << option << options;
  EXPECT_EQ(options.find("--partition=main"), std::string::npos) << options;
}

TEST(SlurmTexts, a_shell_gets_the_resources_of_its_step_but_no_timeout) {
  AttemptBuilder step(program({"true"}));
  step.step.settings->resources.cpu_count = 2;
  step.step.timeout = Duration(60'000);
  auto attempt = step.attempt();
  attempt.shell.emplace();
  attempt.shell->words = {"echo", "it's"};
  attempt.shell->has_terminal = true;
  attempt.shell->id = "s1";
  const JobPaths paths{"/s/shell", "/s", "shell"};
  const auto command = shell_command(attempt, "/state/agent", paths, {{"qos", "high"}}, {});
  EXPECT_EQ(command.front(), "srun");
  std::string text;
  for (const auto& word : command) text += word + "\n";
  for (const auto* part :
       {"--pty\n", "--qos=high\n", "--cpus-per-task=2\n", "\n/state/agent\njob\n/s\n/s\nshell\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  const auto script = shell_script(paths, "/s/code", attempt.shell->words);
  for (const auto* part : {"\n. /s/shell/variables\n", "\necho 'it'\\''s'\ncode=$?\n"})
    EXPECT_NE(script.find(part), std::string::npos) << part << script;
  EXPECT_EQ(text.find("--time"), std::string::npos) << text;
}

TEST(SlurmTexts, values_of_variables_are_quoted_as_one_word) {
  EXPECT_EQ(variables_text({{"A", "it's $(id)\n`x`"}}), "export A='it'\\''s $(id)\n`x`'\n");
  EXPECT_EQ(variables_text({{"NOT A NAME", "x"}}), "");
}

TEST(SlurmTexts, the_expected_start_of_a_job_is_read) {
  const auto start = parse_expected_start(
      "sbatch: Job 7 to start at 1795860090 using 1 processors on nodes node1 in partition main\n");
  ASSERT_TRUE(start);
  EXPECT_EQ(start->time_since_epoch().count(), 1795860090);
  for (const auto* text : {"", "allocation failure: Invalid qos", "Job 7 to start at ",
                           "Job 7 to start at 2026-11-28T10:01:05 using 1 processors"})
    EXPECT_FALSE(parse_expected_start(text)) << text;
}

TEST(SlurmTexts, jobs_whose_nodes_have_left_files_are_found) {
  const core::TemporaryFolder folder;
  EXPECT_TRUE(gangs_in(folder.path()).empty());
  core::make_folders(folder.path() / "jobs/pipe-r-a-1+0");
  core::make_folders(folder.path() / "jobs/pipe-r-c-1");
  core::make_folders(folder.path() / "events");
  core::write_file_atomically(folder.path() / "events/pipe-r-b-1+1.begun", "");
  core::write_file_atomically(folder.path() / "events/pipe-r-c-1.begun", "");
  EXPECT_EQ(gangs_in(folder.path()), (std::set<std::string>{"pipe-r-a-1", "pipe-r-b-1"}));
}

TEST(SlurmTexts, status_of_an_agent_is_read_and_nothing_else) {
  const auto status = parse_status(
      R"({"code":3,"stopped":true,"usage":{"running_ms":12,"user_us":5,"peak_memory":4096}})");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->exit_code, 3);
  EXPECT_TRUE(status->stopped);
  EXPECT_EQ(status->usage.peak_memory, 4096u);
  EXPECT_EQ(status->running.count(), 12);
  EXPECT_EQ(parse_status(R"({"signal":11,"usage":{}})")->signal, 11);
  EXPECT_EQ(parse_status(R"({"not_executed":2,"usage":{}})")->not_executed, 2);
  for (const auto* text : {"", "{", "{}", "[]", R"({"code":-1})", R"({"code":1e9})",
                           R"({"code":"0"})", R"({"code":256})"})
    EXPECT_FALSE(parse_status(text)) << text;
}

TEST(SlurmTexts, a_log_is_read_whole_while_it_grows) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "log";
  std::string out, err;
  JobLog log(file,
             [&](bool is_stderr, std::string_view bytes) { (is_stderr ? err : out) += bytes; });
  EXPECT_FALSE(log.read());
  const std::string all = "o0 5 hello\ne11 0 \nO18 3 no \nw0 4 wait\no30 3 end\nu40 2 {}\n.50\n";
  for (const char c : all) {
    EXPECT_FALSE(log.ended());
    std::ofstream(file, std::ios::app) << c;
    log.read();
  }
  EXPECT_TRUE(log.ended());
  EXPECT_EQ(out, "hello\nno end\n");
  EXPECT_EQ(err, "\n");
}

TEST(SlurmTexts, a_loud_log_is_read_in_parts_and_whole) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "log";
  const std::string line(1000, 'x');
  std::string text, out;
  for (int i = 0; i < 1000; ++i) text += "o" + std::to_string(text.size()) + " 1000 " + line + "\n";
  std::ofstream(file) << text << "." << text.size() << "\n";
  JobLog log(file, [&](bool, std::string_view bytes) { out += bytes; });
  EXPECT_TRUE(log.read());
  EXPECT_TRUE(log.has_more());
  EXPECT_LE(out.size(), JobLog::max_read);
  asio::io_context loop;
  core::CancelSource cancel;
  test::run_task(loop, log.read_rest(true, cancel));
  EXPECT_TRUE(log.ended());
  EXPECT_EQ(out.size(), 1001 * 1000u);
}

TEST(SlurmTexts, a_log_has_the_place_where_a_stalled_step_waits_until_it_continues) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "log";
  JobLog log(file, [](bool, std::string_view) {});
  EXPECT_FALSE(log.report().progressed);
  std::ofstream(file, std::ios::app) << "w0 17 P7 sleep 5\tS1 nap\n";
  log.read();
  EXPECT_EQ(log.report().waits, "P7 sleep 5\tS1 nap");
  EXPECT_FALSE(log.report().progressed);
  std::ofstream(file, std::ios::app) << "a24 4 2000\n";
  log.read();
  EXPECT_EQ(log.report().waits, "");
  EXPECT_LE(log.report().progressed, std::chrono::steady_clock::now() - std::chrono::seconds(2));
}

TEST(SlurmTexts, a_step_that_writes_to_its_agents_log_ends_the_log) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "log";
  for (const auto* text : {"o0 99999999999999999999 x\n", "o0 -1 x\n", "garbage\n", "oo\n"}) {
    std::ofstream(file) << text;
    std::string out;
    JobLog log(file, [&](bool, std::string_view bytes) { out += bytes; });
    log.read();
    EXPECT_EQ(out, "") << text;
  }
}

TEST(SlurmTexts, a_log_that_a_step_has_made_terabytes_long_is_not_read_to_its_end) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "log";
  std::ofstream(file) << "o0 5 hello\n";
  std::filesystem::resize_file(file, std::uintmax_t{1} << 40);
  std::string out;
  JobLog log(file, [&](bool, std::string_view bytes) { out += bytes; });
  asio::io_context loop;
  core::CancelSource cancel;
  test::run_task(loop, log.read_rest(true, cancel));
  EXPECT_EQ(out, "hello\n");
  EXPECT_FALSE(log.read() || log.has_more());
}

constexpr const char* two_partitions =
    "main*|up|8|8000+|gpu:a100:2(S:0-1)|infinite|2\n"
    "main*|up|64|4000|gpu:v100:1,gpu:a100:4|infinite|1\n"
    "cpu|up|16|64000|(null)|1-02:30:00|8\nold|drain|1|1|gpu:1|30:00|1\n";

TEST(SlurmTexts, partitions_are_read_from_sinfo) {
  const auto partitions = parse_partitions(two_partitions);
  ASSERT_EQ(partitions.size(), 3u);
  EXPECT_TRUE(partitions[0].is_default);
  EXPECT_EQ(partitions[0].max_cpus, 64u);
  EXPECT_EQ(partitions[0].max_memory, Bytes{8000} << 20);
  EXPECT_EQ(partitions[0].gres_types, (std::vector<std::string>{"a100", "v100"}));
  EXPECT_EQ(partitions[0].max_gpus, 5u);
  EXPECT_EQ(partitions[0].nodes, 3u);
  EXPECT_EQ(partitions[1].max_gpus, 0u);
  EXPECT_FALSE(partitions[2].is_up);
  EXPECT_EQ(partitions[0].max_time, std::nullopt);
  EXPECT_EQ(partitions[1].max_time, std::chrono::minutes(26 * 60 + 30));
  EXPECT_EQ(partitions[2].max_time, std::chrono::minutes(30));
  EXPECT_EQ(gres_types_of(partitions), (std::vector<std::string>{"a100", "v100"}));
}

TEST(SlurmTexts, an_unknown_partition_is_an_error_that_names_the_similar_one) {
  const auto partitions = parse_partitions(two_partitions);
  EXPECT_NO_THROW(check_partition(partitions, "cpu"));
  const auto message = [&](const char* name) {
    try {
      check_partition(partitions, name);
    } catch (const core::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("mian"),
            "error: the Slurm cluster has no partition 'mian'; it has: main, cpu, old\n"
            "  did you mean 'main'?");
  EXPECT_NE(message("old").find("is down"), std::string::npos);
}

TEST(SlurmTexts, a_backslash_in_the_path_of_the_state_folder_is_an_error) {
  EXPECT_NO_THROW(check_state_folder("/shared/100% of it/.pipe"));
  try {
    check_state_folder(R"(/shared/a\b/.pipe)");
    ADD_FAILURE() << "sbatch would write the output elsewhere";
  } catch (const core::InputError& error) {
    EXPECT_NE(
        std::string(error.what()).find(R"(the state folder /shared/a\b/.pipe has a backslash)"),
        std::string::npos)
        << error.what();
  }
}

TEST(SlurmTexts, steps_that_no_node_can_run_are_named_with_the_limit) {
  const auto partitions = parse_partitions(two_partitions);
  const auto found = [&](auto change) {
    AttemptBuilder step(program({"true"}));
    change(step.step.settings->resources);
    const auto all = check_steps(partitions, {}, {&step.step});
    return all.empty() ? std::string() : all[0].message + ": " + all[0].notes[0];
  };
  EXPECT_EQ(found([](auto& resources) { resources.cpu_count = 64; }), "");
  EXPECT_EQ(found([](auto& resources) { resources.cpu_count = 65; }),
            "'step' asks for 65 CPUs: the nodes of the partition 'main' have at most 64");
  EXPECT_EQ(found([](auto& resources) { resources.gpu_count = 6; }),
            "'step' asks for 6 GPUs: the nodes of the partition 'main' have at most 5");
  EXPECT_EQ(found([](auto& resources) {
              resources.gpu_count = 1;
              resources.gpu_class = "H100";
            }),
            "'step' asks for GPUs of the class 'H100': the partition 'main' has: a100, v100");
}

TEST(SlurmTexts, conditions_that_slurm_does_not_know_are_named) {
  ResourceSettings resources;
  resources.gpu_count = 1;
  resources.gpu_class = "A100";
  EXPECT_TRUE(ignored_conditions(resources).empty());
  resources.gpu_memory = Bytes{40} << 30;
  resources.placement_constraints = {"attribute:rack == a1"};
  const auto notices = ignored_conditions(resources);
  ASSERT_EQ(notices.size(), 2U);
  EXPECT_EQ(notices[0],
            "`resources.gpu_memory` has no effect on Slurm: `gpu_class` and `slurm.constraint` "
            "choose the GPUs");
  EXPECT_TRUE(notices[1].starts_with("`resources.placement_constraints` has no effect on Slurm"));
}

TEST(SlurmTexts, a_step_has_no_more_nodes_than_its_partition) {
  const auto partitions = parse_partitions(two_partitions);
  AttemptBuilder step(program({"true"}));
  step.step.nodes = {.count = 3};
  EXPECT_TRUE(check_steps(partitions, {}, {&step.step}).empty());
  step.step.nodes = {.count = 4};
  const auto found = check_steps(partitions, {}, {&step.step});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message + ": " + found[0].notes[0],
            "'step' has 4 nodes: the partition 'main' has 3");
}

TEST(SlurmTexts, a_step_with_nodes_is_one_job_with_a_task_on_each) {
  AttemptBuilder step(program({"true"}));
  step.step.nodes = {.count = 3};
  step.step.settings->resources.cpu_count = 1.5;
  auto attempt = step.attempt();
  const NodeAddresses addresses{{"{node0}", "{node1}", "{node2}"}, 12000};
  attempt.process = NodeProcess{.node = 1, .nodes = 3, .addresses = &addresses};
  const auto options = job_options(attempt, "me", {}, {});
  for (const auto* option : {"--nodes=3", "--ntasks=3", "--ntasks-per-node=1"})
    EXPECT_EQ(std::ranges::count(options, option), 1) << option;
  const JobPaths job{"/s/jobs/j", "/s/events", "j"};
  EXPECT_EQ(node_paths(job, 1).ended(), "/s/events/j+1.ended");
  const auto script = gang_script(job, "/s/agent", attempt, {});
  for (const auto* part : {"srun --nodes=3 --ntasks=3 --ntasks-per-node=1 --cpus-per-task=2 ",
                           " /s/agent /s/jobs /s/events j+ &\n"})
    EXPECT_NE(script.find(part), std::string::npos) << part << script;
  const auto within = gang_script(job, "/s/agent", attempt, {"srun", "--exact", "--nodes=3"});
  for (const auto* part : {"export PIPE_SLURM_ID=$$\nexec srun --exact --nodes=3 --kill-on-bad",
                           " /s/agent /s/jobs /s/events j+ /s/jobs/j/addresses\n"})
    EXPECT_NE(within.find(part), std::string::npos) << part << within;
}

TEST(SlurmTexts, processes_share_the_gpus_that_slurm_has_given_their_node) {
  AttemptBuilder step(program({"true"}));
  auto attempt = step.attempt();
  NodeAddresses addresses{{"{node0}", "{node1}"}, 12000};
  attempt.process = NodeProcess{.node = 1, .nodes = 2, .addresses = &addresses};
  StringMap variables{{"CUDA_VISIBLE_DEVICES", gpus_mark}};
  add_gang_variables(attempt, variables);
  EXPECT_EQ(variables.size(), 1u) << "the step has no agents";
  addresses.has_agents = true;
  addresses.secret = "s";
  add_gang_variables(attempt, variables);
  EXPECT_EQ(variables, (StringMap{{agent_secret_name, "s"}}));
  variables["CUDA_VISIBLE_DEVICES"] = "3";
  add_gang_variables(attempt, variables);
  EXPECT_EQ(variables.at("CUDA_VISIBLE_DEVICES"), "3") << "the step's own value stays";
}

TEST(SlurmTexts, a_steps_own_partition_is_looked_up_and_its_nodes_are_compared) {
  const auto partitions = parse_partitions(two_partitions);
  const auto found = [&](const char* name, double cpus) {
    AttemptBuilder step(program({"true"}));
    step.step.settings->slurm.partition = name;
    step.step.settings->resources.cpu_count = cpus;
    const auto all = check_steps(partitions, {{"partition", "cpu"}}, {&step.step});
    return all.empty() ? std::string() : all[0].message + " | " + all[0].suggestion;
  };
  EXPECT_EQ(found("main", 64), "");
  EXPECT_EQ(found("main,cpu", 1), "");
  EXPECT_EQ(found("main", 65), "'step' asks for 65 CPUs | ");
  EXPECT_EQ(found("main,cup", 1),
            "'step' cannot run: the Slurm cluster has no partition 'cup'; it has: main, cpu, old | "
            "did you mean 'cpu'?");
  EXPECT_EQ(found("old", 1),
            "'step' cannot run: the partition 'old' is down: it starts no jobs | ");
}

TEST(SlurmTexts, a_time_above_the_partitions_is_an_error_unless_a_qos_may_allow_it) {
  const auto partitions = parse_partitions(two_partitions);
  const auto found = [&](int minutes, const StringMap& connection, bool is_own = false) {
    AttemptBuilder step(program({"true"}));
    const Duration time(minutes * 60'000);
    if (is_own)
      step.step.settings->slurm.time = time;
    else
      step.step.timeout = time;
    const auto all = check_steps(partitions, connection, {&step.step});
    return all.empty() ? std::string() : all[0].message + ": " + all[0].notes[0];
  };
  const StringMap cpu{{"partition", "cpu"}};
  EXPECT_EQ(found(100'000, {}), "");
  EXPECT_EQ(found(26 * 60 + 28, cpu), "");
  EXPECT_EQ(found(26 * 60 + 29, cpu),
            "'step' asks for 1591 minutes, by its `timeout` or `slurm.time`: the partition 'cpu' "
            "gives a job at most 1590 minutes");
  EXPECT_EQ(found(26 * 60 + 30, cpu, true), "");
  EXPECT_EQ(found(26 * 60 + 31, {{"partition", "cpu"}, {"qos", "long"}}), "");
}

}  // namespace
}  // namespace pipeline::orchestrators::slurm
