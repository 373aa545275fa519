-- Shared by the scripts that heed turns. The last turn of a life is the field U of its thread: token, when it ends
-- (0: given back), flags (1: exclusive, 2: another caller waits), and the id of the response that worked
-- under it or an earlier one last, if one did. A thread whose last turn is exclusive has an even
-- format, so that the scripts for one operation leave it to those that look at the turn.
local TURN, TURN_BYTES, TOKEN_END = '>c16I6B', 23, 16

local function last_response(turn) return turn and sub(turn, TURN_BYTES + 1) or '' end

-- Why a write with that token, or with none (''), may not be done; `m`: the meta of the thread, if it lives. Then
-- whether its last turn keeps nobody out any more.
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

-- The format of a thread of that owner with such a turn.
local function format_of(owner, is_exclusive)
  return (owner == '' and PLAIN or OWNED) + (is_exclusive and 1 or 0)
end

-- Sets the format of a thread that has the meta `m`.
local function set_format(key, m, is_exclusive)
  local format = format_of(sub(m, META_BYTES + 1), is_exclusive)
  if byte(m) ~= format then call('HSET', key, 'M', string.char(format) .. sub(m, 2)) end
end
