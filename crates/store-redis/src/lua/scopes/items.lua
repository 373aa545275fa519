-- Maximum number of removed items that the field `G` records, and the sizes in bytes of each record and its digest.
local MOST_MARKS, MARK_BYTES, DIGEST_BYTES = 256, 14, 8

local function place_of(item) return tonumber(string.match(item[1], '^%d+')) end
local function bytes_of(item) return #item[2][4] + #item[2][6] + 64 end

local function digest_of(id)
  local hex = redis.sha1hex(id)
  return pack('>I4I4', tonumber(sub(hex, 1, 8), 16), tonumber(sub(hex, 9, 16), 16))
end

-- Records the positions of removed items, oldest first.
local function mark_items(key, ids, places)
  local marks = {call('HGET', key, 'G') or ''}
  for i = math.max(1, #ids - MOST_MARKS + 1), #ids do
    marks[#marks + 1] = digest_of(ids[i]) .. pack('>I6', places[i])
  end
  call('HSET', key, 'G', sub(table.concat(marks), -MARK_BYTES * MOST_MARKS))
end

-- Returns the former position of a removed item, or nil if it is not recorded.
local function marked_place(key, id)
  local marks, digest = call('HGET', key, 'G') or '', digest_of(id)
  -- newest first, because an id may have been removed more than once
  for at = #marks - MARK_BYTES + 1, 1, -MARK_BYTES do
    if sub(marks, at, at + DIGEST_BYTES - 1) == digest then return (unpack_('>I6', marks, at + DIGEST_BYTES)) end
  end
end
