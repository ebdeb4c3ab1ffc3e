#include "engine/graph/matrix_items.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "core/utf8.hpp"
#include "engine/graph/json_output.hpp"
#include "model/instance.hpp"
#include "settings/formats.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

/// Enough for a list of 100,000 texts.
constexpr std::uint64_t max_list_bytes = 32 << 20;
/// Longer texts are content, not names.
constexpr std::size_t max_item_size = 4096;

std::string name_of_items(const OutputValue& items) {
  auto name = items.source.step + "." + items.source.output;
  for (const auto& part : items.path) name += "." + part;
  return name;
}

core::InputError damaged_items(const OutputValue& items) {
  return core::InputError(name_of_items(items) + " is missing or damaged here",
                          "run again: the step that makes it will run; `pipe verify` looks for "
                          "more that is damaged");
}

void check_count(std::size_t count, const std::string& name) {
  if (count > model::max_instances)
    throw core::InputError(name + " has " + std::to_string(count) +
                               " items, and a matrix makes at most " +
                               std::to_string(model::max_instances) + " instances of a step",
                           "let each item cover more, such as a range");
}

/// Throws InputError unless the item can be a value of a parameter.
void check_item(const nlohmann::json& item, const std::string& what) {
  if (item.is_string()) {
    const auto& text = item.get_ref<const std::string&>();
    if (text.size() > max_item_size)
      throw core::InputError(what + " has " + std::to_string(text.size()) +
                                 " bytes, and a parameter of an instance at most " +
                                 std::to_string(max_item_size),
                             "write a folder with a file for each item");
    if (!settings::formats::text.accepts(text) || !core::is_utf8(text))
      throw core::InputError(what + " has control characters, or is not UTF-8");
  } else if (!item.is_boolean() && !item.is_number()) {
    throw core::InputError(what + " is null");
  } else if (item.is_number_float() && !std::isfinite(item.get<double>())) {
    throw core::InputError(what + " is more than a parameter can hold");
  }
}

std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Compares as people number files: `part-2` comes before `part-10`.
bool comes_before(const std::string& a, const std::string& b) {
  const auto number_at = [&](const std::string& text, std::size_t at) {
    auto end = at;
    while (end < text.size() && core::is_digit(text[end])) ++end;
    while (at + 1 < end && text[at] == '0') ++at;
    return std::string_view(text).substr(at, end - at);
  };
  std::size_t i = 0, k = 0;
  while (i < a.size() && k < b.size()) {
    if (!core::is_digit(a[i]) || !core::is_digit(b[k])) {
      if (a[i] != b[k]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[k]);
      ++i, ++k;
      continue;
    }
    const auto first = number_at(a, i), second = number_at(b, k);
    if (first.size() != second.size()) return first.size() < second.size();
    if (first != second) return first < second;
    i = static_cast<std::size_t>(first.data() - a.data()) + first.size();
    k = static_cast<std::size_t>(second.data() - b.data()) + second.size();
  }
  return a.size() - i != b.size() - k ? a.size() - i < b.size() - k : a < b;
}

/// Returns the items of a JSON list.
std::vector<MatrixItem> items_of_list(const OutputValue& items, const store::OutputRecord& output,
                                      store::ArtifactStore& artifacts) {
  const auto name = name_of_items(items);
  nlohmann::json list;
  try {
    list = read_member(output, items, artifacts, max_list_bytes, LargeIntegers::as_texts);
  } catch (const core::EnvironmentError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw core::InputError(error.what());
  }
  if (!list.is_array())
    throw core::InputError(name + " is not a list, but " + shown_json(list),
                           "a matrix takes a JSON list, or a folder with an entry for each item");
  check_count(list.size(), name);
  std::vector<MatrixItem> found;
  found.reserve(list.size());
  std::unordered_map<std::string, std::size_t> seen;
  for (auto& item : list) {
    // A parameter is one value: a map or list becomes its JSON text.
    if (item.is_structured()) item = json_text(item);
    const auto what = "item " + std::to_string(found.size()) + " of " + name;
    check_item(item, what);
    const auto [other, is_new] = seen.emplace(item.dump(), found.size());
    if (!is_new)
      throw core::InputError(
          what + " is " + shown_json(item) + ", as item " + std::to_string(other->second) + " is",
          "each item makes a step of its own: leave out the second one");
    found.push_back({std::move(item)});
  }
  return found;
}

/// Returns the visible entries of a folder.
std::vector<MatrixItem> items_of_folder(const OutputValue& items, const store::OutputRecord& output,
                                        store::ArtifactStore& artifacts) {
  const auto name = name_of_items(items);
  if (!items.path.empty())
    throw core::InputError(items.source.step + "." + items.source.output +
                           " is a folder, which has no member '" + items.path.front() + "'");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(artifacts.path(output.digest))) {
    auto file = entry.path().filename().string();
    if (file.starts_with('.')) continue;
    if (entry.is_symlink())
      throw core::InputError(
          "'" + core::printable(file) + "' in the folder " + name + " is a link, not an item",
          "write files or folders into it");
    names.push_back(std::move(file));
    check_count(names.size(), name);
  }
  // Instances take the entries as data, which they do not compare with a digest of the step's.
  if (store::is_read_on_use(output.bytes, names.size()) && !artifacts.is_intact(output.digest))
    throw damaged_items(items);
  std::ranges::sort(names, comes_before);
  std::vector<MatrixItem> found;
  found.reserve(names.size());
  for (auto& file : names) {
    check_item(nlohmann::json(file), "an entry of the folder " + name);
    auto path = artifacts.path(output.digest) / file;
    found.push_back({std::move(file), std::move(path)});
  }
  return found;
}

}  // namespace

std::vector<MatrixItem> items_of(const OutputValue& items, const store::OutputRecord& output,
                                 store::ArtifactStore& artifacts) {
  if (!artifacts.looks_whole(output.digest)) throw damaged_items(items);
  return output.is_directory ? items_of_folder(items, output, artifacts)
                             : items_of_list(items, output, artifacts);
}

}  // namespace pipeline::engine
