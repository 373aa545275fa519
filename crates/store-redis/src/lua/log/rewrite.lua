-- Copies a part of a log without the events of erased lives; at its end, the copy becomes the log. Redis only marks
-- entries that are deleted from a stream, and keeps their bytes. The horizon stays: nobody misses these events.
-- KEYS: 1 log, 2 its copy, 3 the maker of the copy, 4 erased lives.
-- ARGV: 1 the name of the maker, 2 first position, `-` at the start, 3 how many events at most, 4 how many bytes at most,
--       5 for how long the copy is kept and nobody else may begin.
-- Reply: where to go on; 1 when all is done; 0 if another one copies, or this part does not follow the one before.
local log, copy, name, from = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local by = call('GET', KEYS[3])
if from == '-' then
  if by and sub(by, 1, #name) ~= name then return 0 end
elseif by ~= name .. from then
  return 0
end
settle(log)
write_even_when_full(copy .. ':')
if from == '-' then call('UNLINK', copy) end
if call('EXISTS', log) == 0 then return 1 end
local next = look_through(log, from, tonumber(ARGV[3]), tonumber(ARGV[4]), function(entry)
  if not is_unwanted(entry, KEYS[4]) then call('XADD', copy, entry[1], unpack(entry[2])) end
end)
if next then
  call('SET', KEYS[3], name .. next, 'PX', ARGV[5])
  call('PEXPIRE', copy, ARGV[5])
  return next
end

-- positions never go back, even if the last event was one of these
local last
local about = call('XINFO', 'STREAM', log)
for i = 1, #about, 2 do
  if about[i] == 'last-generated-id' then last = about[i + 1] end
end
if call('EXISTS', copy) == 0 then
  call('XADD', copy, last, 'e', '', 'k', '')
  call('XDEL', copy, last)
end
call('UNLINK', log, KEYS[3])
call('PERSIST', copy)
call('RENAME', copy, log)
call('XSETID', log, last)
return 1
