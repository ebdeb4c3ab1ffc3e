#include "docker/credential_helper.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/identifier.hpp"
#include "net/program.hpp"

namespace pipeline::docker {
namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, std::min(text.find('\n'), std::size_t{200}));
}

async::Task<HelperAnswer> run_helper(std::string program, std::string server,
                                     std::chrono::milliseconds timeout) {
  HelperAnswer answer;
  net::ProgramCall call;
  call.command.push_back(program);
  call.command.push_back("get");
  call.input = std::move(server);
  call.timeout = timeout;
  const auto result = co_await net::run_program(std::move(call));
  if (result.late) {
    answer.failure =
        program + " did not respond within " + std::to_string(timeout.count() / 1000) + " s";
  } else if (result.code != 0) {
    // The protocol's message for "no credentials", which is not a failure.
    if (result.output.find("credentials not found") == std::string::npos)
      answer.failure = program + " failed: " + first_line(result.output);
  } else {
    const auto document = core::parse_json(result.output);
    const auto has_text = [&](const char* key) {
      return document.is_object() && document.contains(key) && document[key].is_string();
    };
    if (has_text("Username") && has_text("Secret")) {
      answer.username = document["Username"].get<std::string>();
      answer.secret = document["Secret"].get<std::string>();
    } else {
      answer.failure = program + " gave a response without a Username and a Secret";
    }
  }
  co_return answer;
}

}  // namespace

async::Task<HelperAnswer> ask_credential_helper(std::string name, std::string server,
                                                std::chrono::milliseconds timeout) {
  HelperAnswer answer;
  const std::string program = "docker-credential-" + name;
  if (!core::is_name(name)) {
    answer.failure = "the name of a credential helper is not a plain name";
    co_return answer;
  }
  try {
    answer = co_await run_helper(program, server, timeout);
  } catch (const std::exception& error) {
    answer.failure = program + ": " + error.what();
  }
  co_return answer;
}

}  // namespace pipeline::docker
