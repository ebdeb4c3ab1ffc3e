#include <pipeline/json.hpp>

#include <deque>
#include <filesystem>
#include <forward_list>
#include <list>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <gmock/gmock.h>
#include <boost/container/flat_map.hpp>
#include <boost/container/small_vector.hpp>
#include <nlohmann/json.hpp>

namespace elsewhere {

/// With functions as nlohmann's library wants them.
class Celsius {
 public:
  double degrees() const { return degrees_; }

 private:
  double degrees_ = 0;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(Celsius, degrees_)
};

/// A container that is stored otherwise than as a list.
struct Letters : std::vector<char> {
  friend void to_json(nlohmann::json& to, const Letters& letters) {
    to = std::string(letters.begin(), letters.end());
  }
  friend void from_json(const nlohmann::json& from, Letters& letters) {
    const auto text = from.get<std::string>();
    letters.assign(text.begin(), text.end());
  }
};

struct Handle {
  explicit Handle(int n) : number(n) {}
  int number;
};

}  // namespace elsewhere

template <>
struct nlohmann::adl_serializer<elsewhere::Handle> {
  static void to_json(json& to, const elsewhere::Handle& handle) { to = handle.number; }
  static elsewhere::Handle from_json(const json& from) {
    return elsewhere::Handle(from.get<int>());
  }
};

