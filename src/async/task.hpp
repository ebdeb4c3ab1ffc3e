/// @file
/// The parts of Boost.Asio that the project uses; precompiled in rooms that run on the event loop.
#pragma once

#include <type_traits>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace pipeline {
namespace asio = boost::asio;
}

namespace pipeline::async {

/// A coroutine on the event loop.
template <class T = void>
using Task = asio::awaitable<T>;

/// True if a `T&&` may be a temporary in a co_await expression. g++ 12 destroys a closure twice
/// that is written in such an expression; the closure has to capture by reference, or be a named
/// object.
template <class T>
constexpr bool is_safe_in_await =
    std::is_lvalue_reference_v<T> || std::is_trivially_destructible_v<T>;

}  // namespace pipeline::async
