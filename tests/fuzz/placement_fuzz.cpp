// Fuzzes ECS's cluster query language: errors lie within the text; a parsed expression can be
// evaluated, and its negation has the opposite value.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "gpu/placement.hpp"
#include "gpu/placement_terms.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline::gpu;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto parsed = parse_placement(text);
  if (const auto* error = std::get_if<PlacementError>(&parsed)) {
    if (error->offset > text.size() || error->message.empty()) std::abort();
    return 0;
  }
  const auto& placement = std::get<Placement>(parsed);
  const HostAttributes host{
      {"a", "1"}, {"ecs.instance-type", "g5.xlarge"}, {"b", std::string(300, 'x')}};
  Placement negated;
  negated.kind = Placement::Kind::negation;
  negated.operands = {placement};
  if (unsatisfied(placement, host).empty() == unsatisfied(negated, host).empty()) std::abort();
  const auto demanded = demanded_values(placement, "ecs.instance-type");
  if (!demanded.empty() &&
      std::find(demanded.begin(), demanded.end(), "g5.xlarge") == demanded.end() &&
      unsatisfied(placement, host).empty())
    std::abort();
  const auto terms = node_selector_terms(placement);
  if (const auto* all = std::get_if<std::vector<NodeTerm>>(&terms);
      all && (all->empty() || all->size() > 64))
    std::abort();
  node_selector_terms(negated);
  return 0;
}
