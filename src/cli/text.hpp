/// @file
/// Prepares text for the user: sanitises it for a terminal, measures and clips it in columns,
/// colours it, and lays it out as a table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pipeline/events.hpp>

#include "core/text.hpp"

namespace pipeline::cli {

/// Returns one line of a program's output in a form that is safe to show. Sequences that move the
/// cursor, set titles or hide text are removed, as is text that a carriage return has overwritten;
/// invalid UTF-8 becomes U+FFFD, tabs become spaces. Colours are kept if `keep_colours` is set, and
/// end with the line.
std::string for_terminal(std::string_view line, bool keep_colours = false);

/// Returns the lines of a command's own text in the form of for_terminal(). The text contains
/// names, notes and messages from state folders and buckets that others may have written. Carriage
/// returns are removed, and overwrite nothing.
std::string lines_for_terminal(std::string_view text, bool keep_colours = false);

/// Returns the number of columns of the text; colour sequences take none.
unsigned display_width(std::string_view text);
/// Returns at most `width` columns, ending in `…` if something was cut off. The text must have no
/// colour sequences.
std::string clip(std::string_view text, unsigned width);
/// Shortens the digests in a text (40 or 64 hexadecimal digits) to 12 digits:
/// `pipe:env-1a2b3c4d5e6f`.
std::string shorten_digests(std::string_view text);
using core::counted;
using core::lines_of;

enum class Colour { none, bold, dim, red, green, yellow, blue, cyan };

/// Colours text, or returns it unchanged.
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
    Cell(std::string content, Colour content_colour = Colour::none)
        : text(std::move(content)), colour(content_colour) {}
    Cell(const char* content) : text(content) {}
  };
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() <= 1; }
  std::string render(const Paint& paint) const;

 private:
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace pipeline::cli
