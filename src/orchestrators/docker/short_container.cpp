#include "orchestrators/docker/short_container.hpp"

#include <algorithm>
#include <exception>
#include <functional>

#include <nlohmann/json.hpp>

namespace pipeline::orchestrators {
namespace {

constexpr std::size_t most_printed = 4 << 20;

}  // namespace

async::Task<std::pair<std::string, int>> run_to_end(docker::EngineApi& engine, std::string name,
                                                    nlohmann::json body) {
  std::pair<std::string, int> printed;
  const auto id = co_await engine.create_container(name, std::move(body));
  std::exception_ptr error;
  try {
    co_await engine.start_container(id);
    printed.second = co_await engine.wait_container(id);
    const std::function<void(bool, std::string_view)> keep = [&](bool, std::string_view bytes) {
      printed.first += bytes.substr(0, most_printed - std::min(most_printed, printed.first.size()));
    };
    co_await engine.follow_logs(id, keep);
  } catch (...) {
    error = std::current_exception();
  }
  co_await engine.remove_container(id);
  if (error) std::rethrow_exception(error);
  co_return printed;
}

}  // namespace pipeline::orchestrators
