/// @file
/// The outputs that an input takes.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pipeline {

/// An output of a step, as the source of an input.
struct SourceSpec {
  std::string step = {};    ///< The step that makes the output.
  std::string output = {};  ///< Name of the output in that step.
  bool operator==(const SourceSpec&) const = default;
};

/// A list of sources that is kept in one text, because an input may gather 100,000 outputs. Sources
/// are read as copies.
class SourceList {
 public:
  class Iterator {
   public:
    using value_type = SourceSpec;
    using reference = SourceSpec;
    using pointer = void;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    Iterator() = default;
    explicit Iterator(const char* at) : at_(at) {}
    SourceSpec operator*() const {
      const std::string_view step(at_);
      return {std::string(step), std::string(step.data() + step.size() + 1)};
    }
    Iterator& operator++() {
      for (int names = 0; names < 2; ++names) at_ += std::string_view(at_).size() + 1;
      return *this;
    }
    Iterator operator++(int) {
      auto before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const char* at_ = nullptr;  ///< Into SourceList::names_.
  };
  using value_type = SourceSpec;
  using const_iterator = Iterator;

  SourceList() = default;
  SourceList(std::initializer_list<SourceSpec> sources) {
    for (const auto& source : sources) push_back(source);
  }
  Iterator begin() const { return Iterator(names_.data()); }
  Iterator end() const { return Iterator(names_.data() + names_.size()); }
  bool empty() const { return names_.empty(); }
  /// Counts the sources.
  std::size_t size() const { return static_cast<std::size_t>(std::distance(begin(), end())); }
  /// Throws std::out_of_range.
  SourceSpec at(std::size_t i) const {
    auto found = begin();
    for (; found != end() && i > 0; --i) ++found;
    if (found == end()) throw std::out_of_range("SourceList::at");
    return *found;
  }
  SourceSpec operator[](std::size_t i) const { return at(i); }
  /// @param source its names contain no NUL
  void push_back(const SourceSpec& source) {
    names_.append(source.step).push_back('\0');
    names_.append(source.output).push_back('\0');
  }
  void clear() { names_.clear(); }
  void shrink_to_fit() { names_.shrink_to_fit(); }
  std::size_t bytes() const { return names_.capacity(); }  ///< The size of the text's memory.
  bool operator==(const SourceList&) const = default;

 private:
  std::string names_;  ///< For each source: STEP NUL OUTPUT NUL.
};

}  // namespace pipeline
