-- Deletes pending or parked events of a consumer, or replaces their records. Increments the consumer's number of
-- erasures, so that commit.lua rejects a caller that has read the old records.
-- KEYS: 1 ledger, 2 pending events, 3 parked events, 4 parked events in order.
-- ARGV: pairs of an event and its new record (empty: delete the event). Reply: 1, or 0 if the consumer does not exist.
if call('EXISTS', KEYS[1]) == 0 then return 0 end
write_even_when_full(KEYS[1])
for i = 1, #ARGV, 2 do
  local event, record = ARGV[i], ARGV[i + 1]
  for index = 2, 3 do
    if call('HDEL', KEYS[index], event) == 1 and record ~= '' then call('HSET', KEYS[index], event, record) end
  end
  if record == '' then call('ZREM', KEYS[4], event) end
end
call('HINCRBY', KEYS[1], 'erasures', 1)
return 1
