-- Adds events to a response. KEYS: 1 response.
-- ARGV: 1 ahead, 2 token, 3 number of the first, then events. Reply: `K`, or a refusal.
local key, ahead, first = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[3])
local r = open_response(key, ahead)
if not r or r.has_ended or r.token ~= ARGV[2] then return {'R', 'turn_lost'} end
if first > r.next_event then return {'R', 'changed'} end
local is_first = r.next_event == 0
if is_first then settle_response(key, r) else settle(key) end
add_events(key, r, first, ARGV, 4, #ARGV)
call('HSET', key, 'M', pack_response(r))
-- from then on, entries and signs of life keep the events too
if is_first then keep(key, r, ahead) end
return {'K'}
