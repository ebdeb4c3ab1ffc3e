/// @file
/// The suite of conformance.hpp for Docker Engines: each program that includes this names its own.
#pragma once

#include <functional>
#include <string>

#include "orchestrators/factory.hpp"
#include "support/conformance.hpp"

namespace pipeline::test {

/// @param use      sets the variables of the engine in this process
/// @param has_copies the engine gets copies of the steps' files, which root can write
inline Place engine_place(std::string name, std::function<void()> use, bool has_copies) {
  return {.name = std::move(name),
          .make =
              [use = std::move(use)](asio::io_context& loop, const fs::path& root) {
                use();
                return orchestrators::make_docker_orchestrator(
                    loop, {.root = root, .state = root / ".pipe", .run_id = "conformance"});
              },
          .settings = slim(),
          .root_may_write = has_copies};
}

}  // namespace pipeline::test
