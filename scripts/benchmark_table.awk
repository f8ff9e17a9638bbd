# Reads Google Benchmark's CSV files and writes the tables of scripts/benchmark.sh.

# Splits a line of CSV into field[1..]; quotes are dropped.
function split_csv(line, field,    n, character, i, quoted) {
  split("", field)
  n = 1
  field[n] = ""
  quoted = 0
  for (i = 1; i <= length(line); ++i) {
    character = substr(line, i, 1)
    if (character == "\"") quoted = !quoted
    else if (character == "," && !quoted) field[++n] = ""
    else field[n] = field[n] character
  }
  return n
}

# A number with its order of magnitude: 1234567 -> 1.23 M.
function short(x) {
  if (x >= 1e9) return sprintf("%.2f G", x / 1e9)
  if (x >= 1e6) return sprintf("%.2f M", x / 1e6)
  if (x >= 1e3) return sprintf("%.1f k", x / 1e3)
  return sprintf("%.3g", x)
}

function measured(name, column,    key) {
  key = name SUBSEP column
  if (!(key in value)) {
    print "no measurement of " column " for " name > "/dev/stderr"
    failed = 1
    exit 1
  }
  return value[key]
}

# A budget that is a least rate.
function rate_row(what, name, budget,    rate) {
  rate = measured(name, "items_per_second")
  printf "| %s | at least %s/s | %s/s | %.2f |\n", what, short(budget), short(rate), rate / budget
}

# A budget that is a largest value.
function limit_row(what, limit, x, unit) {
  printf "| %s | at most %s%s | %s%s | %.2f |\n", what, short(limit), unit, short(x), unit, limit / x
}

function growth(name,    n, seconds, least, most) {
  least = 1e300
  most = 0
  for (n = 100; n <= 1000000; n *= 10) {
    seconds = 1 / measured(name "/" n "/iterations:" (n < 1000000 ? 2000000 / n : 2), \
                           "items_per_second")
    if (seconds < least) least = seconds
    if (seconds > most) most = seconds
  }
  return most / least
}

$0 ~ /^name,/ {
  n_columns = split_csv($0, column)
  next
}
n_columns && /_median"?,/ {
  split_csv($0, field)
  name = field[1]
  sub(/_median$/, "", name)
  names[++n_names] = name
  for (i = 2; i <= n_columns; ++i) if (field[i] != "") value[name, column[i]] = field[i] + 0
}

END {
  if (failed) exit 1
  print ""
  print "| what | budget | measured | margin (1 or more: holds) |"
  print "|---|---|---|---|"
  rate_row("simulator, published llama-layer, random assignments, one core",
           "simulator/random assignments/published llama-layer", 70000)
  rate_row("simulator, published llama-layer, one-node changes of a random assignment, one core",
           "simulator/one-node changes/random base", 200000)
  rate_row("simulator, published llama-layer, one-node changes of partner-list's, one core",
           "simulator/one-node changes/partner-list base", 200000)
  limit_row("time per node, largest / smallest, 100 to 1,000,000 nodes, ids in layers", 3,
            growth("simulator/growth/ids in layers"), "")
  limit_row("the same with shuffled ids", 3, growth("simulator/growth/shuffled ids"), "")
  limit_row("memory of a graph of 1,000,000 nodes", 1073741824,
            measured("graphs/build/1000000/iterations:1", "resident_bytes"), "B")
  limit_row("most memory while it is built", 1073741824,
            measured("graphs/build/1000000/iterations:1", "peak_bytes"), "B")
  rate_row("Env, sequential, features = paper, published llama-layer, one core",
           "env/steps/published/llama-layer/features paper", 3000000)
  rate_row("the same, llama-layer@p100x4", "env/steps/llama-layer@p100x4/features paper", 3000000)
  print ""
  print "| benchmark | items/s | time of one item | reference's items/s | ratio |"
  print "|---|---|---|---|---|"
  for (i = 1; i <= n_names; ++i) {
    name = names[i]
    if (name ~ /^reference\//) continue
    rate = measured(name, "items_per_second")
    slow = name
    sub(/^(simulator|env)\//, "reference/", slow)
    shown = name
    sub(/\/iterations:[0-9]+$/, "", shown)
    sub(/\/real_time$/, "", shown)
    if (slow != name && (slow, "items_per_second") in value) {
      slow_rate = value[slow, "items_per_second"]
      printf "| %s | %s | %ss | %s | %.3g |\n", shown, short(rate), small(1 / rate),
             short(slow_rate), rate / slow_rate
    } else {
      printf "| %s | %s | %ss | | |\n", shown, short(rate), small(1 / rate)
    }
  }
}

# Seconds below 1: 0.0000123 -> 12.3 µ.
function small(x) {
  if (x >= 1) return sprintf("%.3g ", x)
  if (x >= 1e-3) return sprintf("%.3g m", x * 1e3)
  if (x >= 1e-6) return sprintf("%.3g µ", x * 1e6)
  return sprintf("%.3g n", x * 1e9)
}
