#include "docker/raw_stream.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>

#include "async/sleep.hpp"
#include "async/timeout.hpp"
#include "core/user_environment.hpp"
#include "docker/json_text.hpp"

namespace pipeline::docker {
namespace {

constexpr std::size_t max_stream_head = 64 << 10;  // Bytes.

/// Returns the number in `HTTP/1.1 101 UPGRADED`; 0 if there is none.
long status_of(const std::string& head) {
  const auto blank = head.find(' ');
  return head.starts_with("HTTP/1.") && blank != head.npos
             ? std::strtol(head.c_str() + blank, nullptr, 10)
             : 0;
}

/// A connection that the engine has upgraded to a raw stream.
struct UpgradedConnection {
  std::unique_ptr<net::Connection> connection;
  std::string first_bytes;  ///< Bytes of the stream that were read with the head of the response.
};

/// Sends a POST request that asks for a raw stream, and reads the head of the response.
/// @param what completes the message "cannot ..."
async::Task<UpgradedConnection> open_stream(EngineApi& engine, std::string what, std::string path,
                                            std::string body) {
  const auto* info = co_await engine.info();
  auto stream = engine.open_connection();
  std::string head;
  std::optional<std::string> lost;
  bool is_late = false;
  async::Timeout limit(co_await asio::this_coro::executor, [&] {
    is_late = true;
    stream->close();
  });
  limit.start(engine.limits().answer);
  try {
    auto request = "POST /v" + info->api_version + path +
                   " HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n" +
                   (body.empty() ? "" : "Content-Type: application/json\r\n") +
                   "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    co_await stream->write(std::move(request));
    std::array<char, 4096> buffer;
    while (head.find("\r\n\r\n") == head.npos && head.size() < max_stream_head) {
      const auto count = co_await stream->read_some(buffer);
      if (count == 0) break;
      head.append(buffer.data(), count);
    }
  } catch (const net::TransportError& error) {
    lost = error.what();
  }
  const auto end = head.find("\r\n\r\n");
  if (is_late) lost = "the engine did not respond in time";
  if (!lost && end == head.npos)
    lost = head.size() >= max_stream_head ? "the head of the engine's response is too long"
                                          : "the engine has closed the connection";
  if (lost) throw core::EnvironmentError("cannot " + what + ": " + *lost);
  const auto status = status_of(head);
  if (status != 101 && status != 200)
    throw EngineError(
        status, "cannot " + what + ": the engine responded " + head.substr(0, head.find("\r\n")));
  co_return UpgradedConnection{std::move(stream), head.substr(end + 4)};
}

}  // namespace

async::Task<std::unique_ptr<net::Connection>> attach_raw(EngineApi& engine, std::string container) {
  // Nothing follows the head: the container has not been started.
  auto upgraded = co_await open_stream(
      engine, "attach to the container " + container.substr(0, 12),
      "/containers/" + container + "/attach?stream=1&stdin=1&stdout=1&stderr=1", "");
  co_return std::move(upgraded.connection);
}

async::Task<ExecStream> start_exec(EngineApi& engine, std::string container,
                                   std::vector<std::string> words, bool has_terminal) {
  nlohmann::json body{{"Cmd", std::move(words)}, {"Tty", has_terminal}};
  for (const auto* name : {"AttachStdin", "AttachStdout", "AttachStderr"}) body[name] = true;
  if (const auto kind = core::variable("TERM"); has_terminal && !kind.empty())
    body["Env"] = nlohmann::json::array({"TERM=" + kind});
  const auto made =
      co_await engine.call("POST", "/containers/" + container + "/exec", std::move(body));
  ExecStream stream;
  stream.id = text_at(made, "Id");
  const auto what = "start a command in the container " + container.substr(0, 12);
  if (stream.id.empty())
    throw core::EnvironmentError("cannot " + what + ": the engine's answer has no Id");
  const nlohmann::json start{{"Detach", false}, {"Tty", has_terminal}};
  auto upgraded = co_await open_stream(engine, what, "/exec/" + stream.id + "/start", start.dump());
  stream.connection = std::move(upgraded.connection);
  stream.first_output = std::move(upgraded.first_bytes);
  co_return stream;
}

async::Task<int> exec_code(EngineApi& engine, std::string id) {
  // The output of a command can end a moment before the engine knows that the command has ended.
  constexpr int max_looks = 100;
  constexpr std::chrono::milliseconds pause(20);
  for (int look = 0; look < max_looks; ++look) {
    const auto state = co_await engine.call("GET", "/exec/" + id + "/json");
    if (const auto running = state.find("Running"); running != state.end() && *running == true) {
      co_await async::sleep(pause);
      continue;
    }
    const auto found = state.find("ExitCode");
    co_return found != state.end() && found->is_number_integer() ? found->get<int>() : -1;
  }
  co_return -1;
}

}  // namespace pipeline::docker
