#include "orchestrators/docker/container_shell.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "async/joinable_task.hpp"
#include "async/sleep.hpp"
#include "async/timeout.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "docker/log_frames.hpp"
#include "docker/raw_stream.hpp"
#include "orchestrators/containers/container_end.hpp"
#include "orchestrators/docker/file_copy.hpp"
#include "orchestrators/docker/init_program.hpp"
#include "orchestrators/docker/own_container.hpp"
#include "orchestrators/docker/service_spec.hpp"
#include "orchestrators/docker/user_entry.hpp"
#include "orchestrators/shell_terminal.hpp"
#include "orchestrators/usage/process_activity.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

constexpr std::chrono::seconds answer_timeout{10};
constexpr std::size_t max_printed = 64 << 10;

/// Writes a container's output to this process's streams until the container closes its streams.
/// @param first beginning of the output, which has been read from `stream` already
async::Task<> pass_output(net::Connection& stream, bool has_terminal, std::string first = {}) {
  docker::EngineLogFrames frames([](bool is_stderr, std::string_view bytes) {
    core::write_all(is_stderr ? STDERR_FILENO : STDOUT_FILENO, bytes);
  });
  const auto pass = [&](std::string_view bytes) {
    if (has_terminal)
      core::write_all(STDOUT_FILENO, bytes);
    else
      frames.feed(bytes);
  };
  pass(first);
  std::array<char, 65536> buffer;
  try {
    while (const auto got = co_await stream.read_some(buffer)) pass({buffer.data(), got});
  } catch (const net::TransportError& error) {  // How a container ended is known by its exit code.
    core::log::info(error.what());
  }
  frames.finish();
}

async::Task<> send_input(net::Connection& stream, std::string bytes) {
  try {
    co_await stream.write(std::move(bytes));
  } catch (const net::TransportError& error) {
    throw core::EnvironmentError(std::string("the shell takes no input any more: ") + error.what());
  }
}

async::Task<> end_input(net::Connection& stream) {
  stream.end_writing();
  co_return;
}

/// Sets the size of the terminal of a container or of a command in it.
/// @param path `/containers/ID` or `/exec/ID`
async::Task<> resize(docker::EngineApi& engine, std::string path, unsigned rows, unsigned columns) {
  co_await engine.call(
      "POST", path + "/resize?h=" + std::to_string(rows) + "&w=" + std::to_string(columns));
}

/// Returns the functions that connect this process's terminal with a shell.
/// @param path see resize()
/// @param first see pass_output()
RemoteShell shell_of(docker::EngineApi& engine, const std::string& path, net::Connection& stream,
                     bool has_terminal, std::string first = {}) {
  RemoteShell shell;
  shell.send = [&stream](std::string bytes) { return send_input(stream, std::move(bytes)); };
  shell.end_input = [&stream] { return end_input(stream); };
  shell.resize = [&engine, path](unsigned rows, unsigned columns) {
    return resize(engine, path, rows, columns);
  };
  shell.pass_output = [&stream, has_terminal, first = std::move(first)] {
    return pass_output(stream, has_terminal, first);
  };
  return shell;
}

/// Waits for the end of a container. The wait has to begin before the start, because the engine
/// removes the container at its end.
class EndOfShell {
 public:
  EndOfShell(docker::EngineApi& engine, std::string id, const asio::any_io_executor& executor)
      : listening_(executor),
        wait_(executor, wait(engine, std::move(id)), [this] { listening_.open(); }) {}
  /// Returns once the engine has begun to wait, so that the container can be started.
  async::Task<> is_awaited() { return listening_.wait(); }
  void give_up() { cancel_.stop(core::StopLevel::immediate); }
  /// Returns the exit code.
  async::Task<int> join() {
    co_await wait_.join();
    if (wait_.error() && cancel_.level() == core::StopLevel::none)
      std::rethrow_exception(wait_.error());
    co_return code_;
  }

