-- Archives after a place. Many have the same time, since threads are ended in batches.
-- KEYS: 1 archives. ARGV: 1 time, 2 the last one at that time that was listed, 3 how many at most.
-- Reply: members and their times, in turn.
local from, after, most, listed, offset = tonumber(ARGV[1]), ARGV[2], 2 * tonumber(ARGV[3]), {}, 0
repeat
  local got = call('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', offset, 100)
  for i = 1, #got, 2 do
    if #listed < most and (tonumber(got[i + 1]) > from or got[i] > after) then
      listed[#listed + 1], listed[#listed + 2] = got[i], got[i + 1]
    end
  end
  offset = offset + 100
until #listed == most or #got < 200
return listed
