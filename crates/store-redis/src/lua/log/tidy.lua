-- Deletes events past their retention. KEYS: 1 log, 2 horizon, 3 archives.
-- ARGV: 1 ahead, 2 retention of events, 3 maximum retention, 4 position of the slowest consumer or empty, 5 retention of
-- archives, 6 maximum archives, 7 approximate maximum events.
-- Reply: whether the log has more to delete, and the archives that neither the retention nor the log needs.
local ahead, most = tonumber(ARGV[1]), tonumber(ARGV[7])
-- positions cannot be negative
local function position(ms) return fmt('%.0f-0', math.max(1, ms)) end
local hard_ms = now(ahead) - tonumber(ARGV[3])
local cut = position(now(ahead) - tonumber(ARGV[2]))
if ARGV[4] ~= '' then
  -- events that the slowest consumer has handled are deleted too
  local ms, n = string.match(ARGV[4], '^(%d+)-(%d+)$')
  local slowest_ms = tonumber(ms)
  if slowest_ms < now(ahead) - tonumber(ARGV[2]) then
    cut = slowest_ms < hard_ms and position(hard_ms) or ms .. '-' .. fmt('%.0f', n + 1)
  end
end
local last, more = call('XREVRANGE', KEYS[1], '(' .. cut, '-', 'COUNT', 1)[1], 0
if last then
  -- whole nodes of the stream, some thousand events at a time; then the rest
  if call('XTRIM', KEYS[1], 'MINID', '~', cut, 'LIMIT', most) > most / 2 then
    more = 1
  else
    call('XTRIM', KEYS[1], 'MINID', cut)
  end
  -- set even if some of these events remain: concurrent readers must notice that they miss events. After the trim, because a
  -- full Redis rejects SET from a script that has not written yet
  call('SET', KEYS[2], last[1])
end

-- an archive has the time of its event's position
local oldest = call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
local unwanted = now(ahead) - tonumber(ARGV[5])
if oldest then unwanted = math.min(unwanted, tonumber(string.match(oldest[1], '^%d+')) - 1) end
return {more, call('ZRANGEBYSCORE', KEYS[3], '-inf', fmt('%.0f', unwanted), 'LIMIT', 0, ARGV[6])}
