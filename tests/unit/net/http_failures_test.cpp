// Responses that are wrong or do not come, and exchanges that are cancelled.
#include "async/joinable_task.hpp"
#include "unit/net/http_fixture.hpp"

namespace pipeline::net {
namespace {

TEST_F(Http, a_connection_that_is_cut_anywhere_is_an_error) {
  for (const char* path : {"/cut", "/cut-headers", "/cut-body", "/nonsense"}) {
    const auto text = failure(request(path));
    EXPECT_NE(text.find(std::string("GET http://local") + path + " on " + socket_ + ": "),
              std::string::npos)
        << path << ": " << text;
  }
}

TEST_F(Http, a_missing_socket_is_named_with_the_reason) {
  auto none = request("/echo");
  none.unix_socket += "-none";
  EXPECT_EQ(failure(none), "cannot connect to " + socket_ + "-none: No such file or directory");
  Request refused;
  {
    Tcp::acceptor free(loop_, {asio::ip::address_v4::loopback(), 0});
    refused.url = "http://127.0.0.1:" + std::to_string(free.local_endpoint().port()) + "/";
  }
  setenv("no_proxy", "127.0.0.1", 1);
  EXPECT_EQ(failure(refused), "cannot connect to " + refused.url + ": Connection refused");
}

TEST_F(Http, a_request_to_a_server_that_never_answers_ends_at_the_timeout) {
  auto never = request("/never");
  never.timeout = std::chrono::milliseconds(50);
  EXPECT_NE(failure(never).find("timed out"), std::string::npos) << failure(never);
}

TEST_F(Http, a_server_that_is_silent_is_given_up_before_the_timeout) {
  auto never = request("/never");
  never.timeout = std::chrono::hours(1);
  never.silence = std::chrono::seconds(1);
  EXPECT_NE(failure(never).find("too slow"), std::string::npos) << failure(never);
}

TEST_F(Http, a_server_that_sends_a_few_bytes_a_second_is_given_up) {
  auto drops = request("/drops");
  drops.timeout = std::chrono::hours(1);
  drops.silence = std::chrono::seconds(2);
  EXPECT_NE(failure(drops).find("too slow"), std::string::npos) << failure(drops);
}

TEST_F(Http, a_header_that_would_smuggle_another_is_refused) {
  auto bad = request("/echo");
  bad.headers.push_back("X-A: 1\r\nX-B: 2");
  EXPECT_THROW(send(bad), core::EnvironmentError);
}

TEST_F(Http, an_error_status_is_an_answer_with_its_body) {
  std::string streamed;
  const auto response =
      send(request("/missing"), [&](std::string_view bytes) { streamed += bytes; });
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, R"({"message":"not here"})");
  EXPECT_EQ(streamed, "");
}

TEST_F(Http, endless_errors_and_redirections_are_cut) {
  for (const std::string path : {"/endless-error", "/endless-redirection"}) {
    auto question = request(path);
    question.timeout = std::chrono::seconds(20);
    const auto response = send(question, [](std::string_view) {
      ADD_FAILURE() << "the body of an error is not the requested content";
    });
    EXPECT_EQ(response.status, path == "/endless-error" ? 404 : 302);
    EXPECT_EQ(response.body, std::string(1 << 20, 'x'));
  }
  EXPECT_EQ(send(request("/echo")).body, "GET ");
}

TEST_F(Http, an_endless_head_is_an_error) {
  for (const auto* path : {"/headers-without-end", "/trailers-without-end"})
    EXPECT_THROW(send(request(path)), core::EnvironmentError) << path;
}

TEST_F(Http, an_answer_of_a_proxy_is_not_taken_for_the_servers) {
  Server<Tcp> proxy({asio::ip::address_v4::loopback(), 0});
  setenv("https_proxy", ("http://127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
  Request to_send;
  to_send.url = "https://server.invalid/";
  bool has_answer = false;
  EXPECT_THROW(run([](HttpClient& client, Request request, bool& answered) -> async::Task<> {
                 std::function<void(const Response&)> on_headers = [&](const Response&) {
                   answered = true;
                 };
                 std::function<void(std::string_view)> no_body;
                 co_await client.send(std::move(request), std::move(no_body), nullptr,
                                      std::move(on_headers));
               }(client_, std::move(to_send), has_answer)),
               TransportError);
  unsetenv("https_proxy");
  EXPECT_EQ(proxy.connections(), 1);
  EXPECT_FALSE(has_answer);
}

TEST_F(Http, an_exception_of_a_callback_reaches_the_caller_and_the_client_stays_usable) {
  const auto throwing = [](std::string_view) { throw std::runtime_error("the disk is full"); };
  EXPECT_THROW(send(request("/endless"), throwing), std::runtime_error);
  auto upload = request("/echo");
  upload.method = "POST";
  upload.body_source = [](std::span<char>) -> std::size_t {
    throw std::runtime_error("the file is gone");
  };
  EXPECT_THROW(send(upload), std::runtime_error);
  EXPECT_EQ(send(request("/echo")).body, "GET ");
}

TEST_F(Http, cancelling_ends_the_exchange_also_from_within_a_callback) {
  core::CancelSource before, within;
  before.stop(core::StopLevel::graceful);
  EXPECT_EQ(failure(request("/never"), &before), "GET http://local/never was cancelled");
  int pieces = 0;
  EXPECT_THROW(send(
                   request("/endless"),
                   [&](std::string_view) {
                     if (++pieces == 3) within.stop(core::StopLevel::immediate);
                   },
                   &within),
               TransportError);
  EXPECT_GE(pieces, 3);
  core::CancelSource later;
  asio::steady_timer timer(loop_, std::chrono::milliseconds(20));
  timer.async_wait([&](boost::system::error_code) { later.stop(core::StopLevel::graceful); });
  EXPECT_EQ(failure(request("/never"), &later), "GET http://local/never was cancelled");
}

TEST_F(Http, destroying_the_client_ends_what_is_in_progress) {
  auto client = std::make_unique<HttpClient>(loop_);
  int ended = 0;
  for (int i = 0; i < 10; ++i)
    asio::co_spawn(loop_, client->send(request(i % 2 ? "/never" : "/endless")),
                   [&](std::exception_ptr error, const Response&) { ended += error != nullptr; });
  asio::steady_timer timer(loop_, std::chrono::milliseconds(30));
  timer.async_wait([&](boost::system::error_code) { client.reset(); });
  loop_.run();
  EXPECT_EQ(ended, 10);
}

TEST(HttpEnd, a_loop_that_ends_during_exchanges_leaks_nothing) {
  const core::TemporaryFolder folder;
  const auto socket = (folder.path() / "s").string();
  Server<Local> server{Local::endpoint(socket)};
  const auto held = std::make_shared<int>();  // by each exchange that has not ended
  {
    asio::io_context loop;
    HttpClient client(loop);
    for (int i = 0; i < 10; ++i) {
      Request request;
      request.url = "http://local/never";
      request.unix_socket = socket;
      asio::co_spawn(loop, client.send(request), [held](std::exception_ptr, const Response&) {});
    }
    loop.run_for(std::chrono::milliseconds(30));
    EXPECT_EQ(held.use_count(), 11);
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace pipeline::net
