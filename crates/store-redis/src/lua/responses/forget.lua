-- Deletes a response that has ended. KEYS: 1 response. ARGV: 1 `ahead`. Reply: 1 if the response was deleted, else 0.
local key, ahead = KEYS[1], tonumber(ARGV[1])
local r = open_response(key, ahead)
if not r or not r.has_ended then return 0 end
settle_response(key, r)
write_even_when_full(key)
if r.life ~= NO_LIFE then call('ZREM', list_of(key, r.life), response_id_of(key)) end
call('UNLINK', key, events_of(key))
return 1
