-- Deletes events past their retention from a log.
-- KEYS: 1 log, 2 horizon, 3 archives.
-- ARGV: 1 ahead, 2 how long events stay, 3 how long they stay at most, 4 how far the slowest
--       consumer is or nothing, 5 how long an archive is readable, 6 how many archives at most,
--       7 about how many events at most.
-- Reply: whether the log has more to delete, and the archives that neither the retention nor the log needs.
local ahead, most = tonumber(ARGV[1]), tonumber(ARGV[7])
-- a time before the epoch is no place in a log
local function position(ms) return fmt('%.0f-0', math.max(1, ms)) end
local hard_ms = now(ahead) - tonumber(ARGV[3])
local cut = position(now(ahead) - tonumber(ARGV[2]))
if ARGV[4] ~= '' then
  -- what the slowest has handled goes with it
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
  -- even if some of it still exists: concurrent readers must notice that they miss events. Not before the trim, since
  -- a full Redis refuses it to a script that has not written yet
  call('SET', KEYS[2], last[1])
end

-- an archive has the time of its event's place
local oldest = call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
local unwanted = now(ahead) - tonumber(ARGV[5])
if oldest then unwanted = math.min(unwanted, tonumber(string.match(oldest[1], '^%d+')) - 1) end
return {more, call('ZRANGEBYSCORE', KEYS[3], '-inf', fmt('%.0f', unwanted), 'LIMIT', 0, ARGV[6])}
