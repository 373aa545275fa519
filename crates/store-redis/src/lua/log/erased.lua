local SCAN_BATCH, HEADER, LOGGED_LIFE_AT, FIRST_HEADER, FIRST_LIFE_AT = 32, 26, 19, 10, 3
local LOST_LIFE_NAMED = '-0000000000000000'

-- Returns whether an event may name keys of an erased life. Events for an end, a move or a request do not name keys.
local function is_unwanted(entry, erased)
  local e = entry[2][2]
  local kind = byte(e)
  if kind == DESTROYED or kind == ROTATED or kind == COMPLETED then return false end
  local id, life_at = sub(e, HEADER + 1), LOGGED_LIFE_AT
  if kind == FIRST then id, life_at = unpack_id(sub(e, FIRST_HEADER + 1)), FIRST_LIFE_AT end
  local life = fmt('%08x%08x', unpack_('>I4I4', e, life_at))
  if call('ZSCORE', erased, id .. '-' .. life) then return true end
  -- If the data of a life was lost, its number is unknown, and `erased` contains only the time at which the loss was
  -- noticed. Any event of the thread up to that time may belong to that life.
  local lost = call('ZSCORE', erased, id .. LOST_LIFE_NAMED)
  return lost and tonumber(string.match(entry[1], '^%d+')) <= tonumber(lost)
end

-- Calls `visit` for each entry of a log from position `from`. Stops when `visit` returns true, or after `max_entries`
-- entries or `max_bytes` bytes of key names. Returns where to resume, or nil if `visit` returned true or the log ends.
local function scan_log(log, from, max_entries, max_bytes, visit)
  local scanned, bytes = 0, 0
  while scanned < max_entries and bytes < max_bytes do
    local entries = call('XRANGE', log, from, '+', 'COUNT', SCAN_BATCH)
    for _, entry in ipairs(entries) do
      if visit(entry) then return nil end
      bytes = bytes + #entry[2][4]
    end
    if #entries < SCAN_BATCH then return nil end
    scanned, from = scanned + #entries, '(' .. entries[#entries][1]
  end
  return from
end
