-- Stages items of a history for import.lua. Skips items that an earlier attempt has staged.
-- KEYS: 1 history, 2 ids of the history. ARGV: 1 lifetime, then for each item position, time, id, value, and its entry
--   in the ids of the history. Reply: 1.
local last = call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
last = last and tonumber(string.match(last[1], '^%d+')) or 0
local known = {}
for i = 2, #ARGV, 5 do
  if tonumber(ARGV[i]) > last then
    call('XADD', KEYS[1], ARGV[i] .. '-0', 't', ARGV[i + 1], 'i', ARGV[i + 2], 'v', ARGV[i + 3])
    known[#known + 1] = ARGV[i + 2]
    known[#known + 1] = ARGV[i + 4]
  end
end
in_slices('HSET', KEYS[2], known)
call('PEXPIRE', KEYS[1], ARGV[1])
call('PEXPIRE', KEYS[2], ARGV[1])
return 1
