/* Pages at the same time by libcurl's easy calls, which know nothing of tasks: hook_curl URL...
 *
 *   cc hook_curl.c $(pkg-config --cflags --libs acorn_hook libcurl) */
#include <aco/hook.h>
#include <curl/curl.h>
#include <stdio.h>

static void *get(void *url)
{
    CURL *curl = curl_easy_init();
    CURLcode code;
    aco_hook_begin();
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    printf("answer: "); /* the page is written to stdout */
    code = curl_easy_perform(curl);
    if (code != CURLE_OK)
        fprintf(stderr, "%s: %s\n", (char *)url, curl_easy_strerror(code));
    curl_easy_cleanup(curl);
    aco_hook_end();
    return NULL;
}

int main(int argc, char **argv)
{
    aco_options_t detached = {0};
    detached.flags = ACO_DETACHED;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    for (int i = 1; i < argc; i++)
        aco_spawn(get, argv[i], &detached);
    return aco_run() == 0 ? 0 : 1;
}
