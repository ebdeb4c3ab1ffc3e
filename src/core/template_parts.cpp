// The parts of a Template (pipeline/spec.hpp), kept in one text to save memory.
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include <pipeline/spec.hpp>

namespace pipeline {
namespace {

// Each part begins with 32 bits: its kind, 0 for a text and otherwise 1 more than its placeholder,
// and above these bits the length of the text or name that follows.
using Head = std::uint32_t;
constexpr unsigned kind_bits = 4;
constexpr std::size_t max_part = (std::size_t{1} << (32 - kind_bits)) - 1;

Head head_at(const char* at) {
  Head head;
  std::memcpy(&head, at, sizeof head);
  return head;
}

std::string_view part_text(const char* at) { return {at + sizeof(Head), head_at(at) >> kind_bits}; }

unsigned kind_at(const char* at) { return head_at(at) & ((1u << kind_bits) - 1); }

}  // namespace

Template::Part Template::Parts::Iterator::operator*() const {
  std::string text(part_text(at_));
  const auto kind = kind_at(at_);
  if (kind == 0) return text;
  return Reference{static_cast<Placeholder>(kind - 1), std::move(text)};
}

Template::Parts::Iterator& Template::Parts::Iterator::operator++() {
  at_ = part_text(at_).data() + part_text(at_).size();
  return *this;
}

Template::Parts::Parts(std::initializer_list<Part> parts) {
  for (const auto& part : parts) std::visit([&](const auto& each) { emplace_back(each); }, part);
}

std::size_t Template::Parts::size() const {
  std::size_t count = 0;
  for (auto each = begin(); each != end(); ++each) ++count;
  return count;
}

Template::Part Template::Parts::at(std::size_t i) const {
  auto each = begin();
  while (each != end() && i > 0) {
    ++each;
    --i;
  }
  if (each == end()) throw std::out_of_range("a template has fewer parts");
  return *each;
}

std::optional<std::string_view> Template::Parts::only_text() const {
  const char* const start = encoded_.data();
  if (empty() || kind_at(start) != 0) return std::nullopt;
  const auto text = part_text(start);
  if (text.data() + text.size() != start + encoded_.size()) return std::nullopt;
  return text;
}

void Template::Parts::emplace_back(std::string_view text) { add(0, text); }

void Template::Parts::emplace_back(const Reference& reference) {
  add(static_cast<unsigned>(reference.placeholder) + 1, reference.name);
}

void Template::Parts::add(unsigned kind, std::string_view text) {
  if (text.size() > max_part) throw std::length_error("a part of a command exceeds 256 MiB");
  const auto head = static_cast<Head>(text.size() << kind_bits | kind);
  char bytes[sizeof head];
  std::memcpy(bytes, &head, sizeof head);
  encoded_.append(bytes, sizeof head).append(text);
}

}  // namespace pipeline
