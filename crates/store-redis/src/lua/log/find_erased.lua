-- Checks whether a part of a log has events of erased lives. If events at or after the first position were trimmed, the
-- reply is 1, because Redis may still hold their bytes in the log's oldest block.
-- KEYS: 1 log, 2 erased lives, 3 horizon.
-- ARGV: 1 first position (at the start of the log, a plain time in milliseconds), 2 maximum number of events, 3 maximum
--   number of bytes.
-- Reply: 1 if there was such an event, else 0; and the position to resume at, or nil at the end of the log.
local start, horizon = tonumber(ARGV[1]), call('GET', KEYS[3])
if start and horizon and tonumber(string.match(horizon, '^%d+')) >= start then return {1} end
local found = 0
local next = scan_log(KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), function(entry)
  if is_unwanted(entry, KEYS[2]) then found = 1 end
  return found == 1
end)
return {found, next}