 private:
  async::Task<> wait(docker::EngineApi& engine, std::string id) {
    const std::function<void()> on_listening = [this] { listening_.open(); };
    code_ = co_await engine.wait_container(id, "next-exit", on_listening, &cancel_);
  }

  core::CancelSource cancel_;
  async::Gate listening_;
  int code_ = 0;
  async::JoinableTask wait_;
};

/// Returns once the container is removed. The engine removes it by itself, too (AutoRemove), and
/// refuses a second removal meanwhile.
async::Task<> remove_shell(docker::EngineApi& engine, std::string id) {
  constexpr int max_looks = 1200;  // A minute: a busy engine removes slowly.
  constexpr std::chrono::milliseconds pause{50};
  for (int look = 0; look < max_looks; ++look) {
    co_await engine.remove_container(id);
    bool is_gone = false;
    try {
      co_await engine.inspect_container(id);
    } catch (const docker::EngineError& error) {
      is_gone = error.status() == 404;
    }
    if (is_gone) co_return;
    co_await async::sleep(pause);
  }
}

/// Runs the attempt's shell in a new container.
/// @param refusal set to the engine's message if it has refused to start the container
async::Task<AttemptResult> try_shell(docker::EngineApi& engine, const Attempt& attempt,
                                     ContainerOptions& options, const std::string& image,
                                     std::string& refusal) {
  AttemptResult result;
  const auto executor = co_await asio::this_coro::executor;
  const auto container = co_await obtain_container(engine, attempt, options);
  EndOfShell end(engine, container.id, executor);
  std::exception_ptr error;
  try {
    if (container.copies) {
      co_await copy_in(engine, attempt, container.id, options.init);
      if (!options.passwd.empty())
        co_await copy_passwd(engine, options, container.id, attempt.io.cancel);
    }
    const auto stream = co_await docker::attach_raw(engine, container.id);
    co_await end.is_awaited();
    co_await engine.start_container(container.id);
    const bool has_terminal = attempt.shell->has_terminal;
    auto shell = shell_of(engine, "/containers/" + container.id, *stream, has_terminal);
    co_await connect_terminal(std::move(shell), has_terminal);
  } catch (const docker::EngineError& refused) {
    refusal = refused.what();
    result.failure = containers::start_failure(refused, attempt, image);
  } catch (...) {
    error = std::current_exception();
  }
  if (error || result.failure) end.give_up();
  const int code = co_await end.join();
  co_await remove_shell(engine, container.id);
  if (error) std::rethrow_exception(error);
  if (!result.failure) result.exit_code = code;
  co_return result;
}

/// Returns the identifier of the running container that has this process; empty if there is none.
/// With an agent, the container has all processes of a node and the label of the first rank.
async::Task<std::string> container_of(docker::EngineApi& engine, const RunningProcess& process) {
  std::vector<std::string> labels{"pipe.run=" + process.run_id, "pipe.step=" + process.step,
                                  "pipe.attempt=" + std::to_string(process.number)};
  if (process.rank)
    labels.push_back(rank_label + ("=" + std::to_string(process.first_rank_of_node)));
  const auto containers = co_await engine.list_containers(labels);
  for (const auto& container : containers)
    if (!container.contains(
            nlohmann::json::json_pointer("/Labels/" + std::string(service_label))) &&
        container.value("State", std::string()) == "running")
      co_return container.value("Id", std::string());
  co_return std::string();
}

/// Returns the command by which the container's agent runs the words with the variables of the
/// rank. Returns the words alone for a container without an agent, which has a single rank.
async::Task<std::vector<std::string>> words_beside(docker::EngineApi& engine,
                                                   const std::string& container,
                                                   const RunningProcess& process,
                                                   std::vector<std::string> words) {
  if (!process.rank) co_return words;
  const auto known = co_await engine.call("GET", "/containers/" + container + "/json");
  const auto entry =
      known.value(nlohmann::json::json_pointer("/Config/Entrypoint"), nlohmann::json::array());
  if (std::ranges::find(entry, nlohmann::json("ranks")) != entry.end())
    words.insert(words.begin(), {init_path, "join", std::to_string(*process.rank)});
  co_return words;
}

}  // namespace

