/// @file
/// Delivers notifications to webhooks.
#pragma once

#include <string>

#include <pipeline/execution.hpp>

#include "async/retry_policy.hpp"
#include "async/task.hpp"
#include "net/http.hpp"

namespace pipeline::notify {

/// Bounds the delivery of one notification.
struct DeliveryLimits {
  async::RetryPolicy retries{std::chrono::milliseconds(500), std::chrono::milliseconds(4000), 4};
  std::chrono::milliseconds request{10'000};  ///< Of one request.
  std::chrono::milliseconds total{30'000};    ///< Of all requests and pauses.
};

/// Returns the webhook's address. Throws EnvironmentError if its variable or file has none.
std::string address_of(const NotifySpec& notify);

/// Returns the address without what is secret in it: `https://hooks.slack.com/...`.
std::string shown_address(const std::string& address);

/// Sends the body, again if the server cannot be reached or is overloaded. Returns why it was not
/// delivered, in words that have nothing of the address but its host; empty if it was.
async::Task<std::string> deliver(net::HttpClient& http, std::string address, std::string body,
                                 DeliveryLimits limits = {});

}  // namespace pipeline::notify
