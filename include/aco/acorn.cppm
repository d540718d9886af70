// The module `acorn`: what the C++ headers declare, by `import acorn;`.
//
// SPDX-License-Identifier: Apache-2.0
//
// Needs C++20 and a compiler with named modules; a test builds it with clang 19. docs/guide.md says how. It has every
// name of namespace aco but aco/asio.hpp's, which needs Asio. A module exports no macros, and no C functions with bodies
// in headers: include C headers beside it.
module;
#include <aco.hpp>
#include <aco/async.hpp>
#include <aco/async_io.hpp>
#include <aco/await.hpp>
#include <aco/channel.hpp>
#include <aco/cookie_jar.hpp>
#include <aco/debug.hpp>
#include <aco/file.hpp>
#include <aco/format.hpp>
#include <aco/grpc.hpp>
#include <aco/hook.hpp>
#include <aco/http.hpp>
#include <aco/in_stack_generator.hpp>
#include <aco/io.hpp>
#include <aco/limiter.hpp>
#include <aco/offload.hpp>
#include <aco/pool.hpp>
#include <aco/process.hpp>
#include <aco/resource_pool.hpp>
#include <aco/retry.hpp>
#include <aco/scope.hpp>
#include <aco/sender.hpp>
#include <aco/service.hpp>
#include <aco/sim.hpp>
#include <aco/singleflight.hpp>
#include <aco/spans.hpp>
#include <aco/stream.hpp>
#include <aco/sync.hpp>
#include <aco/task.hpp>
#include <aco/threads.hpp>
#include <aco/tls.hpp>
#include <aco/url.hpp>
export module acorn;

export namespace aco {
using aco::access_log;
using aco::address;
using aco::as_sender;
using aco::async;
using aco::async_acquire;
using aco::async_group;
using aco::async_lock;
using aco::async_read;
using aco::async_readable;
using aco::async_receive;
using aco::async_send;
using aco::async_sleep_for;
using aco::async_sleep_until;
using aco::async_writable;
using aco::async_write_all;
using aco::async_yield;
using aco::await;
using aco::await_stop_token;
using aco::awaitable;
using aco::barrier;
using aco::bind;
using aco::call_on_stack;
using aco::call_once;
using aco::cancelled;
using aco::channel;
using aco::check_cancelled;
using aco::condition_variable;
using aco::cookie_jar;
using aco::copy_both_ways;
using aco::coroutine;
using aco::deadline;
using aco::debug_routes;
using aco::debug_serve;
using aco::debug_stop;
using aco::descriptor;
using aco::dial;
using aco::directory;
using aco::error;
using aco::escape_url;
using aco::event;
using aco::event_stream;
using aco::file;
using aco::generator;
using aco::grpc_call;
using aco::grpc_channel;
using aco::grpc_client_call;
using aco::grpc_client_reader;
using aco::grpc_client_stream;
using aco::grpc_client_writer;
using aco::grpc_context;
using aco::grpc_errno_of_status;
using aco::grpc_error;
using aco::grpc_has_gzip;
using aco::grpc_reader;
using aco::grpc_server;
using aco::grpc_status_name;
using aco::grpc_status_of_errno;
using aco::grpc_writer;
using aco::hooks;
using aco::http_client;
using aco::http_form;
using aco::http_next;
using aco::http_request;
using aco::http_response;
using aco::http_routes;
using aco::http_server;
using aco::in_group;
using aco::in_stack_generator;
using aco::in_stack_yielder;
using aco::interrupt;
using aco::is_trivially_relocatable;
using aco::limiter;
using aco::listener;
using aco::look_up;
using aco::metric;
using aco::metric_series;
using aco::metric_unit;
using aco::monotonic_clock;
using aco::mutex;
using aco::name_of;
using aco::normalize_url;
using aco::offload;
using aco::offload_or_abandon;
using aco::on_receive;
using aco::on_send;
using aco::once_flag;
using aco::options;
using aco::parallel_for;
using aco::parallel_reduce;
using aco::pool;
using aco::process;
using aco::reader;
using aco::resolve_url;
using aco::resource_pool;
using aco::resource_pool_options;
using aco::retry;
using aco::run;
using aco::run_service;
using aco::scheduler;
using aco::scheduler_opening;
using aco::scope;
using aco::select;
using aco::select_for;
using aco::select_until;
using aco::semaphore;
using aco::service;
using aco::service_options;
using aco::shared_mutex;
using aco::shield;
using aco::signals;
using aco::sim;
using aco::sim_history;
using aco::sim_main;
using aco::sim_node;
using aco::sim_options;
using aco::simulate;
using aco::singleflight;
using aco::sleep_for;
using aco::sleep_until;
using aco::socket;
using aco::span;
using aco::span_kind;
using aco::span_traceparent;
using aco::span_tracestate;
using aco::spans_start;
using aco::spans_stats;
using aco::spans_stop;
using aco::spawn;
using aco::spawn_with;
using aco::standard;
using aco::status;
using aco::stop_scope;
using aco::stream;
using aco::stream_behind_proxy;
using aco::stream_pair;
using aco::task;
using aco::task_group;
using aco::text_of;
using aco::tls;
using aco::tls_accept;
using aco::tls_config;
using aco::tls_connect;
using aco::try_for;
using aco::try_select;
using aco::try_until;
using aco::unescape_url;
using aco::url;
using aco::websocket;
using aco::writer;
using aco::yield;
using aco::yielder;
}

#ifndef ACO_EXECUTION // else the namespace is that library's
export namespace aco::execution {
using aco::execution::completion_signatures;
using aco::execution::get_completion_scheduler_t;
using aco::execution::get_stop_token_t;
using aco::execution::operation_state_t;
using aco::execution::receiver_t;
using aco::execution::scheduler_t;
using aco::execution::sender_t;
using aco::execution::set_error_t;
using aco::execution::set_stopped_t;
using aco::execution::set_value_t;
}
#endif

export namespace aco::mt {
using aco::mt::call_once;
using aco::mt::channel;
using aco::mt::condition_variable;
using aco::mt::event;
using aco::mt::mutex;
using aco::mt::once_flag;
using aco::mt::semaphore;
using aco::mt::shared_mutex;
using aco::mt::submit_options;
using aco::mt::task_group;
using aco::mt::wait_group;
}

export namespace aco::threads {
using aco::threads::cancel;
using aco::threads::current;
using aco::threads::index;
using aco::threads::run;
using aco::threads::stats;
using aco::threads::stop;
using aco::threads::stop_scope;
using aco::threads::try_until_stopped;
using aco::threads::usable;
}
