/* Coroutines for Lua 5.4 that yield across C calls: below table.sort, string.gsub, metamethods in C, a library's
 * callbacks. There coroutine.yield fails with "attempt to yield across a C-call boundary".
 *
 *   local acorn = require "acorn"
 *   for word in acorn.wrap(function(text) string.gsub(text, "%a+", acorn.yield) end), "two words" do print(word) end
 *
 * acorn.create(f [, bytes])  a coroutine, with a stack of this size or 1 MiB, of which what is touched takes memory
 * acorn.resume(co, ...)           true and what it yields or returns; false and the error
 * acorn.yield(...)                in the coroutine: gives values to the resumer, returns those of the next resume
 * acorn.wrap(f)                   a function that resumes, raises errors again, and returns nothing at the end
 * acorn.status(co)                "suspended", "running", "normal" or "dead"
 * acorn.close(co)                 ends a suspended coroutine: acorn.yield raises an error in it, so that <close>
 *                                 variables are closed; then it is dead. The garbage collector does the same
 *
 * Each runs lua_pcall() of a Lua thread on its own C stack. Lua's own coroutines work inside and outside. */
#include <aco.h>
#include <lauxlib.h>
#include <lualib.h>

#define TYPE "acorn.coroutine"
enum {
    STACK_SIZE = 1 << 20, /* for the 200 C calls that Lua lets nest */
    CANCELS = 100         /* so often a closed coroutine may catch the error and yield again */
};

typedef struct coroutine {
    aco_t *co;
    lua_State *own;     /* its Lua thread: the user value of this block keeps it alive */
    lua_State *resumer; /* NULL: it is not running */
    int passed;         /* number of values on top of own's stack that the switch passes */
    int status;         /* of lua_pcall() */
    int cancels;
} coroutine_t;

int luaopen_acorn(lua_State *L);

static void *run(void *arg)
{
    coroutine_t *c = arg;
    c->status = lua_pcall(c->own, c->passed, LUA_MULTRET, 0);
    c->passed = lua_gettop(c->own);
    return NULL;
}

static coroutine_t *check(lua_State *L)
{
    return luaL_checkudata(L, 1, TYPE);
}

static int is_done(const coroutine_t *c)
{
    return !c->co || c->co->is_end;
}

/* Moves n values to the coroutine, runs it, and returns the number of values that it moved back. */
static int resume(lua_State *L, coroutine_t *c, int n)
{
    if (!lua_checkstack(c->own, n + 1))
        luaL_error(L, "too many arguments");
    lua_xmove(L, c->own, n);
    c->passed = n;
    c->resumer = L;
    aco_send(c->co, NULL);
    c->resumer = NULL;
    luaL_checkstack(L, c->passed + 1, "too many results");
    lua_xmove(c->own, L, c->passed);
    return c->passed;
}

static int may_resume(lua_State *L, const coroutine_t *c)
{
    if (!is_done(c) && !c->resumer)
        return 1;
    lua_pushstring(L, is_done(c) ? "cannot resume dead coroutine" : "cannot resume non-suspended coroutine");
    return 0;
}

static int l_resume(lua_State *L)
{
    coroutine_t *c = check(L);
    int n;
    lua_pushboolean(L, 0);
    if (!may_resume(L, c))
        return 2;
    lua_replace(L, 1);
    n = resume(L, c, lua_gettop(L) - 1);
    lua_pushboolean(L, c->status == LUA_OK);
    lua_replace(L, 1);
    return n + 1;
}

static int wrapped(lua_State *L)
{
    coroutine_t *c = lua_touserdata(L, lua_upvalueindex(1));
    int n;
    if (!may_resume(L, c))
        return lua_error(L);
    n = resume(L, c, lua_gettop(L));
    return c->status == LUA_OK ? n : lua_error(L);
}

static coroutine_t *running(void)
{
    aco_t *co = aco_get_co();
    return co && aco_slot(co) == (void *)run ? co->arg : NULL;
}

static int l_yield(lua_State *L)
{
    coroutine_t *c = running();
    if (!c || c->own != L) /* L may be a coroutine of Lua in it */
        return luaL_error(L, "attempt to yield from outside a coroutine of acorn");
    if (!c->cancels) {
        c->passed = lua_gettop(L);
        aco_yield_value(NULL);
    }
    if (c->cancels) {
        if (c->cancels++ > CANCELS) {
            lua_writestringerror("%s\n", "acorn: a coroutine catches the error of acorn.close and goes on");
            abort();
        }
        return luaL_error(L, "the coroutine is closed");
    }
    return c->passed;
}

static int l_create(lua_State *L)
{
    aco_options_t options = {0};
    coroutine_t *c;
    luaL_checktype(L, 1, LUA_TFUNCTION);
    options.stack_size = (size_t)luaL_optinteger(L, 2, STACK_SIZE);
    c = lua_newuserdatauv(L, sizeof *c, 1);
    memset(c, 0, sizeof *c);
    luaL_setmetatable(L, TYPE);
    c->own = lua_newthread(L);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, 1);
    lua_xmove(L, c->own, 1);
    c->co = aco_new(run, c, &options);
    if (!c->co || aco_set_slot(c->co, (void *)run) != 0)
        return luaL_error(L, "%s", aco_error_message());
    return 1;
}

static int l_wrap(lua_State *L)
{
    l_create(L);
    lua_pushcclosure(L, wrapped, 1);
    return 1;
}

static int l_status(lua_State *L)
{
    const coroutine_t *c = check(L);
    lua_pushstring(L, is_done(c) ? "dead" : c == running() ? "running" : c->resumer ? "normal" : "suspended");
    return 1;
}

static int l_close(lua_State *L)
{
    coroutine_t *c = check(L);
    if (c->resumer)
        return luaL_error(L, "cannot close a running coroutine");
    if (!is_done(c) && aco_state(c->co) != ACO_STATE_READY) {
        c->cancels = 1;
        lua_settop(L, 1);
        resume(L, c, 0);
    }
    aco_destroy(c->co);
    c->co = NULL;
    return 0;
}

int luaopen_acorn(lua_State *L)
{
    static const luaL_Reg functions[] = {{"create", l_create}, {"resume", l_resume}, {"yield", l_yield},
                                         {"wrap", l_wrap},     {"status", l_status}, {"close", l_close},
                                         {NULL, NULL}};
    luaL_newmetatable(L, TYPE);
    lua_pushcfunction(L, l_close);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__gc");
    lua_setfield(L, -2, "__close");
    luaL_newlib(L, functions);
    return 1;
}
