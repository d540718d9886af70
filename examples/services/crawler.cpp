/* A crawler: crawler URL [DEPTH]. Follows the links of a site, 16 requests at a time and at most 4 to a host, 50 pages
 * a second, and prints each page's status, length and URL. SIGTERM ends it at once. */
#include <aco/http.hpp>
#include <aco/limiter.hpp>
#include <aco/retry.hpp>
#include <aco/service.hpp>
#include <aco/url.hpp>
#include <cstdlib>
#include <iostream>
#include <regex>
#include <unordered_set>

using namespace std::chrono_literals;

class crawler {
public:
    explicit crawler(const std::string &site) : site_(aco::url(site)), client_(&client_options_) {}

    /* Takes a page on, unless it is known or on another site. */
    void add(std::string url, int depth)
    {
        url.resize(std::min(url.find('#'), url.size()));
        if (aco::url(url).host() != site_.host() || !seen_.insert(url).second)
            return;
        pages_.spawn([this, url = std::move(url), depth] { visit(url, depth); });
    }
    void wait() { pages_.wait(); }

private:
    void visit(const std::string &url, int depth)
    try {
        rate_.wait();
        aco_retry_options_t again = {};
        again.tries = 3;
        int status = 0;
        const std::string body = aco::retry(
            again,
            [&] {
                aco::http_response response = client_.get(url);
                status = response.status();
                if (status >= 500)
                    throw std::runtime_error("status " + std::to_string(status));
                return response.read_all(4 << 20);
            },
            [](const std::exception &) { return true; });
        std::cout << status << ' ' << body.size() << ' ' << url << std::endl;
        static const std::regex link(R"re(<a\s[^>]*href\s*=\s*["']([^"']+)["'])re", std::regex::icase);
        if (depth > 0)
            for (std::sregex_iterator i(body.begin(), body.end(), link), end; i != end; ++i)
                follow(url, (*i)[1], depth - 1);
    } catch (const std::exception &e) {
        std::cout << e.what() << ' ' << url << std::endl;
    }
    void follow(const std::string &from, const std::string &to, int depth)
    try {
        add(aco::resolve_url(from, to), depth);
    } catch (const aco::error &) { /* that is no URL */
    }

    static aco_http_client_options_t options()
    {
        aco_http_client_options_t o = {};
        o.max_connections = 16;
        o.max_per_host = 4;
        o.total_time = 30 * ACO_SECOND;
        o.decodes = 1;
        return o;
    }
    const aco_http_client_options_t client_options_ = options();
    aco::url site_;
    aco::http_client client_;
    aco::limiter rate_{20ms, 10};
    std::unordered_set<std::string> seen_;
    aco::task_group pages_{ACO_KEEP_GOING};
};

int main(int argc, char **argv)
try {
    if (argc < 2)
        return std::cerr << "crawler URL [DEPTH]" << std::endl, 2;
    aco::run_service(
        [&](aco::service service) {
            crawler all(argv[1]);
            service.ready();
            all.add(argv[1], argc > 2 ? std::atoi(argv[2]) : 3);
            all.wait();
        },
        aco::service_options().with_threads(1));
} catch (const std::exception &e) {
    std::cerr << e.what() << std::endl;
    return 1;
}
