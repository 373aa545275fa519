-- Finds threads that are due for a check. Also moves up to MOVED_MAX ids from the sets `:d` and `:n` of earlier
-- versions to the index. KEYS: 1 index. ARGV: 1 `ahead`, 2 maximum number of ids. Reply: the current time, and the ids.
local MOVED_MAX = 20
local start, due = sub(KEYS[1], 1, -2), {}
local old, index = start .. 'd', index_at(start)
local ahead, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local t, this_second = fmt('%.0f', now(ahead)), math.floor(now(ahead) / 1000)
-- While the slot migrates, a script cannot distinguish a missing key from a key that has moved. The reply is then
-- empty, and a later call finds the threads.
if type(redis.pcall('EXISTS', old, old .. ':')) ~= 'number' then return {t, due} end
-- if Redis cannot save to disk or lacks replicas, it rejects writes, but the script must still find threads
local can_write = may_write(old .. ':')
local moving = can_write and call('ZRANGE', old, 0, MOVED_MAX - 1, 'WITHSCORES') or {}
if #moving > 0 then
  local ids = {}
  for i = 1, #moving, 2 do
    ids[#ids + 1] = moving[i]
    if index.add(moving[i], moving[i + 1]) then index.check_at(moving[i], moving[i + 1], 'LT') end
  end
  call('ZREM', old, unpack(ids))
  call('ZREM', start .. 'n', unpack(ids))
end
-- the index stores whole seconds, so a thread that is due in the current second may still be alive
local function is_due(id, second)
  return second < this_second or not living(start .. 't:' .. id, ahead)
end
local names = call('ZRANGEBYSCORE', start .. 'gx', '-inf', this_second, 'LIMIT', 0, limit)
table.insert(names, 1, '')
for _, name in ipairs(names) do
  local group = start .. 'g:' .. name
  local found = call('ZRANGEBYSCORE', group, '-inf', this_second, 'WITHSCORES')
  for i = 1, #found, 2 do
    local id = unpack_id(found[i])
    if #due < limit and is_due(id, tonumber(found[i + 1])) then due[#due + 1] = id end
  end
  if #due == limit then break end
  if #found == 0 and name ~= '' and can_write then
    local earliest = call('ZRANGE', group, 0, 0, 'WITHSCORES')[2]
    if earliest then
      call('ZADD', start .. 'gx', 'XX', earliest, name)
    else
      -- the group was lost
      call('ZREM', start .. 'g', name)
      call('ZREM', start .. 'gx', name)
    end
  end
end
return {t, due}
