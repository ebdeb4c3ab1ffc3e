#include "orchestrators/slurm/client.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "async/gate.hpp"
#include "async/sleep.hpp"
#include "core/diagnostic.hpp"
#include "core/text.hpp"
#include "net/program.hpp"
#include "orchestrators/slurm/job_script.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using namespace std::chrono_literals;

constexpr const char* queue_format = "%i|%T|%r|%N|%j";
/// How long the first cancellation waits for others, because jobs are often stopped together.
constexpr auto time_to_gather_stops = 20ms;

/// Bytes of ids after which another scancel begins: ssh passes a command to the shell as one
/// argument, for which Linux has room for 128 KiB.
constexpr std::size_t full_command_size = 60'000;
constexpr int ssh_failed = 255, not_found = 127;  // Exit codes.
constexpr bool may_have_worked = true;            // See SlurmError.

}  // namespace

std::string parse_job_id(std::string_view output) {
  auto lines = core::lines_of(output);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto id = core::split(core::trimmed(*line), ';').front();
    if (!id.empty() && core::all(id, core::is_digit)) return std::string(id);
  }
  return {};
}

std::string last_line(std::string_view output) {
  const auto text = core::trimmed(output);
  return std::string(text.substr(text.rfind('\n') + 1));
}

std::optional<std::chrono::sys_seconds> parse_expected_start(std::string_view output) {
  constexpr std::string_view words = " to start at ";
  const auto at = output.find(words);
  if (at == output.npos) return std::nullopt;
  const auto text = output.substr(at + words.size());
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end == text.data() + text.size() || *end != ' ') return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(seconds));
}

ArrayLimits parse_limits(std::string_view output) {
  ArrayLimits limits;
  for (const auto line : core::lines_of(output)) {
    const auto equals = line.find('=');
    if (equals == line.npos) continue;
    const auto name = core::trimmed(line.substr(0, equals));
    const auto value = core::trimmed(line.substr(equals + 1));
    unsigned number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    if (name == "MaxArraySize") limits.max_array_size = number;
    if (name == "MaxJobCount") limits.max_jobs = number;
  }
  return limits;
}

bool SlurmError::is_full() const {
  const std::string_view text = what();
  return text.find("temporarily unable") != text.npos || text.find("queue full") != text.npos ||
         exceeds_submit_limit();
}

bool SlurmError::exceeds_submit_limit() const {
  // AssocMaxSubmitJobLimit, QOSMaxSubmitJobPerUserLimit, AssocGrpSubmitJobsLimit, ...
  const std::string_view text = what();
  return text.find("SubmitJob") != text.npos;
}

struct Client::Cancellation {
  explicit Cancellation(const asio::any_io_executor& executor) : done(executor) {}
  std::vector<std::string> ids;
  async::Gate done;
  std::exception_ptr error;
};

bool is_lost_answer(std::string_view errors) {
  static constexpr std::string_view signs[] = {"timed out",
                                               "Unable to contact slurm controller",
                                               "Zero Bytes were transmitted",
                                               "Connection refused",
                                               "Connection reset",
                                               "ommunication",  // Munge's, and Slurm's own.
                                               "Unexpected missing socket",
                                               "Message send failure",
                                               "Message receive failure",
                                               "Protocol authentication error",
                                               "temporarily unable",
                                               "Transport endpoint",
                                               "in standby mode"};
  return std::ranges::any_of(
      signs, [&](std::string_view sign) { return errors.find(sign) != errors.npos; });
}

bool is_permanent_refusal(std::string_view errors) {
  static constexpr std::string_view signs[] = {
      "Invalid account",   "Invalid qos",     "Invalid feature", "Invalid preferred feature",
      "Invalid node name", "Invalid license", "Invalid wckey",   "reservation is invalid"};
  return std::ranges::any_of(
      signs, [&](std::string_view sign) { return errors.find(sign) != errors.npos; });
}

async::Task<std::string> Client::call(std::vector<std::string> command, std::string input,
                                      std::chrono::seconds timeout) {
  const auto name = command.front();
  // Slurm gives sbatch's variables to the job, and keeps them in the controller's folder.
  if (name == "sbatch") command = sbatch_command({command.begin() + 1, command.end()});
  if (name == "squeue" || name == "scancel") command = queue_command(command);
  constexpr std::size_t same_rank = 0;
  co_await call_slots_.acquire(same_rank);
  const async::Permit permit(call_slots_);
  co_await login_.connect();
  net::ProgramCall program;
  program.variables = {"SLURM_BITSTR_LEN=0"};  // Otherwise squeue shortens lists of tasks.
  if (login_.is_remote()) command.insert(command.begin(), {"env", program.variables.front()});
  program.command = login_.words(command);
  program.input = std::move(input);
  program.timeout = timeout;
  const auto answer = co_await net::run_program(std::move(program));
  if (answer.code == 0 && !answer.late) co_return answer.output;
  std::string errors;
  for (const auto line : core::lines_of(answer.errors)) {
    auto text = std::string(core::trimmed(line));
    if (text.starts_with(name + ": error: ")) text = text.substr(name.size() + 9);
    if (!text.empty()) errors += (errors.empty() ? "" : "; ") + text;
  }
  if (answer.late)
    throw SlurmError(name + " did not end within " + std::to_string(timeout.count()) + " s" +
                         (errors.empty() ? "" : ": " + core::printable(errors)),
                     {"`scontrol ping` shows whether Slurm's controller answers"}, may_have_worked);
  if (login_.is_remote() && answer.code == ssh_failed)
    throw SlurmError("ssh to " + login_.host() + " failed: " + core::printable(errors),
                     {"`ssh " + login_.host() + " sinfo` has to work without a question"},
                     may_have_worked);
  if (login_.is_remote() && answer.code == not_found)
    throw SlurmError(login_.host() + " does not find " + name + ": " + core::printable(errors),
                     {"put Slurm's commands on the PATH of shells that ssh starts there"},
                     !may_have_worked);
  throw SlurmError(name + " failed: " + core::printable(errors), {},
                   answer.code < 0 || is_lost_answer(answer.errors));
}