namespace pipeline::core {
namespace {

using nlohmann::json;

struct Opaque {
  explicit Opaque(int) {}
};
static_assert(JsonAble<elsewhere::Celsius> && JsonAble<elsewhere::Handle> &&
              JsonAble<std::vector<elsewhere::Handle>> && JsonAble<Json> && JsonAble<json>);
static_assert(!JsonAble<Opaque> && !JsonAble<int*> && !JsonAble<std::map<std::string, Opaque>>);

TEST(JsonValue, is_written_as_in_nlohmanns_library) {
  EXPECT_EQ(*Json(), json());
  EXPECT_EQ(*Json("text"), json("text"));
  EXPECT_EQ(*Json(true), json(true));
  EXPECT_EQ(*Json(-3), json(-3));
  EXPECT_EQ(*Json(std::numeric_limits<std::uint64_t>::max()),
            json(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_EQ(*Json(0.5f), json(0.5));
  EXPECT_EQ(*Json(std::vector{1, 2}), json({1, 2}));
  const Json map{
      {"epoch", 3}, {"loss", 0.25}, {"list", {1, "two", nullptr}}, {"deep", {{"a", true}}}};
  EXPECT_EQ(
      *map,
      (json{{"epoch", 3}, {"loss", 0.25}, {"list", {1, "two", nullptr}}, {"deep", {{"a", true}}}}));
  const Json list{0.1, 1.0};
  EXPECT_EQ(*list, json({0.1, 1.0}));
}

TEST(JsonValue, is_a_regular_type) {
  Json a{{"x", 1}};
  Json b = a;
  (*b)["x"] = 2;
  EXPECT_EQ((*a)["x"], 1) << "a copy is another one";
  a = std::move(b);
  EXPECT_EQ(a->at("x"), 2);
  a = nullptr;
  EXPECT_TRUE(a.is_null() && a == Json());
}

TEST(JsonValue, converts_to_and_from_nlohmanns_library) {
  const std::map<std::string, Json> map{{"a", 1}, {"b", {"x", "y"}}};
  EXPECT_EQ(json(map), (json{{"a", 1}, {"b", {"x", "y"}}}));
}

template <class T>
T round_trip(const T& value) {
  return detail::decode<T>(*Json(value));
}

TEST(JsonValue, types_with_functions_or_a_serializer_of_their_own_use_those) {
  const auto celsius = detail::decode<elsewhere::Celsius>(json{{"degrees_", 21.5}});
  EXPECT_EQ(celsius.degrees(), 21.5);
  EXPECT_EQ(*Json(celsius), (json{{"degrees_", 21.5}}));
  EXPECT_EQ(round_trip(elsewhere::Handle(7)).number, 7);
  const elsewhere::Letters letters{{'a', 'b'}};
  EXPECT_EQ(*Json(letters), json("ab"));
  EXPECT_EQ(round_trip(letters), letters);
  static_assert(!detail::ConvertsItself<std::vector<int>> &&
                !detail::ConvertsItself<std::map<std::string, int>>);
  const detail::JsonPath root;
  EXPECT_THROW(detail::decode<elsewhere::Celsius>(json::array(), detail::JsonPath{&root, "place"}),
               JsonError);
}

TEST(JsonValue, containers_come_back) {
  EXPECT_EQ(round_trip(std::deque{1, 2}), (std::deque{1, 2}));
  EXPECT_EQ(round_trip(std::list<std::string>{"a"}), (std::list<std::string>{"a"}));
  EXPECT_EQ(round_trip(std::unordered_set{3}), (std::unordered_set{3}));
  EXPECT_EQ(round_trip(std::array{1, 2, 3}), (std::array{1, 2, 3}));
  EXPECT_EQ(round_trip(std::map<int, std::vector<bool>>{{1, {true, false}}}),
            (std::map<int, std::vector<bool>>{{1, {true, false}}}));
  EXPECT_EQ(round_trip(std::optional<int>{}), std::nullopt);
  const std::unordered_map<std::string, std::set<int>> sets{{"a", {1, 2}}, {"b", {}}};
  EXPECT_EQ(round_trip(sets), sets);
  EXPECT_EQ(*Json(sets), (json{{"a", {1, 2}}, {"b", json::array()}}));
}

TEST(JsonValue, containers_of_others_come_back_too) {
  using Map = boost::container::flat_map<std::string, boost::container::small_vector<int, 2>>;
  const Map map{{"a", {1, 2, 3}}};
  EXPECT_EQ(round_trip(map), map);
  EXPECT_EQ(*Json(map), (json{{"a", {1, 2, 3}}}));
}
// Types that would lose something, or have no place for items.
static_assert(!JsonAble<std::multimap<int, int>> && !JsonAble<std::string_view> &&
              !JsonAble<std::filesystem::path> && !JsonAble<std::wstring> &&
              !JsonAble<std::forward_list<int>> && !JsonAble<std::set<elsewhere::Handle*>>);

TEST(JsonValue, numbers_that_do_not_fit_are_refused_with_their_place) {
  const auto error_of = [](auto type, const json& from) -> std::string {
    try {
      const detail::JsonPath root;
      detail::decode<decltype(type)>(from, detail::JsonPath{&root, "n"});
    } catch (const JsonError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of(std::int8_t(), 128), ".n: expected an integer from -128 to 127, found 128");
  EXPECT_EQ(error_of(std::int8_t(), -129), ".n: expected an integer from -128 to 127, found -129");
  EXPECT_EQ(error_of(std::int64_t(), std::numeric_limits<std::uint64_t>::max()),
            ".n: expected an integer of 64 bits, found 18446744073709551615");
  EXPECT_EQ(error_of(std::uint8_t(), -1), ".n: expected an integer that is not negative, found -1");
  EXPECT_EQ(error_of(std::uint8_t(), 256), ".n: expected an integer from 0 to 255, found 256");
  EXPECT_EQ(error_of(int(), 1.5), ".n: expected an integer, found 1.5");
  EXPECT_EQ(error_of(std::int64_t(), 1e16),
            ".n: expected an integer that is written without fraction and exponent, found 1e+16");
  EXPECT_EQ(error_of(double(), "1"), ".n: expected a number, found \"1\"");
  EXPECT_EQ(error_of(bool(), 1), ".n: expected true or false, found 1");
  EXPECT_EQ(detail::decode<int>(json(1e6)), 1'000'000);
}

}  // namespace
}  // namespace pipeline::core
