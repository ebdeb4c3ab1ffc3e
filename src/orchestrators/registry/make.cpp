#include "orchestrators/registry/registry.hpp"

namespace pipeline::orchestrators {

std::unique_ptr<Orchestrator> make_orchestrator(const std::string& name, asio::io_context& loop,
                                                OrchestratorOptions options) {
  const auto& entry = entry_of(name);
  options.connection = connection_of(entry, options.connection);
  return factories().at(entry.name)(loop, std::move(options));
}

}  // namespace pipeline::orchestrators
