/* Callables that do not fit. Each line must be refused with the message that stands behind it: wrong_callables.py. */
#include <aco.hpp>
#include <aco/channel.hpp>
#include <aco/http.hpp>
#include <aco/offload.hpp>
#include <aco/retry.hpp>
#include <aco/scope.hpp>
#include <aco/sim.hpp>
#include <aco/sync.hpp>
#include <aco/task.hpp>
#include <aco/threads.hpp>

struct wrong {
    int operator()(wrong) const;
};

void use(aco::http_server &server, aco::channel<int> &numbers, aco::once_flag &once, aco::task_group &group,
         aco::mt::task_group &of_threads)
{
    const aco_retry_options_t often = {};
    aco::spawn(wrong());                                      // the callable is called as f()
    aco::offload(wrong());                                    // the callable is called as f()
    aco::coroutine<int> coroutine{wrong()};                   // aco::coroutine: the callable is called as f(self)
    aco::coroutine<int, int> both{wrong()};                   // called as f(self, Send) or f(self)
    aco::generator<int> generator{wrong()};                   // aco::generator: the callable is called as f(yielder)
    aco::call_on_stack(wrong());                              // the callable is called as f()
    aco::try_for(std::chrono::seconds(1), wrong());           // the callable of a scope is called as f()
    aco::call_once(once, wrong());                            // aco::call_once: the callable is called as f()
    aco::retry(often, wrong(), wrong());                      // aco::retry: the callable is called as f()
    aco::threads::run(2, wrong());                            // aco::threads::run: the callable is called as f()
    aco::parallel_for(0, 9, wrong());                         // called as f(index) or f(from, to)
    aco::parallel_reduce(0, 9, 0, wrong(), wrong());          // `map` is called as map(index) or map(from, to)
    group.spawn(wrong());                                     // aco::task_group: the callable is called as f()
    of_threads.submit(wrong());                               // aco::mt::task_group: the callable is called as f()
    aco::select(aco::on_receive(numbers, wrong()));           // called as f(std::optional<T>)
    aco::select(aco::on_send(numbers, 1, wrong()));           // aco::on_send: the callable is called as f(bool)
    server.route("GET", "/", wrong());                        // called as f(http_request)
    server.around(wrong());                                   // called as f(http_request, http_next)
    static_cast<void>(aco::simulate(wrong()));                // called as f(sim) or f()
}
