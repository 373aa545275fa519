-- A response is one hash:
--   M          meta: ended (1), token of the driver, end of the driver's lease, token of the thread's turn (the driver's
--              token if the driver took the turn, zeros for no turn), number of entries, number of the next event, life of
--              the thread, retention, and delay from the last write until the response is due
--   S          scope as text
--   P          fingerprint of the request
--   Q          the request
--   1, 2..     the entries
--   R          the answer, once the response has ended
--   D          exists if the answer has reached its caller
-- Keys of responses, all in the slot of the scope:
--   :u:ID      the response
--   :ue:ID     its events: a stream of entries N-0 with a field `e`, where N is the number of the event plus 1
--   :ud        open responses by due time
--   :ul:LIFE   responses of a thread's life by latest deletion time, so that an erasure finds them
local RESPONSE = '>Bc16I6c16I4I4c8I6I6'
local NO_TURN = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
-- Maximum number of expired responses that one script removes from the list of a life's responses.
local FORGOTTEN_MAX = 10

local function start_of(key) return sub(key, 1, find(key, '}:u:', 1, true)) end
local function response_id_of(key) return sub(key, find(key, '}:u:', 1, true) + 4) end
local function events_of(key) return start_of(key) .. ':ue:' .. response_id_of(key) end
local function list_of(key, life) return start_of(key) .. ':ul:' .. hex(life) end

-- Returns a response that has not expired, or nil.
local function open_response(key, ahead)
  local m = call('PTTL', key) > ahead and call('HGET', key, 'M')
  if not m then return nil end
  local r, has_ended = {}, nil
  has_ended, r.token, r.lease, r.turn, r.entries, r.next_event, r.life, r.kept, r.due = unpack_(RESPONSE, m)
  r.has_ended = has_ended == 1
  return r
end

local function pack_response(r)
  return pack(RESPONSE, r.has_ended and 1 or 0, r.token, r.lease, r.turn, r.entries, r.next_event, r.life, r.kept, r.due)
end

-- Fails if the hash slot of a response is migrating. Call this function before any change: see `settle`.
local function settle_response(key, r)
  settle(key)
  call('EXISTS', events_of(key), start_of(key) .. ':ud', list_of(key, r.life))
end

-- Renews the expiry of a response and of its events, and updates the lists that contain the response.
local function keep(key, r, ahead)
  call('PEXPIRE', key, r.kept + ahead)
  local due = start_of(key) .. ':ud'
  if r.has_ended then
    call('ZREM', due, response_id_of(key))
  else
    call('PEXPIRE', events_of(key), r.kept + ahead)
    call('ZADD', due, now(ahead) + r.due, response_id_of(key))
  end
  if r.life == NO_LIFE then return end
  local list = list_of(key, r.life)
  local old = call('ZRANGEBYSCORE', list, '-inf', now(ahead) - 1, 'LIMIT', 0, FORGOTTEN_MAX)
  if #old > 0 then call('ZREM', list, unpack(old)) end
  call('ZADD', list, now(ahead) + r.kept, response_id_of(key))
  if call('PTTL', list) < r.kept + ahead then call('PEXPIRE', list, r.kept + ahead) end
end

-- Returns whether a response belongs to a scope. With `thread`, the scope is the scope of that thread, and the caller
-- must also compare the thread's life. Without `thread`, the scope is given as the string `scope`.
local function is_in(key, r, scope, thread)
  if thread then return r.life ~= NO_LIFE end
  return r.life == NO_LIFE and call('HGET', key, 'S') == scope
end

-- Returns a refusal if the driver with `token` may not write to a response, else nil. A call that ends the response may
-- pass '' to act for any driver. `m` is the meta of the response's thread, if the thread is alive.
local function driver_refusal(r, token, thread, m)
  if not r or r.has_ended or token ~= '' and r.token ~= token then return {'R', 'turn_lost'} end
  if not thread then return nil end
  if not m or sub(m, LIFE_AT, LIFE_END) ~= r.life then return {'R', 'thread_destroyed'} end
  if token ~= '' and r.turn ~= NO_TURN and sub(call('HGET', thread, 'U') or '', 1, TOKEN_END) ~= r.turn then
    return {'R', 'turn_lost'}
  end
end

-- Adds `events[from]` to `events[to]` with sequence numbers from `first`. Skips events that already exist.
local function add_events(key, r, first, events, from, to)
  for i = from, to do
    local number = first + i - from
    if number >= r.next_event then call('XADD', events_of(key), fmt('%.0f-0', number + 1), 'e', events[i]) end
  end
  r.next_event = math.max(r.next_event, first + to - from + 1)
end

-- Removes the arguments for a step of a response from the end of `args`: see in_scope.lua. Returns the arguments for
-- `plan_step`, and the channel.
local function take_step(args)
  local step, last = {}, #args
  for j = last - tonumber(args[last]) + 1, last - 1 do step[#step + 1] = args[j] end
  local channel = args[last - #step - 1]
  for j = last, last - #step - 1, -1 do args[j] = nil end
  return step, channel
end

-- Checks a step of a response. A step either adds an entry or ends the response.
-- `args`: token of the driver, or empty if any driver may end the response; scope; number of the entry, or for an end
-- the number of entries; the entry, or for an end the answer; for an end, the retention of the response and the
-- retention of its events, otherwise two empty arguments; sequence number of the first event; events.
-- Returns a refusal or the outcome of an earlier attempt; else nil, the response, and the thread if it still exists.
local function plan_step(key, thread, m, args, ahead)
  local r, ends, number, first = open_response(key, ahead), args[5] ~= '', tonumber(args[3]), tonumber(args[7])
  if ends and r and r.has_ended then return {'J', call('HGET', key, 'R')} end
  if r and not is_in(key, r, args[2], thread) then return {'R', 'turn_lost'} end
  -- if the thread does not exist, the response can only be ended, and only by a request without any other write
  if ends and thread and not (m and r and sub(m, LIFE_AT, LIFE_END) == r.life) and args.is_alone then thread = nil end
  local refusal = driver_refusal(r, args[1], thread, m)
  if refusal then return refusal end
  if ends then
    if number ~= r.entries or first ~= r.next_event then return {'R', 'changed'} end
  elseif number < 1 or number > r.entries + 1 then
    return {'R', 'changed'}
  elseif number <= r.entries then
    return {'J', call('HGET', key, args[3])}
  elseif first > r.next_event then
    return {'R', 'changed'}
  end
  settle_response(key, r)
  return nil, r, thread
end

local function do_step(key, thread, r, args, channel, ahead)
  add_events(key, r, tonumber(args[7]), args, 8, #args)
  if args[5] == '' then
    r.entries = r.entries + 1
    call('HSET', key, args[3], args[4], 'M', pack_response(r))
    return keep(key, r, ahead)
  end
  local turn = thread and r.turn == r.token and call('HGET', thread, 'U')
  if turn and sub(turn, 1, TOKEN_END) == r.token then
    local is_awaited = release_turn(thread, turn, false)
    -- pcall, because the user may lack access to the channel
    if is_awaited then redis.pcall('PUBLISH', channel, id_of(thread)) end
  end
  r.has_ended = true
  -- an erasure does not find the responses of a missing thread, so the retention of such a response must not increase
  r.kept = (thread or r.life == NO_LIFE) and tonumber(args[5]) or math.min(r.kept, tonumber(args[5]))
  call('HSET', key, 'R', args[4], 'M', pack_response(r))
  call('PEXPIRE', events_of(key), math.min(r.kept, tonumber(args[6])) + ahead)
  keep(key, r, ahead)
end
