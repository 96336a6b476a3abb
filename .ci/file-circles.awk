# Circles of files inside of a folder: what each file of a crate uses of the files beside it, by its paths. What a `mod.rs`
# gives out of its files is theirs, not its own. Reads the files of one crate (-v root=CRATE/src) and prints a line for each
# circle, its files in order.

function module_of(file,    name) {
    name = substr(file, length(root) + 2)
    sub(/\.rs$/, "", name)
    if (name == "lib" || name == "mod") return ""
    sub(/\/mod$/, "", name)
    gsub(/\//, "::", name)
    return name
}

# A path as seen from the root of the crate; nothing if it leads elsewhere.
function absolute(from, path,    head) {
    head = path
    sub(/::.*/, "", head)
    if (head == "crate") return substr(path, 8)
    if (head == "self") return (from == "" ? "" : from "::") substr(path, 7)
    if (head == "super") {
        if (!sub(/::[^:]*$/, "", from)) from = ""
        path = substr(path, 8)
        if (path ~ /^super(::|$)/) return absolute(from, path)
        return (from == "" ? "" : from "::") path
    }
    if ((from == "" ? head : from "::" head) in known) return (from == "" ? "" : from "::") path
    return "-"
}

# The file that has an item.
function resolve(path, depth,    at, rest, name) {
    if (path == "-" || depth > 8) return "-"
    at = path
    rest = ""
    while (!(at in known)) {
        if (at !~ /::/) return "-"
        name = at
        sub(/.*::/, "", name)
        sub(/::[^:]*$/, "", at)
        rest = name (rest == "" ? "" : "::" rest)
    }
    name = rest
    sub(/::.*/, "", name)
    if (name != "" && ((at, name) in given)) return resolve(absolute(at, given[at, name]), depth + 1)
    return at
}

# The paths of a tree of names, each kept as used or as given out.
function flatten(from, prefix, tree, outward,    depth, i, c, item, brace) {
    item = ""
    tree = tree ","
    for (i = 1; i <= length(tree); i++) {
        c = substr(tree, i, 1)
        if (c == "{") depth++
        if (c == "}") depth--
        if (c != "," || depth > 0) { item = item c; continue }
        gsub(/[ \n\t]+as[ \n\t]+[A-Za-z_0-9]+/, "", item)
        gsub(/[ \n\t]/, "", item)
        brace = index(item, "{")
        if (brace) flatten(from, prefix substr(item, 1, brace - 1), substr(item, brace + 1, length(item) - brace - 1), outward)
        else if (item != "") keep(from, prefix item, outward)
        item = ""
    }
}

function keep(from, path, outward,    name) {
    sub(/::self$/, "", path)
    if (!outward) { uses[++count] = from SUBSEP path; return }
    name = path
    sub(/.*::/, "", name)
    given[from, name] = path
}

function read_file(from, text,    use, outward, rest) {
    while (match(text, /(^|\n)[ ]*(pub(\([a-z :]+\))?[ ]+)?use[ ]+[^;]+;/)) {
        use = substr(text, RSTART, RLENGTH)
        text = substr(text, 1, RSTART - 1) "\n" substr(text, RSTART + RLENGTH)
        sub(/^\n/, "", use)
        outward = use ~ /^[ ]*pub/
        sub(/^[ ]*(pub(\([a-z :]+\))?[ ]+)?use[ ]+/, "", use)
        sub(/;$/, "", use)
        flatten(from, "", use, outward)
    }
    rest = text
    while (match(rest, /[a-z_0-9]+(::[A-Za-z_0-9]+)+/)) {
        if (RSTART == 1 || substr(rest, RSTART - 1, 1) !~ /[A-Za-z_0-9:]/) keep(from, substr(rest, RSTART, RLENGTH), 0)
        rest = substr(rest, RSTART + RLENGTH)
    }
}

FNR == 1 { if (name != "") texts[name] = text; name = FILENAME; text = ""; is_test = 0; known[module_of(FILENAME)] = 1 }
/^#\[cfg\(test\)\]$/ { is_test = 1 }
is_test { next }
{
    gsub(/"([^"\\]|\\.)*"/, "\"\"")
    sub(/\/\/.*/, "")
    text = text "\n" $0
}

# Which files each file reaches, by a walk of its own.
function walk(from, at,    i, parts, n) {
    n = split(edges[at], parts, " ")
    for (i = 1; i <= n; i++) {
        if ((from, parts[i]) in reaches) continue
        reaches[from, parts[i]] = 1
        walk(from, parts[i])
    }
}

END {
    texts[name] = text
    for (file in texts) read_file(module_of(file), texts[file])
    for (i = 1; i <= count; i++) {
        split(uses[i], pair, SUBSEP)
        from = pair[1]
        to = resolve(absolute(from, pair[2]), 0)
        if (from == "" || to == "" || to == "-" || to == from || (from, to) in edge) continue
        split(from, a, "::")
        split(to, b, "::")
        if (a[1] != b[1]) continue
        edge[from, to] = 1
        edges[from] = edges[from] " " to
    }
    for (m in known) walk(m, m)
    for (m in known) if ((m, m) in reaches && !(m in seen)) {
        line = ""
        n = 0
        for (o in known) if ((m, o) in reaches && (o, m) in reaches) { seen[o] = 1; found[++n] = o }
        for (i = 2; i <= n; i++) for (j = i; j > 1 && found[j - 1] > found[j]; j--) { t = found[j]; found[j] = found[j - 1]; found[j - 1] = t }
        for (i = 1; i <= n; i++) line = line " " found[i]
        print line
    }
}
