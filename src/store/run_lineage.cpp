// What made an artifact, and what was made with it.
#include <algorithm>
#include <map>

#include "store/record_texts.hpp"
#include "store/run_store_implementation.hpp"

namespace pipeline::store {
namespace {

constexpr const char* gathered_kind = "gathered";
constexpr std::size_t digits = 64;

bool takes(const std::vector<KeyPart>& parts, const std::string& digest) {
  return std::ranges::any_of(parts, [&](const KeyPart& part) {
    return part.name.starts_with("input ") && part.value.find(digest) != std::string::npos;
  });
}

}  // namespace

std::optional<StepRecord> RunStore::maker(const core::Digest& artifact) {
  std::string run, name;
  {
    auto row = self_->database.prepare(
        "SELECT run, name FROM steps WHERE status = ?1 AND instr(outputs, ?2) > 0 ORDER BY id "
        "DESC LIMIT 1");
    const auto digest = artifact.hex();
    row.bind(static_cast<int>(StepStatus::succeeded), digest);
    if (!row.step()) return std::nullopt;
    run = row.text(0);
    name = row.text(1);
  }
  auto all = steps(run);
  const auto found = std::ranges::find(all, name, &StepRecord::name);
  return found == all.end() ? std::nullopt : std::optional(std::move(*found));
}

void RunStore::add_gathered(const core::Digest& input, const std::vector<core::Digest>& pieces) {
  std::string text;
  for (const auto& piece : pieces) text += piece.hex();
  put_blob(gathered_kind, input.hex(), text);
}

std::vector<core::Digest> RunStore::gathered(const core::Digest& input) {
  const auto text = get_blob(gathered_kind, input.hex()).value_or("");
  std::vector<core::Digest> pieces;
  for (std::size_t at = 0; at + digits <= text.size(); at += digits)
    pieces.push_back(core::Digest::from_hex(text.substr(at, digits)));
  return pieces;
}

std::vector<StepRecord> RunStore::users(const core::Digest& artifact) {
  std::vector<std::string> inputs{artifact.hex()};
  {
    auto row = self_->database.prepare(
        "SELECT key FROM blobs WHERE kind = ?1 AND instr(value, ?2) > 0 ORDER BY key");
    row.bind(gathered_kind, inputs.front());
    while (row.step()) inputs.push_back(row.text(0));
  }
  std::map<std::int64_t, std::pair<std::string, std::string>> found;  // In the order of the rows.
  for (const auto& input : inputs) {
    auto row = self_->database.prepare(
        "SELECT id, run, step, parts FROM cache WHERE instr(parts, ?1) > 0");
    row.bind(input);
    while (row.step())
      if (takes(read_parts(row.text(3)), input))
        found.try_emplace(row.integer(0), row.text(1), row.text(2));
  }
  std::vector<StepRecord> users;
  std::map<std::string, std::vector<StepRecord>> steps_of;
  for (const auto& [id, step] : found) {
    const auto [of_run, is_new] = steps_of.try_emplace(step.first);
    if (is_new) of_run->second = steps(step.first);
    const auto record = std::ranges::find(of_run->second, step.second, &StepRecord::name);
    if (record != of_run->second.end()) users.push_back(*record);
  }
  return users;
}

}  // namespace pipeline::store
