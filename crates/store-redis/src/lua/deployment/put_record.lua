-- Replaces a record if it equals the expected record. If no record is expected, adds one unless it already exists.
-- KEYS: 1 the records, a hash. ARGV: 1 name, 2 new record, 3 maximum number of records, 4 expected record, if any.
-- Reply: 1 if the record was stored, or 0.
local old = call('HGET', KEYS[1], ARGV[1])
if old ~= (ARGV[4] or false) then return 0 end
if not old and call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
