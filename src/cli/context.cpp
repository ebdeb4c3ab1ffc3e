#include "cli/context.hpp"

#include <unistd.h>

#include <fstream>

#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::cli {

Context::Context(Options options)
    : Workspace(options,
                [](std::string_view text) {
                  core::write_all(STDERR_FILENO, lines_for_terminal(text) + "\n");
                }),
      options_(std::move(options)),
      out_(Terminal::of(STDOUT_FILENO)),
      paint_{out_.colours} {}

void Context::print(std::string_view text) const { write(lines_for_terminal(text, out_.colours)); }

void Context::write(std::string_view bytes) const {
  if (const int error = core::write_all(STDOUT_FILENO, bytes))
    throw core::system_error("cannot write the output", error);
}

void Context::print_file(const std::filesystem::path& file) const {
  std::ifstream in(file, std::ios::binary);
  for (std::string piece(1 << 16, '\0'); in;) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    write(std::string_view(piece.data(), static_cast<std::size_t>(in.gcount())));
  }
  if (!in.eof()) throw core::EnvironmentError("cannot read " + file.string());
}

void Context::print_json(const nlohmann::json& document) const {
  write(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace pipeline::cli
