#include <pipeline/json.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>

#include <nlohmann/json.hpp>

namespace pipeline {

namespace detail {
namespace {

const json null_value;

/// Formats a path as `.layers[2].size`.
std::string text_of(const JsonPath& path) {
  if (!path.parent) return {};
  return text_of(*path.parent) + (path.member.data() ? "." + std::string(path.member)
                                                     : "[" + std::to_string(path.item) + "]");
}

std::string prefix(const JsonPath& path) {
  return path.parent ? text_of(path) + ": " : std::string();
}

[[noreturn]] void json_mismatch(const JsonPath& path, const std::string& expected,
                                const json& found) {
  auto shown = found.dump(-1, ' ', false, json::error_handler_t::replace);
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  if (found.is_null()) shown = "nothing";
  throw JsonError(prefix(path) + "expected " + expected + ", found " + shown);
}

/// Returns the number as a JSON integer, also if it is written as 1e6.
json integer_in(const json& from, const JsonPath& path) {
  if (from.is_number_integer()) return from;
  constexpr double max_exact = 9e15;  // Below 2^53: a double has each integer up to there.
  constexpr double not_an_integer = 0.5;
  const auto number = from.is_number_float() ? from.get<double>() : not_an_integer;
  if (std::trunc(number) != number) json_mismatch(path, "an integer", from);
  if (std::abs(number) >= max_exact)
    json_mismatch(path, "an integer that is written without fraction and exponent", from);
  return static_cast<std::int64_t>(number);
}

std::string range_text(const auto& least, const auto& most) {
  return "an integer from " + std::to_string(least) + " to " + std::to_string(most);
}

}  // namespace

void put_boolean(json& to, bool value) { to = value; }
void put_integer(json& to, std::int64_t value) { to = value; }
void put_unsigned(json& to, std::uint64_t value) { to = value; }
void put_number(json& to, double value) {
  if (std::isfinite(value))
    to = value;
  else
    to = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}
void put_text(json& to, std::string_view value) { to = value; }
void put_json(json& to, const json& value) { to = value; }
void move_json(json& to, json& from) { to = std::move(from); }
void put_list(json& to) { to = json::array(); }
void put_map(json& to) { to = json::object(); }
json& add_item(json& list) { return list.emplace_back(); }
json& add_member(json& map, std::string_view name) { return map[std::string(name)]; }

bool is_null(const json& from) { return from.is_null(); }

bool get_boolean(const json& from, const JsonPath& path) {
  if (!from.is_boolean()) json_mismatch(path, "true or false", from);
  return from.get<bool>();
}

std::int64_t get_integer(const json& from, const JsonPath& path, std::int64_t least,
                         std::int64_t most) {
  const auto number = integer_in(from, path);
  const bool is_huge =
      number.is_number_unsigned() && number.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (is_huge || number.get<std::int64_t>() > most || number.get<std::int64_t>() < least)
    json_mismatch(path,
                  most < std::numeric_limits<std::int64_t>::max() ? range_text(least, most)
                                                                  : "an integer of 64 bits",
                  from);
  return number.get<std::int64_t>();
}

std::uint64_t get_unsigned(const json& from, const JsonPath& path, std::uint64_t most) {
  const auto number = integer_in(from, path);
  if (!number.is_number_unsigned() && number.get<std::int64_t>() < 0)
    json_mismatch(path, "an integer that is not negative", from);
  if (number.get<std::uint64_t>() > most) json_mismatch(path, range_text(0, most), from);
  return number.get<std::uint64_t>();
}

double get_number(const json& from, const JsonPath& path) {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  if (from.is_string()) {
    const auto& name = from.get_ref<const std::string&>();
    if (name == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (name == "Infinity" || name == "-Infinity") return name[0] == '-' ? -infinity : infinity;
  }
  if (!from.is_number()) json_mismatch(path, "a number", from);
  return from.get<double>();
}

const std::string& get_text(const json& from, const JsonPath& path) {
  if (!from.is_string()) json_mismatch(path, "a text", from);
  return from.get_ref<const std::string&>();
}

std::size_t list_size(const json& from, const JsonPath& path) {
  if (!from.is_array()) json_mismatch(path, "a list", from);
  return from.size();
}

void check_list(const json& from, const JsonPath& path, std::size_t length, const char* expected) {
  if (!from.is_array() || from.size() != length) json_mismatch(path, expected, from);
}

void check_map(const json& from, const JsonPath& path) {
  if (!from.is_object()) json_mismatch(path, "a map", from);
}

const json& item_of(const json& list, std::size_t i) { return list[i]; }

const json& member_of(const json& map, std::string_view name) {
  const auto found = map.find(name);
  return found == map.end() ? null_value : *found;
}

void each_member(const json& map, Callback<const std::string&, const json&> visit) {
  for (const auto& [name, value] : map.items()) visit(name, value);
}

void convert(const JsonPath& path, Callback<> conversion) {
  try {
    conversion();
  } catch (const json::exception& error) {
    throw JsonError(prefix(path) + error.what());
  }
}

}  // namespace detail

Json::Json() noexcept {
  static_assert(sizeof(nlohmann::json) <= sizeof value_ && alignof(nlohmann::json) <= 8);
  std::construct_at(reinterpret_cast<nlohmann::json*>(value_));
}
Json::Json(std::nullptr_t) noexcept : Json() {}
Json::Json(const char* text) : Json(std::string_view(text)) {}
Json::Json(std::string_view text) : Json() { **this = text; }

Json::Json(std::initializer_list<Json> items) : Json() {
  const bool is_map = std::ranges::all_of(items, [](const Json& item) {
    return item->is_array() && item->size() == 2 && (*item)[0].is_string();
  });
  auto& value = **this;
  value = is_map ? nlohmann::json::object() : nlohmann::json::array();
  for (const auto& item : items) {
    if (is_map)
      value.emplace((*item)[0].get_ref<const std::string&>(), (*item)[1]);
    else
      value.push_back(*item);
  }
}

Json::Json(const Json& other) : Json() {
  written = other.written;
  **this = *other;
}
Json::Json(Json&& other) noexcept : Json() {
  written = std::move(other.written);
  (**this).swap(*other);
}
Json& Json::operator=(Json other) noexcept {
  (**this).swap(*other);
  written = std::move(other.written);
  return *this;
}
Json::~Json() { std::destroy_at(&**this); }

bool Json::is_null() const { return (**this).is_null(); }

nlohmann::json& Json::operator*() {
  return *std::launder(reinterpret_cast<nlohmann::json*>(value_));
}
const nlohmann::json& Json::operator*() const {
  return *std::launder(reinterpret_cast<const nlohmann::json*>(value_));
}

bool operator==(const Json& a, const Json& b) { return *a == *b; }

}  // namespace pipeline
