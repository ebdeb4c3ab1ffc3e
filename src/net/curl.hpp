/// @file
/// Functions of libcurl; the library is loaded on the first use.
#pragma once

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "core/lazy_library.hpp"

// curl.h and multi.h define these as macros to count their arguments.
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

namespace pipeline::net::curl {

inline const core::LazyFunction<decltype(::curl_global_init)> global_init{PIPELINE_CURL_SONAME,
                                                                          "curl_global_init"};
inline const core::LazyFunction<decltype(::curl_easy_init)> easy_init{PIPELINE_CURL_SONAME,
                                                                      "curl_easy_init"};
inline const core::LazyFunction<decltype(::curl_easy_setopt)> easy_setopt{PIPELINE_CURL_SONAME,
                                                                          "curl_easy_setopt"};
inline const core::LazyFunction<decltype(::curl_easy_getinfo)> easy_getinfo{PIPELINE_CURL_SONAME,
                                                                            "curl_easy_getinfo"};
inline const core::LazyFunction<decltype(::curl_easy_strerror)> easy_strerror{PIPELINE_CURL_SONAME,
                                                                              "curl_easy_strerror"};
inline const core::LazyFunction<decltype(::curl_easy_cleanup)> easy_cleanup{PIPELINE_CURL_SONAME,
                                                                            "curl_easy_cleanup"};
inline const core::LazyFunction<decltype(::curl_easy_perform)> easy_perform{PIPELINE_CURL_SONAME,
                                                                            "curl_easy_perform"};
inline const core::LazyFunction<decltype(::curl_easy_recv)> easy_recv{PIPELINE_CURL_SONAME,
                                                                      "curl_easy_recv"};
inline const core::LazyFunction<decltype(::curl_easy_send)> easy_send{PIPELINE_CURL_SONAME,
                                                                      "curl_easy_send"};
inline const core::LazyFunction<decltype(::curl_slist_append)> slist_append{PIPELINE_CURL_SONAME,
                                                                            "curl_slist_append"};
inline const core::LazyFunction<decltype(::curl_slist_free_all)> slist_free_all{
    PIPELINE_CURL_SONAME, "curl_slist_free_all"};
inline const core::LazyFunction<decltype(::curl_multi_init)> multi_init{PIPELINE_CURL_SONAME,
                                                                        "curl_multi_init"};
inline const core::LazyFunction<decltype(::curl_multi_setopt)> multi_setopt{PIPELINE_CURL_SONAME,
                                                                            "curl_multi_setopt"};
inline const core::LazyFunction<decltype(::curl_multi_add_handle)> multi_add_handle{
    PIPELINE_CURL_SONAME, "curl_multi_add_handle"};
inline const core::LazyFunction<decltype(::curl_multi_remove_handle)> multi_remove_handle{
    PIPELINE_CURL_SONAME, "curl_multi_remove_handle"};
inline const core::LazyFunction<decltype(::curl_multi_socket_action)> multi_socket_action{
    PIPELINE_CURL_SONAME, "curl_multi_socket_action"};
inline const core::LazyFunction<decltype(::curl_multi_info_read)> multi_info_read{
    PIPELINE_CURL_SONAME, "curl_multi_info_read"};
inline const core::LazyFunction<decltype(::curl_multi_strerror)> multi_strerror{
    PIPELINE_CURL_SONAME, "curl_multi_strerror"};
inline const core::LazyFunction<decltype(::curl_multi_cleanup)> multi_cleanup{PIPELINE_CURL_SONAME,
                                                                              "curl_multi_cleanup"};

}  // namespace pipeline::net::curl
