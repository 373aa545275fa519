-- Finds an item by id.
-- KEYS: 1 scope, 2 history, 3 ids of the history, 4 the thread of the scope, if any. ARGV: 1 `ahead`, 2 `access`, 3 id.
-- Reply: nil; a refusal; or the item's position, and 1 if the item was removed, else 0.
local ahead = tonumber(ARGV[1])
local k = {scope = KEYS[1], history = KEYS[2], ids = KEYS[3], thread = KEYS[4]}
local _, s, _, refusal = open_scope(k, ahead, true, ARGV[2])
if not s then return refusal or false end
local known = call('HGET', k.ids, ARGV[3])
if known then return {fmt('%.0f', (unpack_('>I6', known))), 0} end
local position = removed_position(k.scope, ARGV[3])
for _, key in ipairs(s.flags >= SEGMENTED and living_segments(k, s, ahead).ids() or {}) do
  local original = call('HGET', key, ARGV[3])
  if original then position = unpack_('>I6', original) end
end
return position and {fmt('%.0f', position), 1} or false
