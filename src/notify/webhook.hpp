/// @file
/// Delivers notifications to webhooks.
#pragma once

#include <string>

#include <pipeline/execution.hpp>

#include "async/retry_policy.hpp"
#include "async/task.hpp"
#include "net/http.hpp"

namespace pipeline::notify {

/// Limits for the delivery of a notification.
struct DeliveryLimits {
  /// Pauses of half a second to four seconds between four requests.
  async::RetryPolicy retries{.first_pause = std::chrono::milliseconds(500),
                             .max_pause = std::chrono::milliseconds(4000),
                             .max_tries = 4};
  std::chrono::milliseconds request{10'000};  ///< Limit of a request.
  std::chrono::milliseconds total{30'000};    ///< Limit of all requests and pauses.
};

/// Returns the webhook's address. Throws EnvironmentError if the variable or file that should
/// contain the address does not.
std::string address_of(const NotifySpec& notify);

/// Returns the address without its secret parts: `https://hooks.slack.com/...`.
std::string shown_address(const std::string& address);

/// Sends the body; retries if the server cannot be reached or is overloaded. Returns an empty text
/// on success, else the reason, which calls the webhook "it" and shortens the address to its host.
/// @param stop ends the delivery
async::Task<std::string> deliver(net::HttpClient& http, std::string address, std::string body,
                                 core::CancelSource& stop, DeliveryLimits limits = {});

}  // namespace pipeline::notify
