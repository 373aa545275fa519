-- Lists archives by time, then by member: many archives have the same time, because threads are ended in batches.
-- KEYS: 1 archives. ARGV: 1 time, 2 last listed member at that time, 3 maximum number. Reply: pairs of member and time.
local from, after, limit = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local listed, offset = {}, 0

-- Compares bytes, as Redis does, because Lua's comparison operators use the locale of the server.
local function is_after(member, other)
  for i = 1, #member do
    local ours, theirs = byte(member, i), byte(other, i) or -1
    if ours ~= theirs then return ours > theirs end
  end
  return false
end

repeat
  local found = call('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', offset, limit)
  for i = 1, #found, 2 do
    local time = tonumber(found[i + 1])
    if #listed < 2 * limit and (time > from or is_after(found[i], after)) then
      -- the time is formatted, because some servers return round times with an exponent
      listed[#listed + 1], listed[#listed + 2] = found[i], fmt('%.0f', time)
    end
  end
  offset = offset + limit
until #listed == 2 * limit or #found < 2 * limit
return listed
