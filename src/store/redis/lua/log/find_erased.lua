-- Looks for events of erased lives in a part of a log.
-- KEYS: 1 log, 2 erased lives. ARGV: 1 first position, 2 how many events at most, 3 how many bytes at most.
-- Reply: whether there was one, and where to go on, or nil at the end of the log.
local found = 0
local next = look_through(KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), function(entry)
  if is_unwanted(entry, KEYS[2]) then found = 1 end
  return found == 1
end)
return {found, next}
