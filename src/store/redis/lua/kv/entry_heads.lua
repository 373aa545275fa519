-- Heads of entries that live. KEYS: 1 heads, 2 ends. ARGV: 1 ahead, then members.
-- Reply: of each its head and its end (empty: never), in turn; two empty texts: there is none.
local k, ahead, found = {heads = KEYS[1], ends = KEYS[2]}, tonumber(ARGV[1]), {}
for i = 2, #ARGV do
  local head = head_of(k, ARGV[i], ahead)
  local ends = head and call('ZSCORE', k.ends, ARGV[i])
  found[#found + 1] = head or ''
  found[#found + 1] = ends and fmt('%.0f', tonumber(ends)) or ''
end
return found
