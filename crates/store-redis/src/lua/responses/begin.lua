-- Begins a response, or hands an existing response to another driver. "Floor" is the exclusive right to write responses into
-- a scope: the turn of a thread, or the only open response of a scope without a thread.
-- KEYS: 1 response; for a scope with a thread, 2 the thread; for floor `s`, 2 scope, 3 history, 4 ids of the history.
-- ARGV: 1 `ahead`, 2 `access`, 3 token of the driver, 4 duration of the driver's lease, 5 retention, 6 delay from the last
--   write until the response is due, 7 fingerprint of the request, 8 floor: empty for none, `t` to take the turn, the token
--   of the turn that the caller holds, or `s` for a scope without a thread, 9 scope, 10 request; empty to only ask whether
--   the response may begin.
-- Reply: a refusal, or one of:
--   `N`  the response is new
--   `A`  the response may begin, but no request was given
--   `T`  the response continues, or has ended
--   `L`  another driver has the response; followed by the milliseconds until that driver's lease expires
--   `F`  another response or a client holds the floor; followed by the milliseconds until the holder's lease expires, and
--        the id of the other response, if any
--   `B`  the response with the following id must end first
local key, ahead = KEYS[1], tonumber(ARGV[1])
local scope = ARGV[8] == 's' and {scope = KEYS[2], history = KEYS[3], ids = KEYS[4]}
local thread = not scope and KEYS[2] or nil
local token, floor = ARGV[3], thread and ARGV[8] or ''
local start, id = start_of(key), response_id_of(key)
local r = open_response(key, ahead)
if r and (call('HGET', key, 'P') ~= ARGV[7] or not is_in(key, r, ARGV[9], thread)) then
  return {'R', 'idempotency_key_reused'}
end
if r and r.has_ended then return {'T'} end
if r and r.token ~= token and r.lease > now(ahead) then return {'L', fmt('%.0f', r.lease - now(ahead))} end
local m, life = nil, NO_LIFE
if thread then
  m = living(thread, ahead)
  local refusal = owner_refusal(m, ARGV[2])
  if refusal then return refusal end
  if not m then return {'R', r and 'thread_destroyed' or 'no_thread'} end
  if is_unbound(m, ARGV[2]) then return {'R', 'no_thread'} end
  life = sub(m, LIFE_AT, LIFE_END)
  if r and r.life ~= life then return {'R', 'thread_destroyed'} end
end
local turn = thread and floor ~= '' and call('HGET', thread, 'U')
local last = last_response(turn)
if floor ~= '' then
  local holder, ends, flags = '', 0, 0
  if turn then holder, ends, flags = unpack_(TURN, turn) end
  local other = last ~= '' and last ~= id and open_response(start .. ':u:' .. last, ahead)
  -- a response that ended while its thread was moved to another id may not have released the turn, so the turn is free
  local is_left = other and other.has_ended and other.turn == other.token and other.turn == holder
  if other and (other.has_ended or other.life ~= life) then other = nil end
  if floor ~= 't' then
    if holder ~= floor then return {'R', 'turn_lost'} end
  elseif ends > now(ahead) and holder ~= token and not is_left and not (r and r.token == holder) then
    if flags < 2 then call('HSET', thread, 'U', pack(TURN, holder, ends, flags + 2) .. last) end
    return {'F', fmt('%.0f', ends - now(ahead)), other and other.turn == holder and last or ''}
  end
  if other and other.lease > now(ahead) then return {'F', fmt('%.0f', other.lease - now(ahead)), last} end
  if other then return {'B', last} end
end
if scope then
  local _, s = open_scope(scope, ahead, true, ARGV[2])
  if not s then return {'R', 'scope_not_found'} end
  last = call('HGET', scope.scope, 'U')
  local other = last and last ~= id and open_response(start .. ':u:' .. last, ahead)
  if other and not other.has_ended then
    if other.lease > now(ahead) then return {'F', fmt('%.0f', other.lease - now(ahead)), last} end
    return {'B', last}
  end
end
local is_new = not r
if is_new and ARGV[10] == '' then return {'A'} end
r = r or {entries = 0, next_event = 0, life = life}
r.token, r.lease, r.kept, r.due = token, now(ahead) + tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
r.turn = floor == '' and NO_TURN or floor == 't' and token or floor
settle_response(key, r)
if is_new then
  -- an expired response can still have a key only if tests have shifted the clock
  if call('EXISTS', key) == 1 then call('UNLINK', key, events_of(key)) end
  call('HSET', key, 'M', pack_response(r), 'S', ARGV[9], 'P', ARGV[7], 'Q', ARGV[10])
else
  write_even_when_full(key)
  call('HSET', key, 'M', pack_response(r))
end
keep(key, r, ahead)
if floor == 't' then
  -- a driver that already has the turn continues it
  if turn and sub(turn, 1, TOKEN_END) == token then
    call('HSET', thread, 'U', pack(TURN, token, r.lease, 0) .. id)
  else
    grant_turn(thread, turn, token, r.lease, 0, id)
  end
  set_format(thread, m, false)
elseif floor ~= '' then
  call('HSET', thread, 'U', sub(turn, 1, TURN_BYTES) .. id)
end
if thread then touch(thread, ahead, '') end
if scope then call('HSET', scope.scope, 'U', id) end
return {is_new and 'N' or 'T'}