async::Task<std::string> Client::submit(std::vector<std::string> options, std::string script) {
  options.insert(options.begin(), {"sbatch", "--parsable"});
  const auto output = co_await call(std::move(options), std::move(script));
  auto id = parse_job_id(output);
  if (id.empty())
    throw SlurmError("sbatch printed no job number: " + core::printable(core::trimmed(output)), {},
                     may_have_worked);
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
  if (!is_permanent_refusal(text)) text.clear();
  co_return text;
}

async::Task<std::optional<std::chrono::seconds>> Client::expected_wait(
    std::vector<std::string> options) {
  std::vector<std::string> command{"/bin/sh", "-c",
                                   "SLURM_TIME_FORMAT=%s exec sbatch --test-only \"$@\" 2>&1",
                                   "sbatch", "--wrap=true"};
  command.insert(command.end(), options.begin(), options.end());
  std::optional<std::chrono::seconds> wait;
  try {
    const auto output = co_await call(std::move(command), std::string(), short_timeout);
    if (const auto start = parse_expected_start(output))
      wait = std::chrono::ceil<std::chrono::seconds>(*start - std::chrono::system_clock::now());
  } catch (const SlurmError& error) {
    if (error.may_have_worked()) throw;
  }
  co_return wait;
}

async::Task<std::string> Client::own_user() {
  if (user_.empty() && login_.is_remote()) {
    std::vector<std::string> command{"id", "-u"};
    const auto output = co_await call(std::move(command));
    user_ = "--user=" + last_line(output);
  }
  if (user_.empty()) user_ = "--user=" + std::to_string(geteuid());
  co_return user_;
}

async::Task<std::vector<QueuedJob>> Client::jobs() {
  const auto user = co_await own_user();
  std::vector<std::string> command{"squeue",       "--noheader", user,
                                   "--states=all", "--format",   queue_format};
  co_return parse_queue(co_await call(std::move(command)));
}

async::Task<std::vector<QueuedJob>> Client::jobs_named(std::string name) {
  const auto user = co_await own_user();
  std::vector<std::string> command{"squeue",         "--noheader", user,        "--states=all",
                                   "--name=" + name, "--format",   queue_format};
  co_return parse_queue(co_await call(std::move(command)));
}

async::Task<std::vector<QueuedJob>> Client::jobs_of_user() {
  const auto user = co_await own_user();
  std::vector<std::string> command{"squeue", "--noheader", user, "--format", "%i|%T|%r|%N|%k"};
  // The format has the comment where parse_queue() reads the name.
  auto jobs = parse_queue(co_await call(std::move(command)));
  for (auto& job : jobs) job.comment = std::exchange(job.name, {});
  co_return jobs;
}

async::Task<> Client::cancel_all(std::vector<std::string> ids, std::vector<std::string> options) {
  const auto words = shortened(ids);
  for (auto word = words.begin(); word != words.end();) {
    std::vector<std::string> command{"scancel", "--quiet"};
    command.insert(command.end(), options.begin(), options.end());
    for (std::size_t size = 0; word != words.end() && size < full_command_size; ++word) {
      command.push_back(*word);
      size += word->size() + 1;
    }
    try {
      co_await call(std::move(command));
    } catch (const SlurmError& error) {
      const std::string_view text = error.what();
      // scancel --quiet fails without a message for a job that has ended.
      const bool has_ended = text.find("Invalid job id") != text.npos ||
                             text.find("already") != text.npos ||
                             text.find("complet") != text.npos || text.ends_with("failed: ");
      if (!has_ended || is_lost_answer(text)) throw;
    }
  }
}

async::Task<> Client::cancel(std::string id, std::vector<std::string> options) {
  const auto [entry, is_first] = cancellations_.try_emplace(options);
  if (is_first) entry->second = std::make_shared<Cancellation>(co_await asio::this_coro::executor);
  const auto cancellation = entry->second;
  cancellation->ids.push_back(std::move(id));
  if (is_first) {
    co_await async::sleep(time_to_gather_stops);
    cancellations_.erase(options);
    try {
      co_await cancel_all(cancellation->ids, options);
    } catch (...) {
      cancellation->error = std::current_exception();
    }
    cancellation->done.open();
  }
  co_await cancellation->done.wait();
  if (cancellation->error) std::rethrow_exception(cancellation->error);
}

async::Task<ArrayLimits> Client::limits() {
  std::vector<std::string> command{"scontrol", "show", "config"};
  try {
    co_return parse_limits(co_await call(std::move(command)));
  } catch (const core::EnvironmentError&) {
  }
  co_return ArrayLimits{};
}

async::Task<std::string> Client::node_reason(std::string node) {
  std::string reason;
  if (node.empty()) co_return reason;
  std::vector<std::string> command{"sinfo", "--noheader", "--states=drain", "--nodes=" + node,
                                   "--format=%E"};
  try {
    reason = co_await call(std::move(command));
  } catch (const SlurmError&) {
  }
  co_return reason;
}

async::Task<std::string> Client::output_of(std::vector<std::string> command,
                                           std::chrono::seconds timeout) {
  co_return co_await call(std::move(command), std::string(), timeout);
}

}  // namespace pipeline::orchestrators::slurm
