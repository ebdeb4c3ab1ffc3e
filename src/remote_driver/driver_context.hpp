/// @file
/// The context for code that drives runs, or queries their drivers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "async/await.hpp"

namespace pipeline::remote_driver {

/// Keeps a reference to the loop, which must outlive it.
struct DriverContext {
  asio::io_context& loop;
  std::function<void(std::string_view)> note;  ///< Shows a line to the user.
  std::string program;                         ///< Name of the command for hints: `pipe`.

  template <class T>
  T await(async::Task<T> task) const {
    return async::await(loop, std::move(task));
  }
};

}  // namespace pipeline::remote_driver
