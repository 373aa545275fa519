-- Copies a part of a log, except the events of erased lives. After the last part, the copy replaces the log. Deletions
-- in place would not be enough, because Redis only marks deleted stream entries and keeps their bytes. The horizon does
-- not change, because readers need not notice that these events are missing.
-- KEYS: 1 log, 2 copy, 3 name of the process that makes the copy, 4 erased lives.
-- ARGV: 1 name of the caller, 2 first position, or `-` for the start, 3 maximum number of events, 4 maximum number of
--   bytes, 5 lifetime of the copy.
-- Reply: the position at which the next call resumes; 1 if the copy has replaced the log; 0 if another process is
--   copying, or if this part does not follow the previous part.
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

-- keeps the log's last position, because positions must not decrease even if the last event was not copied
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
