#include "orchestrators/removals.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

namespace pipeline::orchestrators {
namespace {

/// Adds the name to `left` if the removal fails.
async::Task<> try_removal(async::Task<> removal, std::string name, std::set<std::string>& left) {
  try {
    co_await std::move(removal);
  } catch (const core::EnvironmentError& failed) {
    core::log::warn(std::string(failed.what()) + "; `pipe clean --containers` removes it");
    if (!name.empty()) left.insert(std::move(name));
  }
}

}  // namespace

void Removals::begin(const asio::any_io_executor& executor, async::Task<> removal,
                     std::string name) {
  std::erase_if(running_, [](const auto& one) { return one->done(); });
  running_.push_back(std::make_shared<async::JoinableTask>(
      executor, try_removal(std::move(removal), std::move(name), left_)));
}

async::Task<> Removals::settle() {
  const auto begun = running_;
  for (const auto& one : begun) co_await one->join();
}

}  // namespace pipeline::orchestrators