async::Task<AttemptResult> run_shell(docker::EngineApi& engine, const Attempt& attempt,
                                     ContainerOptions& options, std::string image) {
  for (;;) {
    const auto method = replaceable_gpu_method(attempt, options);
    std::string refusal;
    auto result = co_await try_shell(engine, attempt, options, image, refusal);
    if (!method || refusal.empty() || !options.gpu_access->try_next(*method, refusal))
      co_return result;
  }
}

async::Task<usage::GroupFolders> ContainerActivity::group_of(docker::EngineApi& engine,
                                                             const Attempt& attempt) {
  const auto name = container_name(attempt);
  const auto known = groups_.find(name);
  if (known != groups_.end() && !usage::processes_in(known->second).empty())
    co_return known->second;
  RunningProcess process{attempt.run_id, attempt.step.name, attempt.number};
  if (attempt.process) process.rank = process.first_rank_of_node = attempt.process->rank;
  const auto container = co_await container_of(engine, process);
  if (container.empty()) co_return usage::GroupFolders();
  auto group = usage::find_container_group(container);
  if (group.exists()) groups_.insert_or_assign(name, group);
  co_return group;
}

void ContainerActivity::forget(const Attempt& attempt) { groups_.erase(container_name(attempt)); }

async::Task<std::optional<core::Activity>> ContainerActivity::activity_of(docker::EngineApi& engine,
                                                                          const Attempt& attempt) {
  const auto group = co_await group_of(engine, attempt);
  const auto processes = group.exists() ? usage::processes_in(group) : std::vector<pid_t>();
  if (processes.empty()) co_return std::nullopt;
  co_return usage::activity_of_processes(processes);
}

async::Task<std::optional<int>> join_container(docker::EngineApi& engine, RunningProcess process,
                                               ShellRequest shell) {
  const auto container = co_await container_of(engine, process);
  if (container.empty()) co_return std::nullopt;
  auto words = co_await words_beside(engine, container, process, std::move(shell.words));
  auto running =
      co_await docker::start_exec(engine, container, std::move(words), shell.has_terminal);
  auto streams = shell_of(engine, "/exec/" + running.id, *running.connection, shell.has_terminal,
                          std::move(running.first_output));
  co_await connect_terminal(std::move(streams), shell.has_terminal);
  co_return co_await docker::exec_code(engine, running.id);
}

async::Task<std::optional<std::string>> ask_container(docker::EngineApi& engine,
                                                      RunningProcess process,
                                                      std::vector<std::string> words) {
  const auto container = co_await container_of(engine, process);
  if (container.empty()) co_return std::nullopt;
  auto beside = co_await words_beside(engine, container, process, std::move(words));
  const bool has_terminal = false;
  auto running = co_await docker::start_exec(engine, container, std::move(beside), has_terminal);
  std::string printed;
  docker::EngineLogFrames frames(
      [&](bool, std::string_view bytes) { core::append_bounded(printed, bytes, max_printed); });
  async::Timeout limit(co_await asio::this_coro::executor, [&] { running.connection->close(); });
  limit.start(answer_timeout);
  bool is_whole = false;
  try {
    frames.feed(running.first_output);
    std::array<char, 16384> buffer;
    while (const auto got = co_await running.connection->read_some(buffer))
      frames.feed({buffer.data(), got});
    is_whole = true;
  } catch (const net::TransportError& error) {
    core::log::info(error.what());
  }
  if (!is_whole) co_return std::nullopt;
  frames.finish();
  const auto code = co_await docker::exec_code(engine, running.id);
  co_return code == 0 ? std::optional(printed) : std::nullopt;
}

}  // namespace pipeline::orchestrators::docker_engine
