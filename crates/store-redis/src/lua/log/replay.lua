-- Makes parked events pending again. KEYS: 1 ledger, 2 pending, 3 parked, 4 parked in order.
-- ARGV: event, record, ... Reply: number of events that were parked.
local n = 0
for i = 1, #ARGV, 2 do
  if call('HDEL', KEYS[3], ARGV[i]) == 1 then
    call('ZREM', KEYS[4], ARGV[i])
    call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
    n = n + 1
  end
end
if n > 0 then call('HINCRBY', KEYS[1], 'replays', 1) end
return n
