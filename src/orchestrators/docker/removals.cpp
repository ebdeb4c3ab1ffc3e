#include "orchestrators/docker/removals.hpp"

#include <utility>

#include "core/log.hpp"

namespace pipeline {

Task<> Removals::remove(std::string id) {
  try {
    co_await engine_.remove_container(std::move(id));
  } catch (const EnvironmentError& failed) { log::warn(std::string(failed.what()) + "; the next run removes it"); }
}

void Removals::begin(const asio::any_io_executor& executor, std::string id) {
  running_.remove_if([](const net::Companion& one) { return one.done(); });
  running_.emplace_back(executor, remove(std::move(id)));
}

Task<> Removals::settle() {
  for (auto& one : running_) co_await one.join();
  running_.clear();
}

}  // namespace pipeline
