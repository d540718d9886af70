/* Part of <aco/group.h>: the bodies of its inline calls. */
#ifndef ACO_DETAIL_GROUP_INLINE_H
#define ACO_DETAIL_GROUP_INLINE_H

ACO__BEGIN_C

ACO_API ACO__COLD aco_group_t *aco__own_group(void); /* of which the calling task is a member */

#ifndef ACO_CONFIG_NO_INLINE

/* The common case of a spawn with default options: there is a place, and the thread's cache has a coroutine. NULL: it
 * is not the common case, and nothing was done. */
ACO_API aco_t *aco__group_spawn_cached(aco_group_t *group, aco_function_t fn, void *arg, void **result);
/* The halves of the calls; the first ones as in scheduler_inline.h. */
ACO_API int aco__group_admit(aco_group_t *group, aco__wait_t *wait, const char *location); /* takes a place */
ACO_API aco_t *aco__group_spawn(aco_group_t *group, aco_function_t fn, void *arg, void **result,
                                const aco_options_t *options);
ACO_API int aco__group_end(aco_group_t *group, aco__wait_t *wait, const char *location);
ACO_API int aco__group_result(aco_group_t *group);

ACO__FORCE_INLINE aco_t *ACO__BODY_OF(aco_group_spawn_at)(aco_group_t *group, aco_function_t fn, void *arg,
                                                          void **result, const aco_options_t *options,
                                                          const char *location)
{
    aco__wait_t wait;
    aco_t *task = options ? NULL : aco__group_spawn_cached(group, fn, arg, result);
    int admitted;
    if (aco_likely(task != NULL))
        return task;
    admitted = aco__wait_end(aco__group_admit(group, &wait, location), &wait);
    return aco_likely(admitted == 0) ? aco__group_spawn(group, fn, arg, result, options) : NULL;
}

ACO__FORCE_INLINE int ACO__BODY_OF(aco_group_end_at)(aco_group_t *group, const char *location)
{
    aco__wait_t wait;
    int waited;
    do /* again, if a member was spawned after the last one had ended */
        waited = aco__wait_end(aco__group_end(group, &wait, location), &wait);
    while (waited == 0 && group->running);
    return waited == 0 ? aco__group_result(group) : waited;
}

#endif

ACO__END_C

#endif
