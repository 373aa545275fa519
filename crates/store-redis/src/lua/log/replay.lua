-- Makes parked events pending again.
-- KEYS: 1 ledger, 2 pending events, 3 parked events, 4 parked events in order.
-- ARGV: pairs of an event and its record. Reply: number of events that were made pending.
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
