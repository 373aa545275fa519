-- Reads items that compactions have replaced, in one step.
-- KEYS: 1 scope, 2 history, 3 its ids, then its thread if it has one.
-- ARGV: 1 ahead, 2 access, 3 `g` when this is no use, 4 number of the segment, or 0 for the whole history with originals in the
--       place of summaries, 5 `f` from a place on, or `b` from it backwards, 6 the place in the stream, 7 how many items at
--       most.
-- Reply: nil; a refusal; or meta, 1 if there is such a segment, and the items.
local ahead, number, limit = tonumber(ARGV[1]), tonumber(ARGV[4]), tonumber(ARGV[7])
local k = {scope = KEYS[1], history = KEYS[2], ids = KEYS[3], thread = KEYS[4]}
if ARGV[3] == 'g' then check_writable(k.scope) end
local _, s, _, refusal = open_scope(k, ahead, ARGV[3] ~= 'g', ARGV[2])
if not s then return refusal or false end
local forwards, from = ARGV[5] == 'f', tonumber(string.match(ARGV[6], '%d+'))
local parts, hidden, is_there = {}, {}, number == 0
local segments = living_segments(k, s, ahead)
for _, g in ipairs(segments.list) do
  -- copies behind the last place are no part of it
  local part = {key = segments.keys(g.number), at = ARGV[6], to = fmt('%.0f-0', g.through)}
  if not forwards then part.at, part.to = fmt('%.0f-0', math.min(from, g.through)), '-' end
  if number == 0 then
    parts[#parts + 1] = part
    for id in string.gmatch(g.ids, '%S+') do hidden[id] = true end
  elseif g.number == number then
    parts, is_there = {part}, true
  end
end
if number == 0 then parts[#parts + 1] = {key = k.history, at = ARGV[6], to = forwards and '+' or '-'} end
local items = {}
for j = 1, #parts do
  local part = parts[forwards and j or #parts + 1 - j]
  while #items < limit do
    local portion = limit - #items
    local found = call(forwards and 'XRANGE' or 'XREVRANGE', part.key, part.at, part.to, 'COUNT', portion)
    for _, item in ipairs(found) do
      if not hidden[item[2][4]] then items[#items + 1] = item end
    end
    if #found < portion then break end
    part.at = '(' .. found[#found][1]
  end
end
return {pack_scope(s), is_there and 1 or 0, items}
