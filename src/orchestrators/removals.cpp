#include "orchestrators/removals.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

namespace pipeline {
namespace {

Task<> attempted(Task<> removal) {
  try {
    co_await std::move(removal);
  } catch (const EnvironmentError& failed) { log::warn(std::string(failed.what()) + "; the next run removes it"); }
}

}  // namespace

void Removals::begin(const asio::any_io_executor& executor, Task<> removal) {
  std::erase_if(running_, [](const auto& one) { return one->done(); });
  running_.push_back(std::make_shared<net::Companion>(executor, attempted(std::move(removal))));
}

Task<> Removals::settle() {
  const auto begun = running_;
  for (const auto& one : begun) co_await one->join();
}

}  // namespace pipeline
