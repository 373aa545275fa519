-- The last turn of a life is field U of its thread: token, end (0: released), flags (1: exclusive, 2: another caller
-- waits), and the id of the last response that ran under this turn or an earlier turn, if any. A thread whose last turn
-- is exclusive has an even format number. The scripts for a single operation do not write to such a thread, but leave
-- the write to the scripts that check the turn.
local TURN, TURN_BYTES, TOKEN_END = '>c16I6B', 23, 16

local function last_response(turn) return turn and sub(turn, TURN_BYTES + 1) or '' end

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

local function format_of(owner, is_exclusive)
  return (owner == '' and PLAIN or OWNED) + (is_exclusive and 1 or 0)
end

local function set_format(key, m, is_exclusive)
  local format = format_of(sub(m, META_BYTES + 1), is_exclusive)
  if byte(m) ~= format then call('HSET', key, 'M', string.char(format) .. sub(m, 2)) end
end
