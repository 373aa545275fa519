-- Deletes the events of a log after their retention.
-- KEYS: 1 log, 2 horizon, 3 archives.
-- ARGV: 1 `ahead`, 2 retention of events, 3 maximum retention, 4 position of the slowest consumer or empty, 5 retention of
--   archives, 6 maximum number of archives in the reply, 7 approximate maximum number of events to delete.
-- Reply: 1 if the log has more to delete, else 0; and expired archives that are older than all events in the log.
local ahead, max_events = tonumber(ARGV[1]), tonumber(ARGV[7])
-- positions cannot be negative
local function position(ms) return fmt('%.0f-0', math.max(1, ms)) end
local hard_ms = now(ahead) - tonumber(ARGV[3])
local cut = position(now(ahead) - tonumber(ARGV[2]))
if ARGV[4] ~= '' then
  -- events that the slowest consumer has not handled are deleted only after the maximum retention
  local ms, n = string.match(ARGV[4], '^(%d+)-(%d+)$')
  local slowest_ms = tonumber(ms)
  if slowest_ms < now(ahead) - tonumber(ARGV[2]) then
    cut = slowest_ms < hard_ms and position(hard_ms) or ms .. '-' .. fmt('%.0f', n + 1)
  end
end
local last, more = call('XREVRANGE', KEYS[1], '(' .. cut, '-', 'COUNT', 1)[1], 0
if last then
  -- first deletes only whole stream nodes, up to `max_events` events; if few were deleted, deletes exactly up to `cut`
  if call('XTRIM', KEYS[1], 'MINID', '~', cut, 'LIMIT', max_events) > max_events / 2 then
    more = 1
  else
    call('XTRIM', KEYS[1], 'MINID', cut)
  end
  -- The horizon is set even if some events up to it remain, because concurrent readers must notice that they missed
  -- events. It is set after XTRIM, because a full Redis rejects SET from a script that has not written yet.
  call('SET', KEYS[2], last[1])
end

-- an archive has the time of its event's position
local oldest = call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
local archives_until = now(ahead) - tonumber(ARGV[5])
if oldest then archives_until = math.min(archives_until, tonumber(string.match(oldest[1], '^%d+')) - 1) end
return {more, call('ZRANGEBYSCORE', KEYS[3], '-inf', fmt('%.0f', archives_until), 'LIMIT', 0, ARGV[6])}
