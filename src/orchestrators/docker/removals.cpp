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
  std::erase_if(running_, [](const auto& one) { return one->done(); });
  running_.push_back(std::make_shared<net::Companion>(executor, remove(std::move(id))));
}

Task<> Removals::settle() {
  const auto begun = running_;
  for (const auto& one : begun) co_await one->join();
}

}  // namespace pipeline
