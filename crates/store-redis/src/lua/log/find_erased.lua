-- Checks whether a part of a log contains events of erased lives. Also replies 1 if events at or after the first
-- position were trimmed, because Redis may still hold the bytes of trimmed events in the oldest node of the stream.
-- KEYS: 1 log, 2 erased lives, 3 horizon (newest position that was deleted from the log).
-- ARGV: 1 first position (in the first call, a time in milliseconds), 2 maximum number of events, 3 maximum bytes.
-- Reply: 1 if there may be such an event, else 0; and the position at which to resume, or nil if the check is complete.
local start, horizon = tonumber(ARGV[1]), call('GET', KEYS[3])
if start and horizon and tonumber(string.match(horizon, '^%d+')) >= start then return {1} end
local found = 0
local next = scan_log(KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), function(entry)
  if is_unwanted(entry, KEYS[2]) then found = 1 end
  return found == 1
end)
return {found, next}
