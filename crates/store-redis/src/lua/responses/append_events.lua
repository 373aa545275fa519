-- Adds events to responses. A refusal or error for one response does not affect the other responses. A part of fast.lua
-- is inserted after the line `--+ outcome`.
-- KEYS: one or more responses. ARGV: for each response, `ahead`, token of its driver, sequence number of the first
--   event, and the events, each preceded by its length.
-- Reply: for each response, `K`, a refusal or an error; an array if there are several responses.
local function append_events(key, ahead, token, first, packed)
  local r = open_response(key, ahead)
  if not r or r.has_ended or r.token ~= token then return {'R', 'turn_lost'} end
  if first > r.next_event then return {'R', 'changed'} end
  local is_first = r.next_event == 0
  if is_first then settle_response(key, r) else settle(key) end
  local events, at = {}, 1
  while at <= #packed do
    events[#events + 1], at = unpack_('>I4c0', packed, at)
  end
  add_events(key, r, first, events, 1, #events)
  call('HSET', key, 'M', pack_response(r))
  -- the first event creates the stream, so its expiry is set here; later steps and lease renewals extend the expiry
  if is_first then keep(key, r, ahead) end
  return {'K'}
end
local outcomes = {}
for i = 1, #KEYS do
  local at = 4 * i - 3
  local is_done, outcome =
    pcall(append_events, KEYS[i], tonumber(ARGV[at]), ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3])
  -- Redis 6.2 raises errors as plain strings
  if not is_done and type(outcome) == 'string' then outcome = {err = outcome} end
--+ outcome
end
return #KEYS == 1 and outcomes[1] or outcomes
