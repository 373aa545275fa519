-- Adds a member to a list.
-- KEYS: 1 the list, 2 members by next check, 3 a hash: key of each member's owner list, 4 the owner's list, if any.
-- ARGV: 1 member, 2 creation time, 3 time of the next check. Reply: 1, or 0 if the member already existed.
if call('ZADD', KEYS[1], 'NX', ARGV[2], ARGV[1]) == 0 then return 0 end
call('ZADD', KEYS[2], ARGV[3], ARGV[1])
if KEYS[4] then
  call('ZADD', KEYS[4], ARGV[2], ARGV[1])
  call('HSET', KEYS[3], ARGV[1], KEYS[4])
end
return 1
