#include "orchestrators/slurm/client.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/diagnostic.hpp"
#include "core/text.hpp"
#include "net/program.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using namespace std::chrono_literals;

constexpr auto command_timeout = 60s;
constexpr const char* queue_format = "%i|%T|%r|%N|%j";
constexpr std::size_t queue_fields = 5;

std::string own_user() { return "--user=" + std::to_string(geteuid()); }

}  // namespace

std::string parse_job_id(std::string_view output) {
  auto lines = core::lines_of(output);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto id = core::split(core::trimmed(*line), ';').front();
    if (!id.empty() && core::all(id, core::is_digit)) return std::string(id);
  }
  return {};
}

std::vector<QueuedJob> parse_queue(std::string_view output) {
  std::vector<QueuedJob> jobs;
  for (const auto line : core::lines_of(output)) {
    auto fields = core::split(line, '|');
    if (fields.size() < queue_fields) continue;
    // A name may have any characters; it comes last.
    const auto name = line.substr(static_cast<std::size_t>(fields[4].data() - line.data()));
    jobs.push_back({std::string(fields[0]), std::string(fields[1]), std::string(fields[2]),
                    std::string(fields[3]), std::string(name)});
  }
  return jobs;
}

bool is_lost_answer(std::string_view errors) {
  static constexpr std::string_view signs[] = {"timed out",
                                               "Unable to contact slurm controller",
                                               "Zero Bytes were transmitted",
                                               "Connection refused",
                                               "Connection reset",
                                               "communication",
                                               "temporarily unable",
                                               "Transport endpoint",
                                               "in standby mode"};
  return std::ranges::any_of(
      signs, [&](std::string_view sign) { return errors.find(sign) != errors.npos; });
}

bool is_wrong_word(std::string_view errors) {
  static constexpr std::string_view signs[] = {
      "Invalid account",   "Invalid qos",     "Invalid feature", "Invalid preferred feature",
      "Invalid node name", "Invalid license", "Invalid wckey",   "reservation is invalid"};
  return std::ranges::any_of(
      signs, [&](std::string_view sign) { return errors.find(sign) != errors.npos; });
}

async::Task<std::string> Client::call(std::vector<std::string> command, std::string input) {
  co_await free_.acquire(0);
  const async::Permit permit(free_);
  ++calls_;
  net::ProgramCall program;
  program.command = std::move(command);
  program.input = std::move(input);
  program.timeout = command_timeout;
  const auto name = program.command.front();
  const auto answer = co_await net::run_program(std::move(program));
  if (answer.late)
    throw SlurmError(name + " did not end within " + std::to_string(command_timeout.count()) + " s",
                     {"`scontrol ping` shows whether Slurm's controller answers"}, true);
  if (answer.code == 0) co_return answer.output;
  std::string said;
  for (const auto line : core::lines_of(answer.errors)) {
    auto text = std::string(core::trimmed(line));
    if (text.starts_with(name + ": error: ")) text = text.substr(name.size() + 9);
    if (!text.empty()) said += (said.empty() ? "" : "; ") + text;
  }
  throw SlurmError(name + " failed: " + core::printable(said), {},
                   answer.code < 0 || is_lost_answer(answer.errors));
}

async::Task<std::string> Client::submit(std::vector<std::string> options, std::string script) {
  options.insert(options.begin(), {"sbatch", "--parsable"});
  const auto output = co_await call(std::move(options), std::move(script));
  auto id = parse_job_id(output);
  if (id.empty())
    throw SlurmError("sbatch printed no job number: " + core::printable(core::trimmed(output)), {},
                     true);
  co_return id;
}

async::Task<std::string> Client::refusal(std::vector<std::string> options) {
  options.insert(options.begin(), {"sbatch", "--test-only"});
  std::string script = "#!/bin/sh\n", text;
  try {
    co_await call(std::move(options), std::move(script));
  } catch (const SlurmError& error) {
    text = error.what();
  }
  if (!is_wrong_word(text)) text.clear();
  co_return text;
}

async::Task<std::vector<QueuedJob>> Client::jobs() {
  std::vector<std::string> command{"squeue",       "--noheader", own_user(),
                                   "--states=all", "--format",   queue_format};
  co_return parse_queue(co_await call(std::move(command)));
}

async::Task<std::vector<QueuedJob>> Client::jobs_named(std::string name) {
  std::vector<std::string> command{"squeue",         "--noheader", own_user(),  "--states=all",
                                   "--name=" + name, "--format",   queue_format};
  co_return parse_queue(co_await call(std::move(command)));
}

async::Task<std::vector<QueuedJob>> Client::jobs_of_user() {
  std::vector<std::string> command{"squeue", "--noheader", own_user(), "--format",
                                   "%i|%T|%r|%N|%k"};
  auto jobs = parse_queue(co_await call(std::move(command)));
  for (auto& job : jobs) job.comment = std::exchange(job.name, {});
  co_return jobs;
}

async::Task<> Client::cancel(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"scancel", "--quiet"});
  try {
    co_await call(std::move(arguments));
  } catch (const SlurmError& error) {
    const std::string_view text = error.what();
    const bool has_ended = text.find("Invalid job id") != text.npos ||
                           text.find("already") != text.npos || text.find("complet") != text.npos ||
                           text.ends_with("failed: ");
    if (!has_ended) throw;
  }
}

async::Task<std::string> Client::output_of(std::vector<std::string> command) {
  co_return co_await call(std::move(command));
}

}  // namespace pipeline::orchestrators::slurm
