-- Segments of histories: what compactions have replaced. A summary is the items in the place of a segment.
-- In the flags of a scope, that there are some.
segments.FLAG = 2

-- The segments whose time has not passed, the oldest first.
function segments.living(k, s, ahead)
  local living = {}
  if s.flags < segments.FLAG then return living end
  for _, g in ipairs((segments.unpack(call('HGET', k.scope, 'S')))) do
    if g.ends > now(ahead) then living[#living + 1] = g end
  end
  return living
end

-- The keys with the ids of all originals.
function segments.ids(k, s, ahead)
  local keys = {}
  for i, g in ipairs(segments.living(k, s, ahead)) do
    local _, ids = segments.keys(k.scope, g.number)
    keys[i] = ids
  end
  return keys
end

-- Keeps those segments, the oldest first, of which a summary is left: its items may be among the originals of a newer one.
function segments.put(k, s, list, last)
  local kept, places, parts = {}, {k.ids}, {}
  for j = #list, 1, -1 do
    local g, is_kept = list[j], false
    local stream, ids = segments.keys(k.scope, g.number)
    if g.count > 0 then
      for id in string.gmatch(g.ids, '%S+') do
        for _, key in ipairs(places) do is_kept = is_kept or call('HEXISTS', key, id) == 1 end
      end
    end
    if is_kept then
      table.insert(kept, 1, g)
      places[#places + 1] = ids
    else
      call('UNLINK', stream, ids)
    end
  end
  for i, g in ipairs(kept) do
    parts[i] = pack(segments.FORMAT, g.number, g.first, g.through, g.count, g.bytes, g.made, g.ends, #g.ids) .. g.ids
  end
  call('HSET', k.scope, 'S', pack('>I4', last) .. table.concat(parts))
  s.flags = s.flags % segments.FLAG + (#kept > 0 and segments.FLAG or 0)
end

-- The number of the last segment that there was.
function segments.last(k)
  local _, last = segments.unpack(call('HGET', k.scope, 'S'))
  return last
end

-- Forgets segments that end, after items were removed.
function segments.tidy(k, s, ahead)
  if s.flags >= segments.FLAG then segments.put(k, s, segments.living(k, s, ahead), segments.last(k)) end
end

-- Removes all segments, whose numbers go on.
function segments.clear(k, s)
  if s.flags < segments.FLAG then return end
  segments.drop(k.scope)
  segments.put(k, s, {}, segments.last(k))
end

-- An original with its segment, or nil.
function segments.find(k, s, id, ahead)
  for _, g in ipairs(segments.living(k, s, ahead)) do
    local stream, ids = segments.keys(k.scope, g.number)
    local known = call('HGET', ids, id)
    local place = known and unpack_('>I6', known)
    if place and place <= g.through then
      local item = call('XRANGE', stream, fmt('%.0f-0', place), '+', 'COUNT', 1)[1]
      return {number = g.number, stream = stream, ids = ids, item = item}
    end
  end
end

function segments.remove(k, s, found, ahead)
  local item, list = found.item, segments.living(k, s, ahead)
  call('XDEL', found.stream, item[1])
  call('HDEL', found.ids, item[2][4])
  for _, g in ipairs(list) do
    if g.number == found.number then g.count, g.bytes = g.count - 1, g.bytes - bytes_of(item) end
  end
  mark_items(k.scope, {item[2][4]}, {place_of(item)})
  segments.put(k, s, list, segments.last(k))
end

-- Removes what trim_segment.lua has left of items that are removed, given their ids and places.
function segments.remove_copies(k, s, removed, places, ahead)
  for _, g in ipairs(segments.living(k, s, ahead)) do
    local stream, its_ids = segments.keys(k.scope, g.number)
    for i, id in ipairs(removed) do
      if places[i] > g.through then
        call('XDEL', stream, fmt('%.0f-0', places[i]))
        call('HDEL', its_ids, id)
      end
    end
  end
end
