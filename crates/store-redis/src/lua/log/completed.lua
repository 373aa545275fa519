-- Logs a completed request about a thread.
-- KEYS: 1 thread, 2 log. ARGV: 1 `ahead`, 2 request, 3 trace or empty. Reply: 1.
trace = ARGV[3]
local ahead, version, sequence, life = tonumber(ARGV[1]), 0, 0, NO_LIFE
local m = living(KEYS[1], ahead)
if m then
  life, version = unpack_(LIFE, m, LIFE_AT)
  sequence = unpack_('>I4', m, EVENTS_AT) + 1
  call('HSET', KEYS[1], 'M', sub(m, 1, EVENTS_AT - 1) .. pack('>I4', sequence) .. sub(m, WATCHED_AT))
end
log_event(KEYS[2], COMPLETED, 0, now(ahead), version, sequence, life, id_of(KEYS[1]), ARGV[2], ahead)
return 1
