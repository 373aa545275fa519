-- Maximum number of removed items with a record in field `G`; size in bytes of a record, and of the digest in a record.
local REMOVALS_MAX, REMOVAL_BYTES, DIGEST_BYTES = 256, 14, 8

local function position_of(item) return tonumber(string.match(item[1], '^%d+')) end
local function bytes_of(item) return #item[2][4] + #item[2][6] + 64 end

local function digest_of(id)
  local hex = redis.sha1hex(id)
  return pack('>I4I4', tonumber(sub(hex, 1, 8), 16), tonumber(sub(hex, 9, 16), 16))
end

-- Records the positions of removed items, oldest first.
local function record_removed(key, ids, positions)
  local removed = {call('HGET', key, 'G') or ''}
  for i = math.max(1, #ids - REMOVALS_MAX + 1), #ids do
    removed[#removed + 1] = digest_of(ids[i]) .. pack('>I6', positions[i])
  end
  call('HSET', key, 'G', sub(table.concat(removed), -REMOVAL_BYTES * REMOVALS_MAX))
end

-- Returns the former position of a removed item, or nil if field `G` does not have a record of the item.
local function removed_position(key, id)
  local removed, digest = call('HGET', key, 'G') or '', digest_of(id)
  -- searches the newest record first, because an id may have been removed more than once
  for at = #removed - REMOVAL_BYTES + 1, 1, -REMOVAL_BYTES do
    if sub(removed, at, at + DIGEST_BYTES - 1) == digest then return (unpack_('>I6', removed, at + DIGEST_BYTES)) end
  end
end
