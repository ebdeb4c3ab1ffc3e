#include "model/instance.hpp"

#include <algorithm>
#include <charconv>
#include <ranges>
#include <set>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/joined.hpp"
#include "core/text.hpp"

namespace pipeline::model {
namespace {

constexpr std::size_t max_name = 128;
constexpr std::string_view round_mark = ".round-";

bool is_plain(char c) { return core::is_alnum(c) || c == '_' || c == '-' || c == '.'; }

std::optional<std::size_t> whole_number(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string axis_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string InstanceNames::next(const AxisValues& values) {
  std::string name = base_;
  if (values.empty()) name += "." + std::to_string(taken_.size());
  bool is_exact = true;
  for (const auto& [axis, value] : values) {
    name.append(".").append(axis).append("-");
    for (const char c : axis_text(value)) {
      is_exact &= is_plain(c);
      name += is_plain(c) ? c : '_';
    }
  }
  if (is_exact && name.size() <= max_name && taken_.insert(name).second) return name;
  core::Hasher hasher;
  for (const auto& [axis, value] : values) hasher.field(axis).field(value.dump());
  auto digest = hasher.finish().hex();
  constexpr std::size_t digits = 8;
  name.resize(std::min(name.size(), max_name - digits - 1));
  name += "-";
  // Among a hundred thousand names, two may have the same digits.
  while (!taken_.insert(name + digest.substr(0, digits)).second)
    digest = core::sha256(digest).hex();
  return name + digest.substr(0, digits);
}

std::string round_name(const std::string& step, unsigned round) {
  return step + std::string(round_mark) + std::to_string(round);
}

std::optional<unsigned> round_of(std::string_view name, std::string_view step) {
  if (!name.starts_with(step)) return std::nullopt;
  name.remove_prefix(step.size());
  if (!name.starts_with(round_mark)) return std::nullopt;
  const auto round = whole_number(name.substr(round_mark.size()));
  return round ? std::optional(static_cast<unsigned>(*round)) : std::nullopt;
}

std::string_view base_name(std::string_view step) { return step.substr(0, step.find('.')); }

std::optional<Selector> parse_selector(std::string_view text) {
  Selector selector;
  const auto open = text.find('[');
  selector.step = text.substr(0, open);
  if (selector.step.empty()) return std::nullopt;
  if (open == std::string_view::npos) return selector;
  if (text.back() != ']') return std::nullopt;
  selector.has_brackets = true;
  auto rest = text.substr(open + 1, text.size() - open - 2);
  if (rest == "*") {
    selector.all = true;
    return selector;
  }
  selector.index = whole_number(rest);
  if (selector.index) return selector;
  while (true) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto term = core::trimmed(rest.substr(0, comma), " ");
    const auto equals = term.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    if (term == "=")
      selector.same = true;
    else if (equals == 0)
      return std::nullopt;
    else
      selector.axes.emplace_back(term.substr(0, equals), term.substr(equals + 1));
    if (comma == rest.size()) return selector;
    rest.remove_prefix(comma + 1);
  }
}

bool stands_for(std::string_view written, const nlohmann::json& value) {
  if (written == "*" || axis_text(value) == written) return true;
  return !value.is_string() && core::parse_json(written) == value;
}

std::vector<std::size_t> pick(std::string_view text, std::size_t count,
                              const std::function<Candidate(std::size_t)>& candidate) {
  std::vector<std::size_t> picked;
  for (std::size_t i = 0; i < count; ++i)
    if (candidate(i).name == text) return {i};
  const auto selector = parse_selector(text);
  if (!selector || selector->same) return picked;
  std::size_t siblings = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto each = candidate(i);
    if (base_name(each.name) != selector->step || each.name == selector->step) continue;
    const auto place = siblings++;
    if (selector->index && *selector->index != place) continue;
    if (std::all_of(selector->axes.begin(), selector->axes.end(), [&](const auto& axis) {
          const auto* value = each.value(axis.first);
          return value && stands_for(axis.second, *value);
        }))
      picked.push_back(i);
  }
  return picked;
}

std::string suggest_step(std::string_view text, const std::vector<std::string>& steps) {
  constexpr std::size_t max_shown = 8;
  const auto wanted = text.substr(0, text.find('['));
  std::set<std::string_view> seen;
  std::vector<std::string> bases, instances;
  for (const auto& step : steps) {
    const auto base = base_name(step);
    if (seen.insert(base).second) bases.emplace_back(base);
    if (base == wanted && step != wanted) instances.push_back(step);
  }
  // Names of instances are not suggested: they are too many and too long for a typing error.
  if (auto meant = core::did_you_mean(wanted, bases); instances.empty() && !meant.empty())
    return meant;
  const auto& known = instances.empty() ? bases : instances;
  auto list = instances.empty() ? "its steps: " : "the steps of '" + std::string(wanted) + "': ";
  list += core::joined(known | std::views::take(max_shown), ", ");
  return known.size() > max_shown ? list + ", ... (" + std::to_string(known.size()) + ")" : list;
}

}  // namespace pipeline::model
