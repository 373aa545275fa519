local LOOKED_AT, HEADER, LOGGED_LIFE_AT, FIRST_HEADER, FIRST_LIFE_AT = 32, 26, 19, 10, 3
local LOST_LIFE_NAMED = '-0000000000000000'

-- Returns whether an event may name keys of an erased life. End, move and request events name no keys.
local function is_unwanted(entry, erased)
  local e = entry[2][2]
  local kind = byte(e)
  if kind == DESTROYED or kind == ROTATED or kind == COMPLETED then return false end
  local id, life_at = sub(e, HEADER + 1), LOGGED_LIFE_AT
  if kind == FIRST then id, life_at = unpack_id(sub(e, FIRST_HEADER + 1)), FIRST_LIFE_AT end
  local life = fmt('%08x%08x', unpack_('>I4I4', e, life_at))
  if call('ZSCORE', erased, id .. '-' .. life) then return true end
  -- If the data of a life was lost, the set contains only the time at which the loss was noticed. Events before that
  -- time may belong to that life.
  local lost = call('ZSCORE', erased, id .. LOST_LIFE_NAMED)
  return lost and tonumber(string.match(entry[1], '^%d+')) <= tonumber(lost)
end

-- Calls `look` for each entry of a log, starting at `from`. Stops when `look` returns true, or after `most` entries or
-- `most_bytes` bytes of key names. Returns the position to resume at, or nil at the end of the log.
local function look_through(log, from, most, most_bytes, look)
  local looked, bytes = 0, 0
  while looked < most and bytes < most_bytes do
    local entries = call('XRANGE', log, from, '+', 'COUNT', LOOKED_AT)
    for _, entry in ipairs(entries) do
      if look(entry) then return nil end
      bytes = bytes + #entry[2][4]
    end
    if #entries < LOOKED_AT then return nil end
    looked, from = looked + #entries, '(' .. entries[#entries][1]
  end
  return from
end
