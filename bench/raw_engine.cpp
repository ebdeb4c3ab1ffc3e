// The floor for a container step: the bare Engine API calls (create, wait, start, delete) and
// nothing else, N times. `raw_engine N JOBS BODY.json`: BODY is the body of POST
// /containers/create; JOBS containers run at a time (1: a chain). Prints JSON: the wall time and
// the milliseconds of each call, summed over all containers. Each worker keeps two connections, as
// the wait is open during the start.
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Clock = std::chrono::steady_clock;

namespace {

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::string socket_path() {
  const char* host = std::getenv("DOCKER_HOST");
  const std::string prefix = "unix://";
  return host && std::string(host).starts_with(prefix) ? std::string(host).substr(prefix.size())
                                                       : "/var/run/docker.sock";
}

/// A kept connection to the engine.
class Connection {
 public:
  Connection() : stream_(loop_) { stream_.connect(socket_path()); }

  void send(http::verb method, const std::string& target, std::string body = {}) {
    http::request<http::string_body> request(method, target, 11, std::move(body));
    request.set(http::field::host, "engine");
    request.set(http::field::content_type, "application/json");
    request.prepare_payload();
    http::write(stream_, request);
    parser_.emplace();
    target_ = target;
  }
  /// Reads up to the answer's body; the engine sends the header of a wait as soon as it has begun
  /// to wait.
  void read_header() { http::read_header(stream_, buffer_, *parser_); }
  std::string read() {
    http::read(stream_, buffer_, *parser_);
    if (http::to_status_class(parser_->get().result()) != http::status_class::successful)
      throw std::runtime_error(target_ + ": " + std::to_string(parser_->get().result_int()) + " " +
                               parser_->get().body());
    return parser_->get().body();
  }
  std::string call(http::verb method, const std::string& target, std::string body = {}) {
    send(method, target, std::move(body));
    return read();
  }

 private:
  asio::io_context loop_;
  asio::local::stream_protocol::socket stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::response_parser<http::string_body>> parser_;
  std::string target_;
};

struct Phases {
  double create = 0, start = 0, wait = 0, remove = 0;
};

void run_container(Connection& calls, Connection& waits, const std::string& body, Phases& phases) {
  auto mark = Clock::now();
  const auto lap = [&mark](double& sum) {
    sum += milliseconds_since(mark);
    mark = Clock::now();
  };
  const auto id = nlohmann::json::parse(calls.call(http::verb::post, "/containers/create", body))
                      .at("Id")
                      .get<std::string>();
  lap(phases.create);
  waits.send(http::verb::post, "/containers/" + id + "/wait?condition=next-exit");
  waits.read_header();
  calls.call(http::verb::post, "/containers/" + id + "/start");
  lap(phases.start);
  const auto exit_code = nlohmann::json::parse(waits.read()).at("StatusCode").get<int>();
  lap(phases.wait);
  calls.call(http::verb::delete_, "/containers/" + id);
  lap(phases.remove);
  if (exit_code != 0)
    throw std::runtime_error("container ended with exit code " + std::to_string(exit_code));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: raw_engine N JOBS BODY.json\n", stderr);
    return 2;
  }
  const int count = std::atoi(argv[1]), jobs = std::atoi(argv[2]);
  std::ifstream file(argv[3]);
  const std::string body{std::istreambuf_iterator<char>(file), {}};

  const auto start = Clock::now();
  std::atomic<int> next = 0;
  std::mutex mutex;
  Phases total;
  std::string failure;
  std::vector<std::thread> workers;
  for (int job = 0; job < jobs; ++job)
    workers.emplace_back([&] {
      Phases phases;
      std::string message;
      try {
        Connection calls, waits;
        while (next++ < count) run_container(calls, waits, body, phases);
      } catch (const std::exception& error) {
        message = error.what();
      }
      const std::lock_guard lock(mutex);
      if (!message.empty()) failure = message;
      total.create += phases.create, total.start += phases.start, total.wait += phases.wait,
          total.remove += phases.remove;
    });
  for (auto& worker : workers) worker.join();
  if (!failure.empty()) {
    std::fprintf(stderr, "raw_engine: %s\n", failure.c_str());
    return 1;
  }
  const nlohmann::json report = {{"wall_ms", milliseconds_since(start)},
                                 {"create_ms", total.create},
                                 {"start_ms", total.start},
                                 {"wait_ms", total.wait},
                                 {"remove_ms", total.remove}};
  std::puts(report.dump().c_str());
}
