# Prints the files named on the command line with every #include "..." of this project's own files expanded, each file
# once. An argument that begins with # is printed as a line. Of the files `skip` the first stays an #include, which has
# the others in it. `dirs`: where to look, separated by colons.
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
function emit(path,    line, name, bare, full, where) {
    if (path in seen) return
    seen[path] = 1
    where = path
    sub("^" root "/", "", where)
    print "/* ---- " where " ---- */"
    while ((getline line < path) > 0) {
        if (line ~ /^#[ \t]*include[ \t]+"/) {
            name = line
            sub(/^[^"]*"/, "", name)
            sub(/".*$/, "", name)
            bare = name
            sub(/^(\.\.\/)+/, "", bare)
            if (bare in skipped) { if (bare == skips[1] && !seen[bare]++) print line; continue }
            full = find(name, path)
            emit(full)
        } else
            print line
    }
    close(path)
}
BEGIN {
    n = split(skip, skips, " ")
    for (i = 1; i <= n; i++) skipped[skips[i]]
    for (i = 1; i < ARGC; i++)
        if (ARGV[i] ~ /^#/) print ARGV[i]
        else emit(normal(ARGV[i]))
}
