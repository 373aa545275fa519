-- Logs that a request about a thread has ended. KEYS: 1 thread, 2 log. ARGV: 1 ahead, 2 what is
-- known of the request. Reply: 1.
local ahead, version, sequence, life = tonumber(ARGV[1]), 0, 0, NO_LIFE
local m = living(KEYS[1], ahead)
if m then
  life, version = unpack_('>c8I6', m, 2)
  sequence = unpack_('>I4', m, 55) + 1
  call('HSET', KEYS[1], 'M', sub(m, 1, 54) .. pack('>I4', sequence) .. sub(m, 59))
end
log_event(KEYS[2], COMPLETED, 0, now(ahead), version, sequence, life, id_of(KEYS[1]), ARGV[2], ahead)
return 1
