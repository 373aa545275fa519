-- Lists the segments of a history.
-- KEYS: 1 scope, 2 history, 3 ids of the history, 4 the thread of the scope, if any.
-- ARGV: 1 `ahead`, 2 `access`, 3 `g` to leave the lifetime unchanged.
-- Reply: nil; a refusal; or for each segment, oldest first: number, first position, last position, number of items,
--   size of the items in bytes, time of the replacement, expiry, and ids of the summary items, separated by spaces.
local ahead = tonumber(ARGV[1])
local k = {scope = KEYS[1], history = KEYS[2], ids = KEYS[3], thread = KEYS[4]}
if ARGV[3] == 'g' then check_writable(k.scope) end
local _, s, _, refusal = open_scope(k, ahead, ARGV[3] ~= 'g', ARGV[2])
if not s then return refusal or false end
local answer = {}
for _, g in ipairs(living_segments(k, s, ahead).list) do
  for _, field in ipairs({g.number, g.first, g.through, g.count, g.bytes, g.made, g.ends}) do
    answer[#answer + 1] = fmt('%.0f', field)
  end
  answer[#answer + 1] = g.ids
end
return answer
