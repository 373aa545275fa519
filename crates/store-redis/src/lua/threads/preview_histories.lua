-- Summarizes the histories of threads for a list. Does not extend the lifetimes of the threads.
-- KEYS: thread, scope and history of each thread. ARGV: 1 `ahead`, 2 number of oldest items, 3 maximum bytes of a value.
-- Reply: for each thread nil, or the number of items, the time of the newest item or nil, and the values of the oldest
--   items. Omits the remaining threads after reading more than GLANCED_BYTES_MAX bytes of items.
local GLANCED_BYTES_MAX = 262144
local ahead, opening, max_value_bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local reply, bytes = {}, 0
for i = 1, #KEYS, 3 do
  if bytes > GLANCED_BYTES_MAX then break end
  local m = living(KEYS[i], ahead)
  local scope = m and call('HGET', KEYS[i + 1], 'M')
  local s = scope and unpack_scope(scope)
  -- a scope with a different life remains from an earlier life, because the end of that life was not noticed
  local items = s and s.life == sub(m, LIFE_AT, LIFE_END) and s.items or 0
  local newest, values, from = false, {}, '-'
  if items > 0 then
    local item = call('XREVRANGE', KEYS[i + 2], '+', '-', 'COUNT', 1)[1]
    newest, bytes = item[2][2], bytes + bytes_of(item)
  end
  while #values < math.min(opening, items) and bytes <= GLANCED_BYTES_MAX do
    local item = call('XRANGE', KEYS[i + 2], from, '+', 'COUNT', 1)[1]
    if not item then break end
    values[#values + 1], from, bytes = sub(item[2][6], 1, max_value_bytes), '(' .. item[1], bytes + bytes_of(item)
  end
  reply[#reply + 1] = m and {items, newest, values} or false
end
return reply
