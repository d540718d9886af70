# Prints the files named on the command line with every #include "..." of this project's own files expanded, each file
# once. `dirs`: where to look, separated by colons. Two kinds of files are not expanded, both given by names relative to
# include/: the first #include of one of `have` becomes the line `core`, which brings in all of them; and one of `keep`
# stays an #include, once, of a file beside this one. An argument that begins with # is printed as a line, its first _
# as a space.
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
function include(line, from,    name, path, public) {
    name = line
    sub(/^[^"]*"/, "", name)
    sub(/".*$/, "", name)
    path = find(name, from)
    public = path
    sub("^" root "/include/", "", public)
    if (public in had) {
        if (!core_printed++) print core
    } else if (public in kept) {
        if (!kept[public]++) print "#include \"" substr(public, length("aco/") + 1) "\""
    } else
        emit(path)
}
function emit(path,    line, where) {
    if (path in seen) return
    seen[path] = 1
    where = path
    sub("^" root "/", "", where)
    print "/* ---- " where " ---- */"
    while ((getline line < path) > 0) {
        if (line ~ /^#[ \t]*include[ \t]+"/) include(line, path)
        else print line
    }
    close(path)
}
BEGIN {
    n = split(have, names, " ")
    for (i = 1; i <= n; i++) had[names[i]]
    n = split(keep, names, " ")
    for (i = 1; i <= n; i++) kept[names[i]] = 0
    for (i = 1; i < ARGC; i++) {
        if (ARGV[i] ~ /^#/) { sub(/_/, " ", ARGV[i]); print ARGV[i] }
        else emit(normal(ARGV[i]))
    }
}
