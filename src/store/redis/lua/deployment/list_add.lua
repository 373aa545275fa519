-- Adds a member to a list. KEYS: 1 list, 2 when to look at whom, 3 whose each is, then the part of
-- its owner. ARGV: 1 member, 2 as of when, 3 when to look at it. Reply: 1, or 0 when it was there.
if call('ZADD', KEYS[1], 'NX', ARGV[2], ARGV[1]) == 0 then return 0 end
call('ZADD', KEYS[2], ARGV[3], ARGV[1])
if KEYS[4] then
  call('ZADD', KEYS[4], ARGV[2], ARGV[1])
  call('HSET', KEYS[3], ARGV[1], KEYS[4])
end
return 1
