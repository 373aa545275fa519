-- The last turn of a life is field U of its thread: token, end (0: released), flags (1: exclusive, 2: another caller
-- waits), and the id of the last response that ran under this turn or an earlier turn, if any. A thread whose last turn
-- is exclusive has an even format number. The scripts for a single operation do not write to such a thread, but leave
-- the write to the scripts that check the turn.
-- Field N has the numbers of the last turn and of the last turn whose work is complete, 1 if the thread has effects, and the
-- first bytes of the token of the last turn. Earlier server versions grant turns without changing field N.
local TURN, TURN_BYTES, TOKEN_END = '>c16I6B', 23, 16
local NUMBERS, NUMBERED_AT, NUMBERED_BYTES = '>I4I4B', 10, 4
local NUMBER_MAX = 4294967295

local function last_response(turn) return turn and sub(turn, TURN_BYTES + 1) or '' end

-- Returns the numbers of the last turn and of the last complete turn, and whether the thread has effects. `turn` and
-- `numbers` are fields U and N, or false.
local function numbers_of(turn, numbers)
  local number, complete, has_effects = 0, 0, 0
  if numbers then number, complete, has_effects = unpack_(NUMBERS, numbers) end
  -- otherwise, an earlier server version has granted the turn
  local is_numbered = not turn or numbers and sub(numbers, NUMBERED_AT) == sub(turn, 1, NUMBERED_BYTES)
  return is_numbered and number or math.min(number + 1, NUMBER_MAX), complete, has_effects
end

-- Grants a turn, which follows `turn`. `response` is the id of its response, by default the last one. Returns the number
-- of the turn, and whether the thread has effects.
local function grant_turn(key, turn, token, ends, flags, response)
  local number, complete, has_effects = numbers_of(turn, call('HGET', key, 'N'))
  number = math.min(number + 1, NUMBER_MAX)
  call('HSET', key, 'U', pack(TURN, token, ends, flags) .. (response or last_response(turn)),
    'N', pack(NUMBERS, number, complete, has_effects) .. sub(token, 1, NUMBERED_BYTES))
  return number, has_effects
end

-- Releases a turn. Returns whether another caller waits for the release.
local function release_turn(key, turn, is_complete)
  local token, _, flags = unpack_(TURN, turn)
  local number, complete, has_effects = numbers_of(turn, call('HGET', key, 'N'))
  if is_complete then complete = number end
  call('HSET', key, 'U', pack(TURN, token, 0, flags % 2) .. sub(turn, TURN_BYTES + 1),
    'N', pack(NUMBERS, number, complete, has_effects) .. sub(token, 1, NUMBERED_BYTES))
  return flags >= 2
end

-- Returns a refusal if a write with `token` ('' for none) is not allowed, else nil. The second result is true if no
-- turn excludes other writers. `m` is the meta of the thread.
local function turn_refusal(key, m, token, ahead)
  local turn = m and call('HGET', key, 'U')
  if token ~= '' then
    if turn and sub(turn, 1, TOKEN_END) == token then return nil, false end
    return {'R', 'turn_lost'}
  end
  if not turn then return nil, true end
  local _, ends, flags = unpack_(TURN, turn)
  if flags % 2 == 0 or ends <= now(ahead) then return nil, true end
  return {'R', 'turn_taken', fmt('%.0f', ends), fmt('%.0f', ends - now(ahead))}
end

-- Checks that the caller with `token` holds the turn. `turn` and `numbers` are fields U and N. Returns a refusal, or nil.
local function holder_refusal(turn, numbers, token, ahead)
  if token == '' or not turn or sub(turn, 1, TOKEN_END) ~= token then return {'R', 'turn_lost'} end
  local _, ends = unpack_(TURN, turn)
  if ends <= now(ahead) then return {'R', 'turn_not_held', (numbers_of(turn, numbers))} end
end

local function format_of(owner, is_exclusive)
  return (owner == '' and PLAIN or OWNED) + (is_exclusive and 1 or 0)
end

local function set_format(key, m, is_exclusive)
  local format = format_of(sub(m, META_BYTES + 1), is_exclusive)
  if byte(m) ~= format then call('HSET', key, 'M', string.char(format) .. sub(m, 2)) end
end
