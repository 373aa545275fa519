-- Copies a part of a log, without the events of erased lives. After the last part, the copy replaces the log. The copy is
-- necessary because Redis only marks deleted stream entries and keeps their bytes. The horizon does not change, because
-- readers need not notice that these events are missing.
-- KEYS: 1 log, 2 copy, 3 maker of the copy, 4 erased lives.
-- ARGV: 1 maker, 2 first position, or `-` for the start, 3 maximum number of events, 4 maximum number of bytes, 5 lifetime
--   of the copy.
-- Reply: the position to resume at; 1 when done; 0 if another maker is copying, or if this part does not follow the previous
--   part.
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
local next = scan_log(log, from, tonumber(ARGV[3]), tonumber(ARGV[4]), function(entry)
  if not is_unwanted(entry, KEYS[4]) then call('XADD', copy, entry[1], unpack(entry[2])) end
end)
if next then
  call('SET', KEYS[3], name .. next, 'PX', ARGV[5])
  call('PEXPIRE', copy, ARGV[5])
  return next
end

-- positions must never go backwards, even if the last event was left out
local last
local info = call('XINFO', 'STREAM', log)
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then last = info[i + 1] end
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
