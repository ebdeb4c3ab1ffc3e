#include "engine/cache/step_keys.hpp"

#include <algorithm>

#include "engine/cache/elsewhere.hpp"

namespace pipeline::engine {

std::vector<store::KeyPart> StepKeys::own_parts(const StepSpec& step,
                                                const orchestrators::Environment& environment) {
  auto parts = key_parts(pipeline_.name, step, resolve_environment(step),
                         code_parts_.of(code_.files(step)), environment.id);
  std::ranges::find(parts, "image", &store::KeyPart::name)->producer = environment.description;
  if (step.program) parts.push_back(program_parts_.of(*step.program));
  for (const auto& input : step.inputs)
    if (input.data) std::ranges::move(data_.parts(input), std::back_inserter(parts));
  return parts;
}

StepKey StepKeys::key(const StepSpec& step, const orchestrators::Environment& environment,
                      const OutputsOf& outputs) {
  StepKey result;
  result.parts = own_parts(step, environment);
  for (const auto& input : step.inputs)
    if (!input.data) result.parts.push_back(input_part(input, content_of(input, outputs)));
  result.key = key_of(result.parts);
  return result;
}

StepKey StepKeys::as_it_ran(StepKey key, const std::string& tree,
                            const std::vector<store::TreeFile>& files) {
  const auto [ran, is_new] = parts_of_trees_.try_emplace(tree);
  if (is_new) {
    auto code = files;
    for (auto& file : code)
      digest_notebook(file, artifacts_.path(core::Digest::from_hex(tree)) / file.path);
    ran->second = code_parts(std::move(code));
  }
  if (replace_code(key.parts, ran->second)) key.key = key_of(key.parts);
  return key;
}

void mark_temporary(const StepSpec& step, std::vector<store::OutputRecord>& outputs) {
  for (auto& output : outputs)
    output.temp = std::ranges::any_of(
        step.outputs, [&](const auto& each) { return each.temp && each.name == output.name; });
}

std::optional<store::CacheEntry> StepKeys::success_of(const StepSpec& step, const std::string& key,
                                                      bool needs_all) {
  auto entry = store_.cache().find(key);
  if (!entry) return std::nullopt;
  mark_temporary(step, entry->outputs);
  if (std::ranges::all_of(entry->outputs, [&](const auto& output) {
        return is_at_hand(services_, step, output) || (output.temp && !needs_all);
      }))
    return entry;
  const auto is_elsewhere = [&](const auto& output) {
    return artifacts_.elsewhere(output.digest).has_value();
  };
  if (std::ranges::none_of(entry->outputs, is_elsewhere)) store_.cache().remove(key);
  return std::nullopt;
}

}  // namespace pipeline::engine
