-- Reads original items, which compactions have replaced.
-- KEYS: 1 scope, 2 history, 3 ids of the history, 4 the thread of the scope, if any.
-- ARGV: 1 `ahead`, 2 `access`, 3 `g` to leave the lifetime unchanged, 4 number of the segment, or 0 for the whole history
--   with originals instead of summaries, 5 `f` forwards or `b` backwards, 6 start position, 7 maximum number of items.
-- Reply: nil; a refusal; or meta, 1 if the segment exists, else 0, and the items.
local ahead, number, limit = tonumber(ARGV[1]), tonumber(ARGV[4]), tonumber(ARGV[7])
local k = {scope = KEYS[1], history = KEYS[2], ids = KEYS[3], thread = KEYS[4]}
if ARGV[3] == 'g' then check_writable(k.scope) end
local _, s, _, refusal = open_scope(k, ahead, ARGV[3] ~= 'g', ARGV[2])
if not s then return refusal or false end
local forwards, from = ARGV[5] == 'f', tonumber(string.match(ARGV[6], '%d+'))
local parts, hidden, segment_exists = {}, {}, number == 0
local segments = living_segments(k, s, ahead)
for _, g in ipairs(segments.list) do
  local part = {key = segments.keys(g.number), first = g.first}
  if number == 0 then
    parts[#parts + 1] = part
    for id in string.gmatch(g.ids, '%S+') do hidden[id] = true end
  elseif g.number == number then
    parts, segment_exists = {part}, true
  end
end
if number == 0 then parts[#parts + 1] = {key = k.history, first = s.first} end
local items = {}
for j = 1, #parts do
  local part, at = parts[forwards and j or #parts + 1 - j], ARGV[6]
  -- `from >= part.first` avoids a slow search: if no entry precedes `from`, Redis would scan the whole stream
  while #items < limit and (forwards or from >= part.first) do
    local portion = limit - #items
    local found = call(forwards and 'XRANGE' or 'XREVRANGE', part.key, at, forwards and '+' or '-', 'COUNT', portion)
    for _, item in ipairs(found) do
      if not hidden[item[2][4]] then items[#items + 1] = item end
    end
    if #found < portion then break end
    at = '(' .. found[#found][1]
  end
end
return {pack_scope(s), segment_exists and 1 or 0, items}
