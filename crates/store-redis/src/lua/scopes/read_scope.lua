-- Reads the keys, tasks and record of a scope.
-- KEYS: 1 scope, 2 history, 3 ids of the history, 4 the thread of the scope, if any.
-- ARGV: 1 `ahead`, 2 `k` to read keys, 3 `t` to read tasks, 4 `r` to read the record, 5 `g` to leave the lifetime unchanged,
--   6 `access`, then fields.
-- Reply: nil; a refusal; or meta, milliseconds to live (-1: no expiry), current time, tasks, record, keys, values.
local ahead = tonumber(ARGV[1])
local k = {scope = KEYS[1], history = KEYS[2], ids = KEYS[3], thread = KEYS[4]}
if ARGV[5] == 'g' then check_writable(k.scope) end
local _, s, _, refusal = open_scope(k, ahead, ARGV[5] ~= 'g', ARGV[6])
if not s then return refusal or false end
local values, keys = {}, {}
for from = 7, #ARGV, 1000 do
  local found = call('HMGET', k.scope, unpack(ARGV, from, math.min(from + 999, #ARGV)))
  for i, value in ipairs(found) do values[from - 7 + i] = not is_expired(s, ARGV[from + i - 1]) and value end
end
if ARGV[2] == 'k' then
  for _, f in ipairs(call('HKEYS', k.scope)) do
    if byte(f) == 107 and not is_expired(s, f) then keys[#keys + 1] = sub(f, 2) end
  end
end
-- Every read must report the same fixed end, to the millisecond. A sum of TIME and PTTL varies, because PTTL uses the
-- time at which the script started, but TIME uses the current time. Redis 7 reports the end directly (PEXPIRETIME).
local at = now(ahead)
if s.ttl == 0 and s.left and s.left >= 0 then
  local ends = redis.pcall('PEXPIRETIME', k.scope)
  if type(ends) == 'number' then at = ends - s.left end
end
return {pack_scope(s), s.left or -1, fmt('%.0f', at),
  ARGV[3] == 't' and call('HGET', k.scope, 'T'), ARGV[4] == 'r' and call('HGET', k.scope, 'R'),
  keys, values}
