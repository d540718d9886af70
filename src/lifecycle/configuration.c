/* Configurations: the service holds the present one, and who uses one holds it. Who releases it last frees it. */
#include "lifecycle/lifecycle.h"

#include <errno.h>

void aco_service_config_release(aco_service_config_t *config)
{
    aco_service_t *service;
    int error = errno;
    if (!config || __atomic_sub_fetch(&config->aco__users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    service = config->aco__service;
    if (service->options.unload)
        service->options.unload(config->value, service->arg);
    aco__service_free(config, config->aco__size);
    errno = error;
}

/* The lock keeps the configuration from being freed between the look and the count. */
aco_service_config_t *aco_service_config(aco_service_t *service)
{
    aco_service_config_t *config;
    aco__system.pthread_mutex_lock(&service->config_lock);
    config = service->config;
    if (config)
        __atomic_add_fetch(&config->aco__users, 1, __ATOMIC_RELAXED);
    aco__system.pthread_mutex_unlock(&service->config_lock);
    return config;
}

static void set_config(aco_service_t *service, aco_service_config_t *config)
{
    aco_service_config_t *before;
    aco__system.pthread_mutex_lock(&service->config_lock);
    before = service->config;
    service->config = config;
    aco__system.pthread_mutex_unlock(&service->config_lock);
    aco_service_config_release(before);
}

int aco__lifecycle_load(aco_service_t *service)
{
    size_t size = sizeof(aco_service_config_t);
    aco_service_config_t *config;
    if (!service->options.load)
        return 0;
    config = aco__service_allocate(&size, "aco_service_run");
    if (!config)
        return -1;
    errno = 0;
    *config = (aco_service_config_t){service->options.load(service->arg), 1, service, size};
    if (!config->value) {
        errno = errno ? errno : EINVAL;
        aco__service_free(config, size);
        return -1;
    }
    set_config(service, config);
    return 0;
}

void aco__lifecycle_unload(aco_service_t *service)
{
    set_config(service, NULL);
}
