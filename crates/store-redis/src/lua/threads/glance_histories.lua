-- Histories as a list of threads shows them. The ends of the threads do not move.
-- KEYS: for each thread itself, its scope, and its history.
-- ARGV: 1 ahead, 2 how many of the oldest items are shown, 3 bytes of a value that are shown at most.
-- Reply: for each thread nil, or the number of items, the time of the newest or nil, and the values. After many bytes of
--        items, the script stops, and the next call goes on with the other threads.
local MOST_GLANCED_BYTES = 262144
local ahead, opening, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local found, bytes = {}, 0
for i = 1, #KEYS, 3 do
  if bytes > MOST_GLANCED_BYTES then break end
  local m = living(KEYS[i], ahead)
  local scope = m and call('HGET', KEYS[i + 1], 'M')
  local s = scope and unpack_scope(scope)
  -- else it is of a life whose end nobody saw
  local items = s and s.life == sub(m, LIFE_AT, LIFE_END) and s.items or 0
  local newest, values, from = false, {}, '-'
  if items > 0 then
    local item = call('XREVRANGE', KEYS[i + 2], '+', '-', 'COUNT', 1)[1]
    newest, bytes = item[2][2], bytes + bytes_of(item)
  end
  while #values < math.min(opening, items) and bytes <= MOST_GLANCED_BYTES do
    local item = call('XRANGE', KEYS[i + 2], from, '+', 'COUNT', 1)[1]
    if not item then break end
    values[#values + 1], from, bytes = sub(item[2][6], 1, most), '(' .. item[1], bytes + bytes_of(item)
  end
  found[#found + 1] = m and {items, newest, values} or false
end
return found
