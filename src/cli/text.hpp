/// @file
/// Text for people: made safe for a terminal, measured and clipped in columns, coloured, laid out
/// as a table.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/events.hpp>

namespace pipeline::cli {

/// One line that a program printed, safe to show: what moves the cursor, sets titles or hides text
/// is removed, what a carriage return had overwritten too, bytes that are no UTF-8 become U+FFFD,
/// tabs become spaces. Colours stay where `keep_colours` says so, and end with the line.
std::string for_terminal(std::string_view line, bool keep_colours);

/// Columns that the text takes; colour sequences take none.
unsigned display_width(std::string_view text);
/// At most `width` columns, ending in `…` if something was cut off. Without colour sequences.
std::string clip(std::string_view text, unsigned width);
/// Digests in the text, cut to their first 12 digits: `pipe:env-1a2b3c4d5e6f`.
std::string shorten_digests(std::string_view text);
/// `1 step`, `2 steps`.
std::string counted(std::size_t count, std::string_view noun);
/// Lines without their ends; a last line without an end counts.
std::vector<std::string_view> lines_of(std::string_view text);

enum class Colour { none, bold, dim, red, green, yellow, blue, cyan };

/// Colours text, or leaves it as it is.
struct Paint {
  bool on = false;
  std::string operator()(Colour colour, std::string_view text) const;
};

/// Rows with aligned columns, two spaces apart; the first row is the heading.
class Table {
 public:
  struct Cell {
    std::string text;
    Colour colour = Colour::none;
    Cell(std::string t, Colour c = Colour::none) : text(std::move(t)), colour(c) {}
    Cell(const char* t) : text(t) {}
  };
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() <= 1; }
  std::string render(const Paint& paint) const;

 private:
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace pipeline::cli
