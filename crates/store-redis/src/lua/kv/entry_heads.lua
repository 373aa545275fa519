-- Reads the heads of entries. The keys are described in entries.lua.
-- KEYS: 1 heads, 2 ends. ARGV: 1 `ahead`, 2 time (entries last put before it have ended), then members.
-- Reply: head and end (empty: never) of each member, in turn; two empty strings for a missing entry.
local k, ahead, since, reply = {heads = KEYS[1], ends = KEYS[2]}, tonumber(ARGV[1]), tonumber(ARGV[2]), {}
for i = 3, #ARGV do
  local head = head_of(k, ARGV[i], ahead, since)
  local ends = head and call('ZSCORE', k.ends, ARGV[i])
  reply[#reply + 1] = head or ''
  reply[#reply + 1] = ends and fmt('%.0f', tonumber(ends)) or ''
end
return reply
