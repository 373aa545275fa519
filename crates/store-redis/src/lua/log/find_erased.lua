-- Looks for events of erased lives in a part of a log. If events were trimmed since the first position, Redis may still hold
-- their bytes in its oldest block, so the reply is 1.
-- KEYS: 1 log, 2 erased lives, 3 horizon. ARGV: 1 first position, a number at the start, 2 maximum events, 3 maximum bytes.
-- Reply: whether there was one, and the position to resume at, or nil at the end of the log.
local start, horizon = tonumber(ARGV[1]), call('GET', KEYS[3])
if start and horizon and tonumber(string.match(horizon, '^%d+')) >= start then return {1} end
local found = 0
local next = look_through(KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), function(entry)
  if is_unwanted(entry, KEYS[2]) then found = 1 end
  return found == 1
end)
return {found, next}
