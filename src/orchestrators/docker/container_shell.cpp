#include "orchestrators/docker/container_shell.hpp"

#include <unistd.h>

#include <array>

#include "async/joinable_task.hpp"
#include "async/sleep.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "docker/log_frames.hpp"
#include "docker/raw_stream.hpp"
#include "orchestrators/containers/container_end.hpp"
#include "orchestrators/docker/file_copy.hpp"
#include "orchestrators/docker/own_container.hpp"
#include "orchestrators/docker/user_entry.hpp"
#include "orchestrators/shell_terminal.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

/// Writes a container's output to this process's streams until it closes it.
async::Task<> pass_output(net::Connection& stream, bool has_terminal) {
  docker::EngineLogFrames frames([](bool is_stderr, std::string_view bytes) {
    core::write_all(is_stderr ? STDERR_FILENO : STDOUT_FILENO, bytes);
  });
  std::array<char, 65536> buffer;
  try {
    while (const auto got = co_await stream.read_some(buffer)) {
      const std::string_view bytes(buffer.data(), got);
      if (has_terminal)
        core::write_all(STDOUT_FILENO, bytes);
      else
        frames.feed(bytes);
    }
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

async::Task<> resize(docker::EngineApi& engine, std::string container, unsigned rows,
                     unsigned columns) {
  co_await engine.call("POST", "/containers/" + container + "/resize?h=" + std::to_string(rows) +
                                   "&w=" + std::to_string(columns));
}

RemoteShell shell_of(docker::EngineApi& engine, const std::string& container,
                     net::Connection& stream, bool has_terminal) {
  return {.send = [&stream](std::string bytes) { return send_input(stream, std::move(bytes)); },
          .end_input = [&stream] { return end_input(stream); },
          .resize = [&engine, container](
                        unsigned rows,
                        unsigned columns) { return resize(engine, container, rows, columns); },
          .pass_output = [&stream, has_terminal] { return pass_output(stream, has_terminal); }};
}

/// The end of a container, awaited from before its start: the engine removes it then.
class EndOfShell {
 public:
  EndOfShell(docker::EngineApi& engine, std::string id, const asio::any_io_executor& executor)
      : listening_(executor),
        wait_(executor, wait(engine, std::move(id)), [this] { listening_.open(); }) {}
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

/// Returns once the container is gone. The engine removes it by itself, too, and refuses to do so
/// twice at a time.
async::Task<> remove_shell(docker::EngineApi& engine, std::string id) {
  constexpr int max_looks = 200;
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

/// @param refusal set if the engine has refused to start the container
async::Task<AttemptResult> try_shell(docker::EngineApi& engine, const Attempt& attempt,
                                     ContainerOptions& place, const std::string& image,
                                     std::string& refusal) {
  AttemptResult result;
  const auto executor = co_await asio::this_coro::executor;
  const auto container = co_await obtain_container(engine, attempt, place);
  EndOfShell end(engine, container.id, executor);
  std::exception_ptr error;
  try {
    if (container.copies) {
      co_await copy_in(engine, attempt, container.id, place.init);
      if (!place.passwd.empty())
        co_await copy_passwd(engine, place, container.id, attempt.io.cancel);
    }
    const auto stream = co_await docker::attach_raw(engine, container.id);
    co_await end.is_awaited();
    co_await engine.start_container(container.id);
    const bool has_terminal = attempt.shell->has_terminal;
    auto shell = shell_of(engine, container.id, *stream, has_terminal);
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

}  // namespace

async::Task<AttemptResult> run_shell(docker::EngineApi& engine, const Attempt& attempt,
                                     ContainerOptions& place, std::string image) {
  for (;;) {
    const auto way = place.gpu_way();
    std::string refusal;
    auto result = co_await try_shell(engine, attempt, place, image, refusal);
    if (!way || refusal.empty() || !place.gpu_access->try_next(*way, refusal)) co_return result;
  }
}

}  // namespace pipeline::orchestrators::docker_engine
