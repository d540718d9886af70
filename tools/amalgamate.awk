# Prints the files named on the command line with every #include "..." of this project's own files expanded, each file
# once. `dirs`: where to look, separated by colons. Two kinds of files are not expanded, both given by names relative to
# include/: the first #include of one of `have` becomes the line `core`, which brings in all of them; and one of `keep`
# stays an #include, once, of a file beside this one. An argument that begins with # is printed as a line, its first _
# as a space. It fails if a file comes first under a condition and again outside of it: where the condition does not
# hold, the file would be missing.
function find(name, from,    i, n, dir, list, path, line) {
    sub(/[^\/]*$/, "", from)
    n = split(from ":" dirs, list, ":")
    for (i = 1; i <= n; i++) {
        path = list[i]
        if (path != "" && path !~ /\/$/) path = path "/"
        path = path name
        if ((getline line < path) >= 0) { close(path); return normal(path) }
    }
    print "amalgamate: cannot find " name > "/dev/stderr"
    exit 1
}
function normal(path) {
    while (match(path, /[^\/]+\/\.\.\//))
        path = substr(path, 1, RSTART - 1) substr(path, RSTART + RLENGTH)
    return path
}
function include(line, from, number,    name, path, public) {
    name = line
    sub(/^[^"]*"/, "", name)
    sub(/".*$/, "", name)
    path = find(name, from)
    public = path
    sub("^" root "/include/", "", public)
    if (public in had) {
        if (is_first("aco.h", from, number)) print core
    } else if (is_first(path, from, number)) {
        if (public in kept) print "#include \"" substr(public, length("aco/") + 1) "\""
        else emit(path)
    }
}
# Whether a file has not come before. If it has, all conditions that stood around it must stand here, too: with another
# configuration it would be missing here.
function is_first(path, from, number,    i, n, list, here) {
    here = short(from) ":" number
    if (!(path in place)) {
        place[path] = here
        for (i = 1; i <= depth; i++)
            if (conditions[i] != "") around[path] = around[path] conditions[i] "\n"
        return 1
    }
    n = split(around[path], list, "\n")
    for (i = 1; i < n; i++)
        if (!is_open(list[i])) {
            print "amalgamate: " here " includes " short(path) ", which " place[path] " includes first, under \"" \
                list[i] "\": include it before that" > "/dev/stderr"
            failed = 1
            break
        }
    return 0
}
function is_open(condition,    i) {
    for (i = 1; i <= depth; i++)
        if (conditions[i] == condition) return 1
    return 0
}
function short(path) {
    sub("^" root "/", "", path)
    return path
}
# Follows conditions; a header's guard is none. `before` is the line before, or "".
function follow(line, before,    name) {
    if (line ~ /^#[ \t]*if/) conditions[++depth] = line
    else if (line ~ /^#[ \t]*else/ && conditions[depth] ~ /^#ifdef /) sub(/ifdef/, "ifndef", conditions[depth])
    else if (line ~ /^#[ \t]*else/ && conditions[depth] ~ /^#ifndef /) sub(/ifndef/, "ifdef", conditions[depth])
    else if (line ~ /^#[ \t]*el/) conditions[depth] = conditions[depth] " " line
    else if (line ~ /^#[ \t]*endif/) depth--
    else if (line ~ /^#define / && before ~ /^#ifndef /) {
        name = substr(before, length("#ifndef ") + 1)
        if (line == "#define " name) conditions[depth] = ""
    }
}
function emit(path,    line, before, number) {
    print "/* ---- " short(path) " ---- */"
    for (before = ""; (getline line < path) > 0; before = line) {
        number++
        follow(line, before)
        if (line ~ /^#[ \t]*include[ \t]+"/) include(line, path, number)
        else print line
    }
    close(path)
}
BEGIN {
    n = split(have, names, " ")
    for (i = 1; i <= n; i++) had[names[i]]
    n = split(keep, names, " ")
    for (i = 1; i <= n; i++) kept[names[i]]
    for (i = 1; i < ARGC; i++) {
        if (ARGV[i] ~ /^#/) { sub(/_/, " ", ARGV[i]); print ARGV[i]; follow(ARGV[i], "") }
        else if (is_first(normal(ARGV[i]), ARGV[i], 0)) emit(normal(ARGV[i]))
    }
    exit failed
}
